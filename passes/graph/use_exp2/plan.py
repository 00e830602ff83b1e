"""
Which values are best computed as multiples of log2 e.

e^x = 2^(x log2 e), and the factor can move to the values that x is computed from: sums,
differences, maxima, selections, reductions and folds of multiples are multiples. A
constant is scaled for free, another value by a multiplication. So each op is on one of
two sides, scaled or not, and a use across the sides costs a multiplication: the
cheapest choice is a minimum cut (`minimum_cut`).

Hidden scores are a very low number, or minus infinity. A row of only low numbers has
the difference 0 from its maximum, and a row of only infinities has NaN. No cheap
scaling keeps both, as multiples of the low number overflow. So before a maximum only
constants and factors are scaled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import e, inf, log2
from typing import TypeAlias, TypeGuard

from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use
from xdsl.traits import IsTerminator

from comet.dialects.blocks import values_in
from comet.dialects.collective import (
    AllReduceOp,
    CollectiveOp,
    ReduceScatterOp,
    RootReduceOp,
    SpmdOp,
)
from comet.dialects.collective.spmd import region_states
from comet.dialects.compound import (
    FoldOp,
    MapKind,
    MapOp,
    ReduceKind,
    ReduceOp,
    RenameOp,
)
from comet.dialects.compound.dims import (
    element_type_of,
    elements_of,
    float_type_of,
    joined_extents,
)
from comet.dialects.compound.fold import YieldOp
from comet.dialects.compound.map import constant_of, lowest_finite
from comet.digraph import reachable
from comet.passes.analysis.minimum_cut import minimum_cut

FACTOR = log2(e)
"""exp(x) = exp2(FACTOR * x)."""
SCALING = 2
"""
Operations to scale an element of a value: the product by log2 e, and a maximum with the
lowest finite number, so that low numbers do not overflow. An exponential needs no
maximum: 2 to the power of minus infinity is 0, as e to the power of a low number is.
"""

CARRYING = (MapKind.ADD, MapKind.SUB, MapKind.MAX, MapKind.MIN, MapKind.COPY)
"""Functions that commute with the scaling of all operands."""
PRODUCTS = (MapKind.MULT, MapKind.DIV)
"""Functions whose result is scaled if one operand is."""
SCALABLE = (*CARRYING, *PRODUCTS, MapKind.SELECT, MapKind.NEG)
"""Functions whose result may be scaled."""

Node: TypeAlias = Hashable
"""
A node of the graph that is cut: an op, or an iter_arg or an input of a fold.
"""
Edge: TypeAlias = tuple[Node, Node, float]
"""From, to, and the cost if only the first node is on the scaled side."""
SCALED = "scaled"
"""The source of the cut, on the side of the ops that compute scaled values."""
UNSCALED = "unscaled"
"""The sink of the cut, which also stands for all values that cannot be scaled."""


@dataclass(frozen=True)
class Exp2Plan:
    """The exponentials that become powers of two, and the values that are scaled."""

    exps: tuple[MapOp, ...]
    negations: tuple[MapOp, ...]
    """Negations that become products with -log2 e."""
    multiplied: tuple[Use, ...]
    """Uses that read a value, or a constant, times log2 e instead."""
    divided: tuple[Use, ...]
    """Uses that read a value, or a constant, divided by log2 e instead."""
    operations: float
    """Operations of the function's exponentials before, in additions."""
    saved: float
    """How many fewer operations there are, in additions."""


