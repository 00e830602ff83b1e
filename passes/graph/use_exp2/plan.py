"""
Which values are best computed as multiples of log2 e.

e^x = 2^(x log2 e), and the factor goes through whatever x is computed by: sums,
differences, maxima, selections, reductions and folds of multiples are multiples. A
constant takes it for nothing, other values in a multiplication. So each op is on
one of two sides, and where an op and one that reads it are on different sides, that
costs a multiplication: the cheapest choice is a minimum cut (`minimum_cut`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from math import e, inf, log2, prod
from typing import TypeAlias

from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use
from xdsl.traits import IsTerminator

from comet.dialects.collective import CollectiveOp
from comet.dialects.compound import FoldOp, MapKind, MapOp, ReduceOp, RenameOp
from comet.dialects.compound.dims import (
    element_type_of,
    extents_of,
    float_type_of,
    joined_extents,
)
from comet.dialects.compound.fold import YieldOp
from comet.dialects.compound.map import constant_of, lowest_finite
from comet.passes.analysis.minimum_cut import minimum_cut

FACTOR = log2(e)
"""What the argument of `exp` is multiplied by to be that of `exp2`."""
SCALING = 2
"""
Additions for each element of a value that is multiplied: the product by log2 e, and a
maximum that keeps finite what is as low as can be.
"""

CARRYING = (MapKind.ADD, MapKind.SUB, MapKind.MAX, MapKind.MIN, MapKind.COPY)
"""Functions of multiples whose result is the same multiple."""
PRODUCTS = (MapKind.MULT, MapKind.DIV)
"""Functions whose result is a multiple if one operand is."""
SCALABLE = (*CARRYING, *PRODUCTS, MapKind.SELECT, MapKind.NEG)
"""Functions whose result may be a multiple."""

Node: TypeAlias = Hashable
"""
What decides whether values are multiples: an op, or an iter_arg or input of a fold.
"""
Edge: TypeAlias = tuple[Node, Node, float]
"""From, to, and what it costs if only the first one is a multiple."""
MULTIPLE = "multiple"
"""The side of the cut with the ops that read and make multiples."""
AS_IT_IS = "as it is"
"""The other side, and all values that cannot be multiples."""


@dataclass(frozen=True)
class Exp2Plan:
    """The exponentials that become powers of two, and the values that are scaled."""

    exps: tuple[MapOp, ...]
    negations: tuple[MapOp, ...]
    """Those that become products with -log2 e."""
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
    Return which exponentials of a function become powers of two.

    `costs` are those of `exp` and `exp2`, in additions an element. With `every` all do
    that can, also if nothing is saved.
    """
    values, gain = _values(func), costs["exp"] - costs["exp2"]
    counts = {op: _count(op) for op in map(_exponential, values) if op}
    gains = {op: gain * count for op, count in counts.items()}
    forced = dict.fromkeys(gains, inf) if every else gains
    edges: list[Edge] = [(MULTIPLE, op, saved) for op, saved in forced.items()]
    edges += [edge for value in values for edge in _edges(value)]
    side, _ = minimum_cut(edges, MULTIPLE, AS_IT_IS)
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
    """Return the values that are precise enough to be rounded as multiples."""
    made = [result for op in func.walk() for result in op.results]
    blocks = [block for op in func.walk() for block in _blocks(op)]
    values = [*(arg for block in blocks for arg in block.args), *made]
    return [value for value in values if _is_precise(value)]


def _blocks(op: Operation) -> Iterator[Block]:
    for region in op.regions:
        yield from region.blocks


def _is_precise(value: SSAValue) -> bool:
    return isinstance(element_type_of(value), Float32Type | Float64Type)


def _exponential(value: SSAValue) -> MapOp | None:
    """Return the op whose result a value is, None if that is no exponential."""
    op = value.owner
    return op if isinstance(op, MapOp) and op.kind.data is MapKind.EXP else None


def _count(op: MapOp) -> float:
    """Return the elements of an exponential; few programs merge partial results."""
    fold = op.parent_op()
    merges = isinstance(fold, FoldOp) and op.parent is fold.merge.block
    return 0.0 if merges else _elements(op.result)


