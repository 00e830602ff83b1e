"""
Checks COMET files against the rules of the format, those the tool leaves unchecked too.

`check` returns one `Violation` per broken rule and place. The names of the rules:

* `format`: a field is missing, misspelt or of the wrong length;
* `problem`: names, projections and the flow of tensors between the operations, where
  only what no root fetches may come from an iteration before;
* `tree`: which node may be below which; each operation exactly once;
* `parent`: every (tensor, tag) of a spatial node is in its parent, levels match;
* `tags`: a tag under one child, each tensor once, tags that have the tensor;
* `levels`: levels that exist and are joined; leaves that end at compute units;
* `factors`: TileSteps times all factors is the size, for every operation;
* `even`: the entries that share a node make the same number of iterations;
* `known`: every priced node touches a tensor that a node above has moved;
* `mesh`: only the mesh shapes that the tool can price;
* `leaf`: tensors, tiles and attributes of the operations;
* `unit`: what the compute unit cannot or would wrongly compute;
* `binding`: bindings that lose or never finish their nodes;
* `stages`: what overlaps makes the iterations, and reaches the levels, that are read;
* `collective`: where collectives may stand and what they need;
* `capacity`: the sums that the tool compares with the memories;
* `bits`: precisions given everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import plain_yaml
from comet_files import Files, child_tiles, leaf_of, leaves_below, parent_tile, place
from comet_hardware import MESHES, read_levels
from comet_unit_rules import UNIT_RULES
from xdsl.utils.exceptions import VerifyException

from comet.codegen.comet.reader import read_constants, read_mapping, read_problem
from comet.dialects.comet import OperationOp, TileOp
from comet.yaml_file import FileFormatError


@dataclass(frozen=True)
class Violation:
    """One broken rule."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


def check(texts: Mapping[str, str]) -> list[Violation]:
    """Return all violations of a file set, given as texts by file name."""
    try:
        constants = read_constants(texts["constants.yaml"])
        problem = read_problem(texts["problem.yaml"], constants)
        mapping = read_mapping(texts["mapping.yaml"], constants)
        problem.verify()
        mapping.verify()
    except (FileFormatError, VerifyException) as error:
        return [Violation("format", str(error).split("\n")[0])]
    files = Files(read_levels(texts["arch.yaml"]), problem, mapping)
    found: list[Violation] = []
    for rule, checker in (_RULES | UNIT_RULES).items():
        found += [Violation(rule, text) for text in checker(files)]
    found += [Violation("bits", text) for text in _missing_bits(texts["mapping.yaml"])]
    return found


def _missing_bits(mapping: str) -> Iterator[str]:
    def walk(node: dict[str, Any]) -> Iterator[str]:
        kind = str(node["node_type"]).lower()
        if kind in ("datamovement_tile", "collectiveoperation"):
            if "precision" not in node:
                yield f"a {kind} node gives no precision and gets one bit"
        for child in node.get("subtree", ()):
            yield from walk(child)

    yield from walk(plain_yaml.load(mapping)["mapping"])


def _check_problem(files: Files) -> Iterator[str]:
    produced = {name.data for name in files.problem.ins}
    carried = _carried(files)
    for dim in files.sizes:
        if not re.fullmatch("[A-Z]", dim):
            yield f"the dimension '{dim}' is not one upper-case letter"
    for name, op in files.operations.items():
        for tensor in op.ins:
            if tensor.data not in produced and (tensor.data, name) not in carried:
                yield f"{name} reads {tensor.data} before anything produces it"
        produced.add(op.out.data)
        for access in op.accesses:
            if not re.fullmatch("[A-Za-z0-9]+", access.tensor):
                yield f"the tensor name '{access.tensor}' is not alphanumeric"
            if access.read_write != (access.tensor == op.out.data):
                yield f"{name}: read-write must mark the output, not {access.tensor}"
        if len({access.tensor for access in op.accesses}) != len(
            {tensor.data for tensor in (*op.ins, op.out)}
        ):
            yield f"{name} lists tensors that it neither reads nor writes"
    for tensor in files.problem.outs:
        if tensor.data not in produced:
            yield f"nothing produces the output {tensor.data}"


