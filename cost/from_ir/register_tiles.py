"""
Which of the live tiles take registers while an op of a GPU kernel runs.

A chain of elementwise ops is computed element by element, so that its intermediate
results are never in registers as whole tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache

from xdsl.ir import BlockArgument, Operation, SSAValue

from comet.dialects.blocks import backward_slice
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    Elementwise,
    FillOp,
    MapKind,
    MapOp,
    ReduceKind,
    ReduceOp,
)
from comet.dialects.compound.dims import is_boolean, level_of, names_of
from comet.dialects.schedule import SpatialOp, TemporalOp, YieldOp
from comet.dialects.schedule.accumulators import (
    is_addition,
    is_continued,
    sum_with,
    summands,
)
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.late_loads import late_loads
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import loads, stores


class RegisterTiles:
    """
    Finds the tiles that take registers; results are cached by value.

    `with_products`: the kernel has contractions. `whole`: ops are computed on whole
    tiles, one after the other. Tiles in shared memory are included.
    """

    def __init__(self, *, with_products: bool, whole: bool = False):
        self._with_products = with_products
        self._source = cache(_source_of_whole if whole else _source)
        self._stored_second = cache(_is_stored_after_its_source)
        self._narrow = cache(_itself if whole else _before_widening)
        self._accumulator = cache(_accumulator)

    def during(self, op: Operation, alive: Sequence[SSAValue]) -> Iterable[SSAValue]:
        """Return the tiles that take registers during `op`: `alive`, and results."""
        # An elementwise op's result replaces the operand that it is the last to use;
        # where layouts change, a cast is computed by parts only for some users.
        replaces = isinstance(op, MapOp if self._with_products else Elementwise)
        return self.before(op, (*alive, *(() if replaces else op.results)))

    def before(self, op: Operation, alive: Sequence[SSAValue]) -> Iterable[SSAValue]:
        """Return which of the live tiles take registers just before `op`."""
        different, source = dict.fromkeys(map(self._accumulator, alive)), self._source
        tiles = [
            tile
            for tile in different
            if (needed := source(tile)) is None
            or needed not in different
            or (self._with_products and self._stored_second(tile))
        ]
        if not isinstance(op, NodeOp):
            return dict.fromkeys(map(self._narrow, tiles))
        return tiles


def broadcast_during(op: Operation) -> Iterator[SSAValue]:
    """Yield the operands that an elementwise op broadcasts."""
    if isinstance(op, MapOp):
        dims = names_of(op.result)
        yield from _occupying([v for v in op.operands if names_of(v) != dims])


def kept_vectors(loop: TemporalOp) -> Iterator[SSAValue]:
    """
    Yield the loop-invariant operands that elementwise ops in a loop broadcast.

    Triton widens them and converts them to the layout of the result before the loop.
    """
    late = cache(late_loads)
    for op in loop.walk():
        for value in broadcast_during(op):
            if _enters(value, loop, late):
                yield value


def converted_tiles(
    loop: NodeOp, registers: str, *, stored: bool
) -> Iterator[SSAValue]:
    """
    Yield the tiles that a loop loads and stores in the layout of an earlier product.

    Values that are computed with row statistics of a product get the layout of that
    product, but loads and stores have another layout (kernels that Triton 3.6 to 3.9
    compile for sm_90). `registers` is the level of row statistics. Without `stored`,
    stores keep the layout of the product, as for gfx942.
    """
    if not isinstance(loop, TemporalOp):
        return
    held = [value for value in loop.ins if level_of(value) == registers]
    has_products = held and any(isinstance(op, ContractOp) for op in loop.walk())
    if not has_products and any(map(_is_of_product, held)):
        borders = (*loads(loop), *(stores(loop) if stored else ()))
        moved = (border.tile for border in borders)
        yield from (tile for tile in moved if len(names_of(tile)) > 1)


def _is_of_product(value: SSAValue) -> bool:
    """Return whether a value depends on a product through values in registers."""
    owners = (each.owner for each in backward_slice(value))
    ops = (owner for owner in owners if isinstance(owner, Operation))
    return any(isinstance(inner, ContractOp) for op in ops for inner in op.walk())


def _enters(
    value: SSAValue, loop: TemporalOp, late: Callable[[NodeOp], Container[SSAValue]]
) -> bool:
    """
    Return whether a value, or the operand of its casts, is loop-invariant.

    `late` gives the tiles that a node loads after a loop in it.
    """
    while not isinstance(value, BlockArgument):
        if not isinstance(value.owner, CastOp):
            return False
        value = value.owner.input
    node = value.block.parent_op()
    if not isinstance(node, TemporalOp) or value.index >= len(ins := node.ins):
        return False
    changed = not node.factors.keys().isdisjoint(names_of(value))
    if changed or value in late(node):
        return False
    return node is loop or _enters(ins[value.index], loop, late)


def accumulators(op: NodeOp) -> Iterator[SSAValue]:
    """
    Yield the yielded values with an accumulator, which is alive in the whole body.

    Not those of folds, whose accumulators are iter_args.
    """
    for value, combiner in zip(op.yielded, op.combiners, strict=True):
        if combiner not in (Combiner.NONE, Combiner.FOLD):
            yield value


def continued(op: NodeOp, inner: NodeOp) -> Iterator[SSAValue]:
    """Yield the accumulators in a node that an inner loop continues to sum into."""
    for value in inner.outs:
        if (total := sum_with(value)) is not None:
            yield from (total, *summands(total))
        elif isinstance(op, TemporalOp) and is_continued(op, value):
            yield value


def _accumulator(value: SSAValue) -> SSAValue:
    """Return the sum whose accumulator holds a product, else `value`."""
    total = sum_with(value)
    return value if total is None else total


def _before_widening(value: SSAValue) -> SSAValue:
    """
    Return the operand if `value` is a cast that is not in registers yet, else `value`.

    Products have another layout than loads. Triton converts the layout of a loaded tile
    before a cast. If one op reads the cast, in the same body, that op widens the tile
    element by element. In kernels without products no layout is converted, and tiles
    are widened right after the load.
    """
    cast, users = value.owner, [use.operation for use in value.uses]
    if not isinstance(cast, CastOp) or cast.added_bits <= 0:
        return value
    if len(users) != 1 or users[0].parent is not cast.parent:
        return value
    return cast.input if isinstance(users[0], Elementwise | ReduceOp) else value


def _occupying(tiles: Sequence[SSAValue]) -> Iterator[SSAValue]:
    """Yield the tiles that take registers of their own among `tiles`."""
    different = dict.fromkeys(tiles)
    yield from (tile for tile in different if _source(tile) not in different)


def _source(value: SSAValue) -> SSAValue | None:
    """
    Return the tile that has to be alive for `value` to take no registers, or None.

        It takes none if its only reader is elementwise or a reduction, which computes
        it
    element by element from a live tile; and none if an elementwise op computes it for a
    store. A product that is only added to a value accumulates into that value.

    """
    op, users = value.owner, {use.operation for use in value.uses}
    if isinstance(op, FillOp):
        yielded = any(isinstance(user, YieldOp) for user in users)
        return None if yielded else value
    if len(users) != 1:
        return None
    (user,) = users
    if isinstance(op, ContractOp):
        return value if is_addition(user) else None
    if not isinstance(op, Elementwise):
        return None
    if isinstance(user, YieldOp):
        return value if isinstance(user.parent_op(), SpatialOp) else None
    read = isinstance(user, Elementwise | ReduceOp)
    return _computed_from(value) if read else None


def _source_of_whole(value: SSAValue) -> SSAValue | None:
    """
    Return the same where ops are computed on whole tiles, one after the other.

    An elementwise result is then in registers until it is read, unless it is a
    condition, is computed for a store, or is a product that is only added: both are one
    instruction. Read in live ranges of kernels on rows that Triton 3.9 compiles for
    gfx942: LLVM widens 91 of 128 loaded elements before it adds most pairs of them, and
    has the exponentials of a row before it adds them.
    """
    source = _source(value)
    if source in (None, value) or is_boolean(value):
        return source
    (user,) = {use.operation for use in value.uses}
    return source if isinstance(user, YieldOp) or _is_fused(value, user) else None


def _is_fused(value: SSAValue, user: Operation) -> bool:
    """Return whether `value` is a product that a multiply-add computes in its user."""
    if not isinstance(op := value.owner, MapOp) or op.kind.data is not MapKind.MULT:
        return False
    added = isinstance(user, ReduceOp) and user.kind.data is ReduceKind.ADD
    return added or is_addition(user)


def _itself(value: SSAValue) -> SSAValue:
    return value


def _is_stored_after_its_source(value: SSAValue) -> bool:
    """
    Return whether an elementwise result and what it is computed from are both stored.

    Both are alive when the first is stored: for sm_90 a product's layout is converted
    for a store, which takes whole tiles, and for gfx942 LLVM keeps the order of ops on
    whole tiles. Read in GEMM kernels with bias and GELU that store the argument of
    GELU, too, compiled by Triton 3.6 for sm_90 and by 3.9 for gfx942.
    """
    # Of a cast, the operand is the tile that is alive.
    if not isinstance(value.owner, Elementwise) or isinstance(value.owner, CastOp):
        return False
    source = _computed_from(value)
    return source is not value and _is_stored(value) and _is_stored(source)


def _is_stored(value: SSAValue) -> bool:
    """Return whether a program stores a value, or a cast of it."""
    return any(
        _is_stored(user.results[0])
        if isinstance(user, CastOp)
        else isinstance(user, YieldOp) and isinstance(user.parent_op(), SpatialOp)
        for user in {use.operation for use in value.uses}
    )


def _computed_from(value: SSAValue) -> SSAValue:
    """Return the first tile of the chain of elementwise ops that computes `value`."""
    while isinstance(op := value.owner, Elementwise):
        names, numbers = names_of(value), [v for v in op.operands if not is_boolean(v)]
        same = (v for v in numbers if names_of(v) == names)
        value = next(same, op.operands[0])
        if len({use.operation for use in value.uses}) > 1:
            break
    return value
