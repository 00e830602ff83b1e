"""
Which tiles take registers while an op of a GPU kernel runs, of those that are alive.

Elementwise ops are computed element by element, so that not each of their results is a
whole tile at any time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue

from comet.cost.from_ir.products import adds
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    FillOp,
    MapOp,
    ReduceOp,
)
from comet.dialects.compound.dims import is_boolean, names_of
from comet.dialects.schedule import SpatialOp, TemporalOp, YieldOp
from comet.dialects.schedule.accumulators import is_continued
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.late_loads import late_loads
from comet.dialects.schedule.node import NodeOp


def tiles_during(
    op: Operation, alive: Sequence[SSAValue], *, with_products: bool
) -> Iterator[SSAValue]:
    """
    Yield the tiles that take registers during `op`, of those `alive` before it.

    And of those that it makes. The kernel is one `with_products` or without. Tiles in
    shared memory are among them, too.
    """
    # An elementwise op writes over the operand that it is the last to use.
    made = () if isinstance(op, MapOp) else op.results
    yield from tiles_before(op, (*alive, *made), with_products=with_products)


def tiles_before(
    op: Operation, alive: Sequence[SSAValue], *, with_products: bool
) -> Iterator[SSAValue]:
    """Yield the tiles that take registers, of those `alive`, just before `op`."""
    tiles = _occupying(alive)
    if with_products:
        tiles = (_before_widening(tile, op) for tile in tiles)
    yield from dict.fromkeys(tiles)


def broadcast_during(op: Operation) -> Iterator[SSAValue]:
    """Yield the operands of an elementwise op that lack dimensions of its result."""
    if isinstance(op, MapOp):
        dims = names_of(op.result)
        yield from _occupying([v for v in op.operands if names_of(v) != dims])


def kept_vectors(loop: TemporalOp) -> Iterator[SSAValue]:
    """
    Yield the operands of elementwise ops in a loop that it does not change, and that
    lack dimensions of the result, from outside of the loop.

    Triton widens them and converts them to the layout of the result before the loop.
    """
    for op in loop.walk():
        for value in broadcast_during(op):
            if _enters(value, loop):
                yield value


def _enters(value: SSAValue, loop: TemporalOp) -> bool:
    """Return whether a value is a tile from outside of a loop, unchanged, or a cast."""
    while not isinstance(value, BlockArgument):
        if not isinstance(value.owner, CastOp):
            return False
        value = value.owner.input
    node = value.block.parent_op()
    if not isinstance(node, TemporalOp) or value.index >= len(node.ins):
        return False
    changed = not node.factors.keys().isdisjoint(names_of(value))
    if changed or value in late_loads(node):
        return False
    return node is loop or _enters(node.ins[value.index], loop)


def accumulators(op: NodeOp) -> Iterator[SSAValue]:
    """
    Yield the yielded values whose running result stays alive in the body.

    That of a fold is the iter_arg, an argument of the body.
    """
    for value, combiner in zip(op.yielded, op.combiners, strict=True):
        if combiner not in (Combiner.NONE, Combiner.FOLD):
            yield value


def continued(op: NodeOp, inner: NodeOp) -> Iterator[SSAValue]:
    """Yield the accumulators of a loop that are those of a loop in it, meanwhile."""
    if isinstance(op, TemporalOp):
        yield from (value for value in inner.outs if is_continued(op, value))


def _before_widening(value: SSAValue, op: Operation) -> SSAValue:
    """
    Return what registers hold of a value while `op` of a kernel with products runs.

    The layout of a product is another one than that of loads. Triton converts a loaded
    tile to it while the tile is narrow, and widens it, element by element, where an
    elementwise op reads it, if that is the only reader and in the same body. Without
    products no layout is converted, and tiles are widened once they are loaded.
    """
    cast, users = value.owner, [use.operation for use in value.uses]
    if isinstance(op, NodeOp) or not isinstance(cast, CastOp) or cast.added_bits <= 0:
        return value
    together = all(
        isinstance(user, MapOp | CastOp | ReduceOp) and user.parent is cast.parent
        for user in users
    )
    return cast.input if together and len(users) == 1 else value


def _occupying(tiles: Sequence[SSAValue]) -> Iterator[SSAValue]:
    """Yield the tiles that take registers besides the others."""
    different = dict.fromkeys(tiles)
    yield from (tile for tile in different if _occupies(tile, different))


def _occupies(value: SSAValue, alive: Collection[SSAValue]) -> bool:
    """
    Whether a tile takes registers besides those of the other tiles alive.

    A result of an elementwise op before another one, or before a reduction, is computed
    with it, element by element, from a tile that is alive; one before a store never is
    whole. A product that is only added to a value accumulates into it.
    """
    op, users = value.owner, {use.operation for use in value.uses}
    if isinstance(op, FillOp):
        return any(isinstance(user, YieldOp) for user in users)
    if len(users) != 1:
        return True
    (user,) = users
    if isinstance(op, ContractOp):
        return not adds(user)
    if not isinstance(op, MapOp | CastOp):
        return True
    if isinstance(user, YieldOp):
        return not isinstance(user.parent_op(), SpatialOp)
    return not isinstance(user, MapOp | CastOp | ReduceOp) or (
        _computed_from(value) not in alive
    )


def _computed_from(value: SSAValue) -> SSAValue:
    """Return the tile at the start of a chain of elementwise ops, each used once."""
    while isinstance(op := value.owner, MapOp | CastOp):
        names, numbers = names_of(value), [v for v in op.operands if not is_boolean(v)]
        same = (v for v in numbers if names_of(v) == names)
        value = next(same, op.operands[0])
        if len({use.operation for use in value.uses}) > 1:
            break
    return value