def _carried(files: Files) -> set[tuple[str, str]]:
    """Return tensors with operations that can read them as an iteration before left."""
    at_root = {(e.tensor, e.tag) for e in files.mapping.root.entries}
    reads = {(t.data, tag) for tag, op in files.operations.items() for t in op.ins}
    return reads - at_root


def _check_tree(files: Files) -> Iterator[str]:
    for tile in files.tiles:
        above = parent_tile(tile)
        if not tile.is_temporal and (above is None or not above.is_temporal):
            yield f"the {place(tile)} does not be below a temporal node"
        if tile.is_temporal and above is not None and above.is_temporal:
            yield f"the {place(tile)} stands directly below a temporal one"
        if leaf_of(tile) is not None and (
            len(tile.children) > 1 or not tile.is_temporal
        ):
            yield f"the {place(tile)} holds an operation and is no leaf"
    names = [leaf.operation.data for leaf in files.leaves]
    for name in files.operations:
        if names.count(name) != 1:
            yield f"the mapping holds {name} {names.count(name)} times"
    for name in names:
        if name not in files.operations:
            yield f"the operation {name} is not in the problem"


def _check_parent(files: Files) -> Iterator[str]:
    for tile in files.tiles:
        above = parent_tile(tile)
        if above is None:
            continue
        listed = {(e.tensor, e.tag): e for e in above.entries}
        for entry in tile.entries:
            found = listed.get((entry.tensor, entry.tag))
            if found is None:
                if not tile.is_temporal:
                    yield (
                        f"the {place(tile)} moves {entry.tensor} by {entry.tag}, which "
                        "the node above does not list"
                    )
            elif entry.target != (found.child if tile.is_temporal else found.target):
                yield (
                    f"the {place(tile)} moves {entry.tensor} from {entry.target}, "
                    f"the node above moves it {found.target} -> {found.child}"
                )
            elif not tile.is_temporal and entry.child != found.child:
                yield (
                    f"the {place(tile)} moves {entry.tensor} to {entry.child}, "
                    f"the node above to {found.child}"
                )


def _check_tags(files: Files) -> Iterator[str]:
    for tile in files.tiles:
        pairs = [(entry.tensor, entry.tag) for entry in tile.entries]
        for pair in dict.fromkeys(pairs):
            if pairs.count(pair) > 1:
                yield f"the {place(tile)} lists {pair[0]} by {pair[1]} twice"
        for entry in tile.entries:
            op = files.operations.get(entry.tag)
            if op is None or entry.tensor not in {a.tensor for a in op.accesses}:
                yield (
                    f"the {place(tile)} moves {entry.tensor} for {entry.tag}, "
                    "which is no operation with that tensor"
                )
            if entry.tag not in leaves_below(tile):
                yield f"the {place(tile)} serves {entry.tag}, which is not below it"
        if not tile.is_temporal:
            reads = [(e.tensor, e.child) for e in tile.entries if not files.writes(e)]
            for tensor, child in dict.fromkeys(reads):
                if reads.count((tensor, child)) > 1:
                    yield f"the {place(tile)} fetches {tensor} to {child} twice"
        owners: dict[str, int] = {}
        for index, child in enumerate(child_tiles(tile)):
            for tag in {entry.tag for entry in child.entries}:
                if owners.setdefault(tag, index) != index:
                    yield f"the tag {tag} is in two nodes below the {place(tile)}"


def _check_levels(files: Files) -> Iterator[str]:
    for tile in files.tiles:
        leaf = leaf_of(tile) is not None
        for entry in tile.entries:
            target = files.levels.get(entry.target)
            child = files.levels.get(entry.child)
            if target is None or child is None:
                yield f"the {place(tile)} names a level that the hardware lacks"
            elif child.name not in target.children:
                yield f"no link joins {entry.target} and {entry.child}"
            elif child.is_compute != leaf:
                yield f"the {place(tile)} ends at the wrong kind of level"
            elif not child.link.get("bw") or "connection_type" not in child.link:
                yield f"the link to {child.name} has no bandwidth or no type"


