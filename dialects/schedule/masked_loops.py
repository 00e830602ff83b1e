"""
Loops that a mask bounds: their last, or their first, iterations are fully masked.

That is so if a mask compares the positions along the loop with the last visible one
(causal attention, keys of several lengths) or with the first visible one (loops over
queries, for the gradients of keys). A mask is a selection by a comparison of positions,
or a term that grows with their distance. The analysis, an abstract interpretation of
the body, assumes that every element of an iteration is masked, and derives what is
known of each value then: a number, so low that its exponential is 0 (`LOW`), or
unknown. A mask bounds a loop if such an iteration changes none of the loop's results.
`bound-loops` writes these bounds into the IR; cost models use the analysis directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import BlockArgument, Operation, SSAValue, Use

from comet.dialects.compound import (
    CastOp,
    ContractOp,
    FillOp,
    IndexOp,
    MapKind,
    MapOp,
    ReduceKind,
    ReduceOp,
)
from comet.dialects.compound.dims import INTEGER_TENSOR, element_type_of, names_of
from comet.dialects.compound.map import COMPARISONS, fold_map, lowest_finite
from comet.dialects.schedule import CopyOp, TemporalOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.node import outside


class Masked(Enum):
    """The range of a value in a masked iteration, if it is not one number."""

    HIDDEN = auto()
    """Integers of -1 or less: minus the distance of positions from the visible ones."""
    LOW = auto()
    """Below all scores, so that the exponential is 0: see `hides`."""
    FAR = auto()
    """Computed from `LOW`, and perhaps as far from all scores, on either side."""


COMPARED: Mapping[MapKind, Masked | float] = {
    MapKind.SUB: Masked.HIDDEN,
    MapKind.GE: 0.0,
}
"""
The kinds of comparison of visible positions with others, and their value where masked.
"""
_UNBOUNDED = (Masked.LOW, Masked.FAR)
LEAST_SCALE = 2.0**-100
"""A factor from which on multiples of what is below all scores are below them, too."""
LAST, FIRST = 0, 1
"""The index of the operand that is the last, or the first, visible position."""


@dataclass(frozen=True)
class Visible:
    """The operands of a loop that a mask compares with positions, by index."""

    operand: int
    """The operand with the last, or the first, visible positions."""
    start: int | None = None
    """The operand whose first element is where the loop begins, None for 0."""


def last_visible(node: TemporalOp) -> Visible | None:
    """Return the last visible positions of a loop, None if it has none."""
    return _visible(node, LAST)


def first_visible(node: TemporalOp) -> Visible | None:
    """Return the first visible positions of a loop from position 0, or None."""
    found = _visible(node, FIRST)
    return found if found is not None and found.start is None else None


def visible_bounds(node: TemporalOp) -> tuple[Visible | None, Visible | None]:
    """
    Return the last and the first visible positions that may bound a loop, else None.

    Both only if they are integers: between fractions there may be no position, and
    where nothing is visible, no iteration is left out.
    """
    last, first = last_visible(node), first_visible(node)
    found = (each for each in (last, first) if each is not None)
    whole = all(is_whole(node.ins[each.operand]) for each in found)
    return last, first if last is None or whole else None


def is_whole(value: SSAValue) -> bool:
    """Whether elements of a value are integers."""
    return INTEGER_TENSOR.verifies(value.type)


def visible_conditions(node: TemporalOp) -> tuple[SSAValue, ...]:
    """
    Return the conditions of the mask of a loop, which are true where nothing is hidden.

    These are comparisons with the positions that bound the loop, and that are used only
    to select. Empty if the loop has two bounds, or none.
    """
    last, first = last_visible(node), first_visible(node)
    if (last is None) == (first is None):
        return ()
    side, bound = (LAST, last) if first is None else (FIRST, first)
    return tuple(
        condition
        for condition, masked, visible in _comparisons(node, side)
        if visible == bound
        and masked == COMPARED[MapKind.GE]
        and all(_selects(use, condition) for use in condition.uses)
    )


def _selects(use: Use, condition: SSAValue) -> bool:
    """Whether a use is a selection by a condition, with a case of the result's type."""
    op = use.operation
    return (
        isinstance(op, MapOp)
        and op.kind.data is MapKind.SELECT
        and op.inputs[0] is condition
        and op.inputs[1].type == op.result.type
    )


