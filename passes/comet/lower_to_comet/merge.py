"""
Merges neighbours in a mapping that the COMET tool cannot price separately.

The tool's energy walk needs, at every spatial node and leaf below the root's children,
a tensor that a spatial node above has moved: its own or one of a sibling to its left.
If there is none, the parent joins its left neighbour; columns keep their factors, so
everything runs as often as before. Collectives have no factors: they run as often as
the longest loops of their node, and must not join one that loops more. A collective
directly below a spatial node joins the temporal node before it, because the tool would
add its energy to the wrong node; unless that node loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from math import prod

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.comet import BindingOp, CollectiveOp, MappingOp, OperationOp, TileOp
from comet.dialects.comet.attributes import (
    EntriesAttr,
    MovedTensor,
)
from comet.dialects.errors import OpError
from comet.kinds import BindingKind
from comet.passes.comet.lower_to_comet.factors import innermost_first


def merge_neighbours(mapping: MappingOp) -> str | None:
    """
    Merge nodes in the tree of `mapping` where needed.

    Returns why the COMET tool cannot price it if a node would have to join a neighbour
    that does not exist, or one that loops or spreads differently; None if it can.
    """
    try:
        while (pair := next(_joinable(mapping), None)) is not None:
            join(*pair)
        while (tile := next(unknown_tiles(mapping), None)) is not None:
            join(*_neighbours(tile))
    except PassFailedException as error:
        return str(error)
    return None


def unmerged(mapping: MappingOp) -> str | None:
    """Return why the COMET tool cannot price nodes as they are; None if it can."""
    collectives = (right for _, right in _joinable(mapping))
    if next(chain(collectives, unknown_tiles(mapping)), None) is None:
        return None
    return merge_neighbours(mapping.clone()) or (
        "lower-to-comet: the mapping has nodes that the COMET tool cannot price "
        "separately; lower it without `model`, which merges them"
    )


def _joinable(mapping: MappingOp) -> Iterator[tuple[TileOp, CollectiveOp]]:
    """Yield collectives below spatial nodes, with the node that they can join."""
    for op in mapping.walk():
        if isinstance(op, TileOp) and not op.is_temporal:
            for left, right in pairwise(op.children):
                if isinstance(left, TileOp) and isinstance(right, CollectiveOp):
                    if not is_leaf(left) and not _loops(left):
                        yield left, right


def unknown_tiles(mapping: MappingOp) -> Iterator[TileOp]:
    """Yield the nodes at which the tool's energy walk would find no known tensor."""
    yield from _unknown_below(mapping.root, frozenset())


def _unknown_below(tile: TileOp, known: frozenset[str]) -> Iterator[TileOp]:
    seen = frozenset[str]()
    below = known if tile.is_temporal else known | _tensors(tile)
    for child in tile.children:
        if not isinstance(child, TileOp):
            continue
        seen |= _tensors(child)
        priced = not child.is_temporal or is_leaf(child)
        if priced and not _is_root(tile) and not seen & below:
            yield child
        yield from _unknown_below(child, below)


def is_leaf(tile: TileOp) -> bool:
    """Whether the node has an operation."""
    return isinstance(tile.children[0], OperationOp)


def _is_root(tile: TileOp) -> bool:
    return not isinstance(tile.parent_op(), TileOp)


def _tensors(tile: TileOp) -> frozenset[str]:
    return frozenset(entry.tensor for entry in tile.entries)


def _loops(tile: TileOp) -> bool:
    return any(size > 1 for e in tile.entries for row in e.factors for _, size in row)


def _neighbours(tile: TileOp) -> tuple[TileOp, TileOp]:
    """Return the nearest node around `tile` with a left neighbour, after that one."""
    node, above = tile.parent_op(), _above(tile.parent_op())
    while isinstance(node, TileOp) and above is not None:
        if index := above.children.index(node):
            left = above.children[index - 1]
            if isinstance(left, TileOp) and not is_leaf(left):
                return left, node
            break
        node, above = above, _above(above)
    raise OpError(
        tile,
        "lower-to-comet: the COMET tool cannot price a node that only touches "
        f"{', '.join(sorted(_tensors(tile)))}, which no node around it moves, and no "
        "node comes before it to share a nest with; fuse it with its producer",
    )