def _factors_along(files: Files, leaf: TileOp, tag: str) -> list[list[dict[str, int]]]:
    """
    Return, per node from the leaf to the root, the factors that may apply to `tag`.

    Where a spatial node moves nothing for it, an operation may run on all instances or,
    after a gather, on the root alone: what the entries of others have.
    """
    found: list[list[dict[str, int]]] = []
    tile, tags = leaf, {tag}
    while True:
        own = [e for e in tile.entries if e.tag == tag]
        near = own or [e for e in tile.entries if e.tag in tags] or tile.entries
        options = {tuple(e.factor(dim) for dim in files.sizes) for e in near}
        known = len(options) == 1 or not (own or tile.is_temporal)
        chosen = options if known else set[tuple[int, ...]]()
        found.append([dict(zip(files.sizes, one, strict=True)) for one in chosen])
        tags = set(leaves_below(tile))
        if (above := parent_tile(tile)) is None:
            return found
        tile = above


def _check_factors(files: Files) -> Iterator[str]:
    for tile in files.tiles:
        if set(tile.permutation.data) != set(files.sizes):
            yield f"the permutation of the {place(tile)} lacks a dimension"
        if (leaf := leaf_of(tile)) is None:
            continue
        tag = leaf.operation.data
        factors = _factors_along(files, tile, tag)
        if [] in factors:
            yield f"the nodes above {tag} do not agree on its factors"
            continue
        found = [list(_uncovered(files, leaf, path)) for path in product(*factors)]
        yield from min(found, key=len)


def _uncovered(
    files: Files, leaf: OperationOp, path: Sequence[dict[str, int]]
) -> Iterator[str]:
    for step in leaf.steps.data:
        sizes = dict(step.sizes)
        for dim, extent in files.sizes.items():
            covered = prod(f[dim] for f in path) * sizes.get(dim, 0)
            if covered != extent:
                tag = leaf.operation.data
                yield f"{tag} covers {covered} of {extent} along {dim}"


def _check_even(files: Files) -> Iterator[str]:
    for tile in files.tiles:
        above = parent_tile(tile)
        if tile.is_temporal or above is None:
            continue
        shared = {(e.tensor, e.tag) for e in tile.entries}
        counts = {
            prod(size for row in e.factors for _, size in row)
            for e in above.entries
            if (e.tensor, e.tag) in shared
        }
        if len(counts) > 1:
            yield f"the tensors of the {place(tile)} differ in their iterations"


def _check_mesh(files: Files) -> Iterator[str]:
    for tile in files.tiles:
        for entry in tile.entries:
            copies = prod(size for row in entry.factors for _, size in row)
            level = files.levels.get(entry.child)
            if tile.is_temporal or level is None or copies == 1:
                continue
            if level.mesh_for(copies) not in MESHES:
                yield f"{copies} copies of {level.name} are no mesh the tool knows"
            if copies > level.instances:
                yield f"{copies} copies of {level.name}, there are {level.instances}"


def _check_known(files: Files) -> Iterator[str]:
    """The energy walk needs a tensor that a spatial node above has moved."""

    def walk(tile: TileOp, moved: frozenset[str]) -> Iterator[str]:
        left: set[str] = set()
        below = moved if tile.is_temporal else moved | {e.tensor for e in tile.entries}
        for child in child_tiles(tile):
            left |= {entry.tensor for entry in child.entries}
            priced = not child.is_temporal or leaf_of(child) is not None
            if priced and parent_tile(tile) is not None and not left & below:
                yield f"the energy walk knows no tensor at the {place(child)}"
            yield from walk(child, below)

    yield from walk(files.mapping.root, frozenset())


_RULES = {
    "problem": _check_problem,
    "tree": _check_tree,
    "parent": _check_parent,
    "tags": _check_tags,
    "levels": _check_levels,
    "factors": _check_factors,
    "even": _check_even,
    "mesh": _check_mesh,
    "known": _check_known,
}