def _visible(node: TemporalOp, side: int) -> Visible | None:
    if len(node.loops) != 1 or node.with_args:
        return None
    for value, masked, visible in _comparisons(node, side):
        if _is_neutral(node, value, masked):
            return visible
    return None


def _comparisons(
    node: TemporalOp, side: int
) -> Iterator[tuple[SSAValue, Masked | float, Visible]]:
    """
    Yield comparisons of an operand with the positions along the loop.

    Each is (result, its value in a masked iteration, operands). The operand is on one
    side of the comparison, `LAST` or `FIRST`. Comparisons are conditions, or
    differences.
    """
    (loop,) = node.loops
    for op in node.body.block.ops:
        if not isinstance(op, MapOp) or op.kind.data not in COMPARED:
            continue
        if (compared := _read_whole(node, op.operands[side])) is None:
            continue
        found = _start(node, op.operands[1 - side], loop.dim)
        if found is not None:
            yield op.result, COMPARED[op.kind.data], Visible(compared, *found)


def _start(
    node: TemporalOp, position: SSAValue, dim: str
) -> tuple[()] | tuple[int] | None:
    """
    Return the operand with the first position along a loop; () for 0.

    None if these are no positions. They count from 0, in parts from an operand that is
    added to them, and in shards from where the shard begins: they are the operand then.
    """
    start: int | None
    if (index := _index_along(position, dim)) is not None:
        if index.whole is None:
            return ()
        start = _operand(node, _source(position))
    elif isinstance(add := position.owner, MapOp) and add.kind.data is MapKind.ADD:
        first, inside = add.operands
        index, start = _index_along(inside, dim), _read_whole(node, first)
        if index is None or index.whole is not None:
            return None
    else:
        return None
    return None if start is None else (start,)


def _read_whole(node: TemporalOp, value: SSAValue) -> int | None:
    """Return the operand of a node that a value is, if all iterations read it whole."""
    looped = {loop.dim for loop in node.loops}
    return None if looped & set(names_of(value)) else _operand(node, value)


def _operand(node: TemporalOp, value: SSAValue) -> int | None:
    """Return the operand of a node that a value in its body is."""
    if not isinstance(value, BlockArgument) or value.owner is not node.body.block:
        return None
    return value.index if value.index < len(node.ins) else None


def _source(value: SSAValue) -> SSAValue:
    """Return the value in the body of a node that `value` is a copy of."""
    while isinstance(copy := value.owner, CopyOp):
        value = copy.source
    return value


def copied_value(value: SSAValue) -> SSAValue:
    """Return the value outside all nodes that `value` is a tile or a copy of."""
    while isinstance(copy := value.owner, CopyOp):
        value = outside(copy.source)
    return outside(value)


def _index_along(value: SSAValue, dim: str) -> IndexOp | None:
    """Return the op of which a value is the index along `dim`, None for others."""
    if names_of(value) != (dim,):
        return None
    op = copied_value(value).owner
    return op if isinstance(op, IndexOp) else None


def hides(number: float, value: SSAValue) -> bool:
    """
    Whether `number` is below all scores, even if it is added to one.

    Scores are assumed to be within a quarter of the range of the element type, which is
    that of `value`. Integers and conditions are no scores.
    """
    element = element_type_of(value)
    return isinstance(element, AnyFloat) and number <= lowest_finite(element) / 4


def _is_low(known: Masked | float | None, value: SSAValue) -> bool:
    """Whether what is known of a value of the type of `value` is below all scores."""
    if isinstance(known, float):
        return hides(known, value)
    return known is Masked.LOW


def _lifts(known: Masked | float | None, op: MapOp) -> bool:
    """Whether a value that `op` adds to a hidden score, or subtracts, may unhide it."""
    subtracts = op.kind.data is MapKind.SUB
    if isinstance(known, float):
        return hides(known if subtracts else -known, op.result)
    return known is Masked.FAR or (subtracts and known is Masked.LOW)