def plan_exp2(
    func: FuncOp, costs: Mapping[str, float], *, every: bool = False
) -> Exp2Plan:
    """
    Return the exponentials of a function that become powers of two.

    `costs` are those of `exp` and `exp2`, in additions per element. With `every`, all
    exponentials do that can, even if that saves nothing.
    """
    values, gain = _values(func), costs["exp"] - costs["exp2"]
    partial = _partial_values(func)
    ops = [value.owner for value in values]
    counts = {op: _count(op) for op in ops if is_exponential(op)}
    gains = {op: gain * count for op, count in counts.items()}
    forced = dict.fromkeys(gains, inf) if every else gains
    edges: list[Edge] = [(SCALED, op, saved) for op, saved in forced.items()]
    maxima = _before_maxima(values)
    edges += [edge for value in values for edge in _edges(value, partial, maxima)]
    side, _ = minimum_cut(edges, SCALED, UNSCALED)
    multiplied = [use for value in values for use in _differing(value, side, True)]
    divided = [use for value in values for use in _differing(value, side, False)]
    chosen = [op for op in func.walk() if isinstance(op, MapOp) and op in side]
    return Exp2Plan(
        exps=tuple(op for op in chosen if op.kind.data is MapKind.EXP),
        negations=tuple(op for op in chosen if op.kind.data is MapKind.NEG),
        multiplied=tuple(multiplied),
        divided=tuple(divided),
        operations=costs["exp"] * sum(counts.values()),
        saved=sum(saved for op, saved in gains.items() if op in side)
        - sum(map(_cost, (*multiplied, *divided))),
    )


def _values(func: FuncOp) -> list[SSAValue]:
    """Return the values of f32 and f64: scaling rounds them, which costs precision."""
    return [value for value in values_in(func.body.block) if _is_precise(value)]


def _is_precise(value: SSAValue) -> bool:
    return isinstance(element_type_of(value), Float32Type | Float64Type)


def is_exponential(op: Operation | Block) -> TypeGuard[MapOp]:
    """Whether an op is e^x."""
    return isinstance(op, MapOp) and op.kind.data is MapKind.EXP


def _count(op: MapOp) -> float:
    """Return the elements of an exponential; 0 in a merge, which runs rarely."""
    fold = op.parent_op()
    merges = isinstance(fold, FoldOp) and op.parent is fold.merge.block
    return 0.0 if merges else _elements(op.result)


def _partial_values(func: FuncOp) -> set[SSAValue]:
    """Return the values that a collective has to reduce: no product reads them."""
    regions = (op for op in func.walk() if isinstance(op, SpmdOp))
    states = (item for region in regions for item in region_states(region).items())
    return {value for value, state in states if state.partial}


def _before_maxima(values: Sequence[SSAValue]) -> set[Node]:
    """Return the maxima, and the nodes whose results they read as multiples."""
    producers: defaultdict[Node, set[Node]] = defaultdict(set)
    for value in values:
        for consumer in map(consumer_of, value.uses):
            if consumer != UNSCALED:
                producers[consumer].add(producer_of(value))
    maxima = [value.owner for value in values if _is_maximum(value.owner)]
    return set(reachable(maxima, producers.__getitem__)) - {UNSCALED}


def _is_maximum(op: Operation | Block) -> bool:
    match op:
        case MapOp():
            return op.kind.data is MapKind.MAX
        case ReduceOp() | AllReduceOp() | ReduceScatterOp() | RootReduceOp():
            return op.kind.data is ReduceKind.MAX
        case _:
            return False


def _edges(
    value: SSAValue, partial: Collection[SSAValue], maxima: Collection[Node]
) -> Iterator[Edge]:
    """
    Yield the edges between the defining op of a value and its readers.

    Only values that are returned may be divided again. A quotient is rounded, so ops
    that read it would not agree with ops that read the scaled value.
    """
    producer = producer_of(value)
    for use in value.uses:
        consumer, returned = consumer_of(use), use.operation.has_trait(IsTerminator)
        kept = value in partial or (consumer in maxima and not _is_number(use))
        if consumer != UNSCALED:
            yield consumer, producer, inf if kept else _cost(use)
        if producer != UNSCALED:
            yield producer, consumer, _cost(use) if returned else inf


def _is_number(use: Use) -> bool:
    """Whether a use reads a constant, or a factor beside another value."""
    op = use.operation
    if constant_of(op.operands[use.index]) is not None:
        return True
    is_product = isinstance(op, MapOp) and op.kind.data in PRODUCTS
    return is_product and all(constant_of(value) is None for value in op.operands)