def _edges(value: SSAValue) -> Iterator[Edge]:
    """
    Yield what it costs if a value is on another side than one of its readers.

    Only what is returned is divided. A quotient is rounded, so that what others compute
    of the multiple would not agree with it.
    """
    maker = maker_of(value)
    for use in value.uses:
        reader, returned = reader_of(use), use.operation.has_trait(IsTerminator)
        if reader != AS_IT_IS:
            yield reader, maker, _cost(use)
        if maker != AS_IT_IS:
            yield maker, reader, _cost(use) if returned else inf


def _differing(
    value: SSAValue, side: Collection[Node], multiplied: bool
) -> Iterator[Use]:
    """Yield the uses that need a value multiplied, or divided, by log2 e."""
    made = maker_of(value) in side
    for use in value.uses:
        read = reader_of(use) in side
        if made != read and multiplied == (read != _is_divisor(use)):
            yield use


def maker_of(value: SSAValue) -> Node:
    """Return the node that decides whether a value is a multiple."""
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
            return AS_IT_IS


def _argument_of_fold(fold: FoldOp, value: SSAValue) -> Node:
    """Return the node of an argument of a region of a fold."""
    assert isinstance(value, BlockArgument)
    inputs = len(fold.ins) if value.owner is fold.step.block else 0
    if value.index < inputs:
        return fold, "input", value.index
    return fold, "iter_arg", (value.index - inputs) % len(fold.outs)


def reader_of(use: Use) -> Node:
    """Return the node that decides whether a use reads a multiple."""
    op, index = use.operation, use.index
    match op:
        case MapOp() if op.kind.data in PRODUCTS:
            return op if index == _scaled_operand(op) else AS_IT_IS
        case MapOp() if op.kind.data is MapKind.NEG:
            return AS_IT_IS
        case MapOp() if op.kind.data in SCALABLE or op.kind.data is MapKind.EXP:
            return op if _is_precise(op.results[0]) else AS_IT_IS
        case CollectiveOp() | ReduceOp() | RenameOp():
            return op
        case FoldOp():
            inputs = len(op.ins)
            kind = "input" if index < inputs else "iter_arg"
            return op, kind, index - (inputs if kind == "iter_arg" else 0)
        case YieldOp() if isinstance(fold := op.parent_op(), FoldOp):
            return fold, "iter_arg", index
        case _:
            return AS_IT_IS


def _scaled_operand(op: MapOp) -> int:
    """
    Return which operand of a product or quotient is a multiple if the result is.

    That is a constant whose multiple is finite, or else the smaller factor, or the
    dividend.
    """
    values, kind = list(op.inputs), op.kind.data
    numbers = [constant_of(value) for value in values]
    for index, (value, number) in enumerate(zip(values, numbers, strict=True)):
        if number is not None and _is_finite(number * FACTOR, value):
            return index
    if kind is MapKind.DIV or numbers[1] is not None:
        return 0
    return 0 if _elements(values[0]) < _elements(values[1]) else 1


def _is_finite(number: float, value: SSAValue) -> bool:
    """Whether a number is finite in the element type of a value."""
    return abs(number) <= -lowest_finite(float_type_of(value))


def _is_divisor(use: Use) -> bool:
    """Whether a use is the divisor of a quotient."""
    op = use.operation
    return isinstance(op, MapOp) and op.kind.data is MapKind.DIV and use.index == 1


def _cost(use: Use) -> float:
    """
    Return what it costs to scale a value for a reader, in additions.

    Each reader has its own product, as kernels compute such things again.
    """
    value = use.operation.operands[use.index]
    return 0.0 if constant_of(value) is not None else SCALING * _elements(value)


def _elements(value: SSAValue) -> float:
    """
    Return the number of elements of a value, over all steps.

    Folds that go element by element have chunks of one.
    """
    fold, steps = value.owner.parent_op(), 1
    if isinstance(fold, FoldOp) and fold.element_by_element:
        steps = joined_extents(fold.ins)[fold.dim.data]
    return float(prod(extents_of(value).values()) * steps)