def _is_neutral(node: TemporalOp, value: SSAValue, masked: Masked | float) -> bool:
    """Whether an iteration in which `value` is `masked` changes no result."""
    facts = _Facts({value: masked})
    for op in node.body.block.ops:
        facts.visit(op)
    folds = iter(node.region_iter_args)
    for value, combiner in zip(node.yielded, node.combiners, strict=True):
        match combiner:
            case Combiner.FOLD:
                neutral = facts.source(value) is next(folds)
            case Combiner.ADD:
                neutral = facts.known.get(value) == 0.0
            case Combiner.MAX:
                neutral = facts.known.get(value) is Masked.LOW
            case _:
                neutral = False
        if not neutral:
            return False
    return True


@dataclass
class _Facts:
    """The known values in a masked iteration."""

    known: dict[SSAValue, Masked | float]
    same: dict[SSAValue, SSAValue] = field(default_factory=dict)
    """Values that equal another one."""

    def source(self, value: SSAValue) -> SSAValue:
        """Return the first of equal values."""
        return self.same.get(value, value)

    def visit(self, op: Operation) -> None:
        """Derive what is known of the result of `op`."""
        match op:
            case FillOp():
                found = op.value.value.data
            case CastOp() if op.truncates:
                found = None
            case CastOp() | CopyOp():
                found = self._equal(op.operands[0])
            case ReduceOp():
                found = self._reduced(op)
            case ContractOp():
                zero = any(self.known.get(value) == 0.0 for value in op.operands)
                found = 0.0 if zero else None
            case MapOp():
                found = self._mapped(op)
            case _:
                found = None
        for result in op.results:
            if isinstance(found, SSAValue):
                self.same[result] = self.source(found)
            elif found is not None:
                self.known[result] = found
            elif any(self.known.get(self.source(v)) in _UNBOUNDED for v in op.operands):
                self.known[result] = Masked.FAR

    def _equal(self, value: SSAValue) -> Masked | float | SSAValue:
        return self.known.get(value, value)

    def _reduced(self, op: ReduceOp) -> Masked | float | None:
        known = self.known.get(op.operands[0])
        is_low = op.kind.data is ReduceKind.MAX and known is Masked.LOW
        is_zero = op.kind.data is ReduceKind.ADD and known == 0.0
        return known if is_low or is_zero else None

    def _mapped(self, op: MapOp) -> Masked | float | SSAValue | None:
        values = [self.source(value) for value in op.operands]
        known = [self.known.get(value) for value in values]
        match op.kind.data, known:
            case (MapKind.MIN, [Masked.HIDDEN, 0.0]):
                return Masked.HIDDEN
            case (MapKind.MAX, [Masked.HIDDEN, -1.0]):
                return -1.0
            case (MapKind.MULT, [-1.0, float(size)]) if hides(-size, op.result):
                return Masked.LOW
            case (MapKind.MULT, [Masked.LOW, float(size)]) if size >= LEAST_SCALE:
                return Masked.LOW
            case (MapKind.SELECT, [0.0, _, float(number)]) if hides(number, op.result):
                return Masked.LOW
            case (MapKind.SELECT, [0.0, _, _]):
                return self._equal(values[2])
            case (MapKind.SELECT, [_, one, other]) if _is_low(one, op.result):
                return Masked.LOW if _is_low(other, op.result) else None
            case (MapKind.SELECT, [_, float(one), float(other)]) if one == other:
                return one
            case (kind, [float(one), float(other)]) if kind in COMPARISONS:
                return fold_map(kind, (one, other))
            case (MapKind.SUB, _) if values[0] is values[1]:
                return 0.0
            case (MapKind.ADD, [Masked.LOW, other] | [other, Masked.LOW]) | (
                MapKind.SUB,
                [Masked.LOW, other],
            ) if not _lifts(other, op):
                return Masked.LOW
            case (MapKind.EXP | MapKind.EXP2, [Masked.LOW]):
                return 0.0
            case (MapKind.EXP | MapKind.EXP2, [0.0]):
                return 1.0
            case (MapKind.MAX, [_, Masked.LOW]) | (MapKind.ADD, [_, 0.0]):
                return self._equal(values[0])
            case (MapKind.MAX, [Masked.LOW, _]) | (MapKind.ADD, [0.0, _]):
                return self._equal(values[1])
            case (MapKind.MULT, [0.0, _] | [_, 0.0]) | (MapKind.DIV, [0.0, _]):
                return 0.0
            case (MapKind.NEG, [0.0]):
                return 0.0
            case (MapKind.MULT, [_, 1.0]):
                return self._equal(values[0])
            case _:
                return None