def _differing(
    value: SSAValue, side: Collection[Node], multiplied: bool
) -> Iterator[Use]:
    """Yield the uses of a value across the cut, to be multiplied, or to be divided."""
    producer_inside = producer_of(value) in side
    for use in value.uses:
        inside = consumer_of(use) in side
        if producer_inside == inside:
            continue
        if multiplied == (inside != _is_divisor(use)):
            yield use


def producer_of(value: SSAValue) -> Node:
    """Return the node that decides whether a value is scaled."""
    match op := value.owner:
        case MapOp() if op.kind.data in SCALABLE:
            return op
        case CollectiveOp() | ReduceOp() | RenameOp():
            return op
        case FoldOp():
            return op, "iter_arg", op.results.index(value)
        case Block() if isinstance(fold := op.parent_op(), FoldOp):
            return _argument_of_fold(fold, value)
        case _:
            return UNSCALED


def _argument_of_fold(fold: FoldOp, value: SSAValue) -> Node:
    """Return the node of a block argument of a fold."""
    assert isinstance(value, BlockArgument)
    inputs = len(fold.ins) if value.owner is fold.step.block else 0
    if value.index < inputs:
        return fold, "input", value.index
    return fold, "iter_arg", (value.index - inputs) % len(fold.outs)


def consumer_of(use: Use) -> Node:
    """Return the node that decides whether a use reads a scaled value."""
    op, index = use.operation, use.index
    match op:
        case MapOp() if op.kind.data in PRODUCTS:
            return op if index == _scaled_operand(op) else UNSCALED
        case MapOp() if op.kind.data is MapKind.NEG:
            return UNSCALED
        case MapOp() if op.kind.data in SCALABLE or op.kind.data is MapKind.EXP:
            return op if _is_precise(op.results[0]) else UNSCALED
        case CollectiveOp() | ReduceOp() | RenameOp():
            return op
        case FoldOp():
            inputs = len(op.ins)
            kind = "input" if index < inputs else "iter_arg"
            return op, kind, index - (inputs if kind == "iter_arg" else 0)
        case YieldOp() if isinstance(fold := op.parent_op(), FoldOp):
            return fold, "iter_arg", index
        case _:
            return UNSCALED


def _scaled_operand(op: MapOp) -> int:
    """
    Return which operand of a product or quotient is scaled if the result is.

    That is a constant whose multiple is finite; else the dividend, or the smaller
    factor of a product: of equal ones, one that is computed from what may be scaled.
    """
    values, kind = list(op.inputs), op.kind.data
    numbers = [constant_of(value) for value in values]
    for index, (value, number) in enumerate(zip(values, numbers, strict=True)):
        if number is not None and _is_finite(number * FACTOR, value):
            return index
    if kind is MapKind.DIV or numbers[1] is not None:
        return 0
    first, second = ((_elements(v), producer_of(v) == UNSCALED) for v in values)
    return 0 if first < second else 1


def _is_finite(number: float, value: SSAValue) -> bool:
    """Whether a number is finite in the element type of a value."""
    return abs(number) <= -lowest_finite(float_type_of(value))


def _is_divisor(use: Use) -> bool:
    """Whether a use is the divisor of a quotient."""
    op = use.operation
    return isinstance(op, MapOp) and op.kind.data is MapKind.DIV and use.index == 1


def _cost(use: Use) -> float:
    """
    Return the cost to scale a value for a reader, in additions.

    Each reader has its own product, as kernels recompute such values.
    """
    value = use.operation.operands[use.index]
    if constant_of(value) is not None:
        return 0.0
    return (1 if is_exponential(use.operation) else SCALING) * _elements(value)


def _elements(value: SSAValue) -> float:
    """
    Return the number of elements of a value; in a fold by element, over all steps.
    """
    fold, steps = value.owner.parent_op(), 1
    if isinstance(fold, FoldOp) and fold.element_by_element:
        steps = joined_extents(fold.ins)[fold.dim.data]
    return float(elements_of(value) * steps)