def _above(op: Operation | None) -> TileOp | None:
    parent = None if op is None else op.parent_op()
    return parent if isinstance(parent, TileOp) else None


def join(left: TileOp, right: TileOp | CollectiveOp) -> None:
    """
    Append `right`, or its children, to the children of its left neighbour.

    Annotations are removed: they described the parts.
    """
    left.attributes.clear()
    if isinstance(right, TileOp):
        _join_columns(left, right)
    link, tail = _binding_before(left), _binding_before(right)
    kind = BindingKind.SEQUENTIAL if link is None else link.kind.data
    block = left.body.block
    block.insert_op_before(BindingOp(kind), left.children[-1])
    moved = list(right.body.block.ops) if isinstance(right, TileOp) else [right]
    for op in moved:
        op.detach()
    block.add_ops(moved)
    if isinstance(right, TileOp):
        Rewriter.erase_op(right)
    if link is not None:
        Rewriter.erase_op(link)
    if tail is not None and (around := left.parent_block()) is not None:
        tail.detach()
        around.insert_op_before(tail, left)


def _binding_before(op: Operation) -> BindingOp | None:
    before = op.prev_op
    return before if isinstance(before, BindingOp) else None


def _join_columns(left: TileOp, right: TileOp) -> None:
    if left.is_temporal:
        _check_collectives(left, right)
        _check_collectives(right, left)
        order = innermost_first([_order(left), _order(right)], left.permutation.data)
        left.properties["permutation"] = StringAttr("".join(order))
        entries = (*left.entries, *right.entries)
    else:
        _check_same_factors(left, right)
        again = _read_again(left, right)
        entries = (*left.entries, *(e for e in right.entries if e not in again))
        _drop(left.parent_op(), again)
    left.properties["columns"] = EntriesAttr(entries)


def _order(tile: TileOp) -> list[str]:
    """Return the dimensions that a temporal node loops over, outermost first."""
    looped = {
        d for e in tile.entries for row in e.factors for d, size in row if size > 1
    }
    return [dim for dim in reversed(tile.permutation.data) if dim in looped]


def _check_collectives(tile: TileOp, other: TileOp) -> None:
    """Check that the collectives of `tile` run as often in a node with `other`."""
    exchanges = any(isinstance(child, CollectiveOp) for child in tile.children)
    if exchanges and _turns(other) > _turns(tile):
        raise PassFailedException(
            "lower-to-comet: the COMET tool can price "
            f"{', '.join(sorted(_tensors(tile)))} only together with "
            f"{', '.join(sorted(_tensors(other)))}, whose loops would repeat the "
            "collectives between them; give them the same loops, as fuse does with "
            "loops=shared, or lower with model=paper, which prices them apart, but has "
            "no files"
        )


def _turns(tile: TileOp) -> int:
    """Return how often the longest loops of a node run."""
    return max(
        prod(size for row in entry.factors for _, size in row) for entry in tile.entries
    )


def _check_same_factors(left: TileOp, right: TileOp) -> None:
    """Check that two spatial nodes have equal factors and iterations."""
    parent = left.parent_op()
    assert isinstance(parent, TileOp)
    turns = {(e.tensor, e.tag): e.factors for e in parent.entries}
    both = (*left.entries, *right.entries)
    if (
        len({entry.factors for entry in both}) > 1
        or len({turns.get((entry.tensor, entry.tag)) for entry in both}) > 1
    ):
        raise PassFailedException(
            "lower-to-comet: the COMET tool can price "
            f"{', '.join(sorted(_tensors(right)))} only together with the node before "
            "it, which loops or spreads differently; give both the same factors"
        )


def _read_again(left: TileOp, right: TileOp) -> list[MovedTensor]:
    """Return the tensors that `right` fetches although `left` has fetched them."""
    read = {(e.tensor, e.child) for e in left.entries if not e.wb_output}
    return [e for e in right.entries if not e.wb_output and (e.tensor, e.child) in read]


def _drop(parent: Operation | None, gone: list[MovedTensor]) -> None:
    assert isinstance(parent, TileOp)
    names = {(entry.tensor, entry.tag) for entry in gone}
    remaining = [e for e in parent.entries if (e.tensor, e.tag) not in names]
    parent.properties["columns"] = EntriesAttr(tuple(remaining))
