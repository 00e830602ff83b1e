"""The number in the padding of the result of each op, by abstract interpretation."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import (
    CastOp,
    ContractOp,
    FillOp,
    MapKind,
    MapOp,
    ReduceKind,
    ReduceOp,
    RenameOp,
)
from comet.dialects.compound.dims import extents_of, names_of
from comet.dialects.compound.elementary import truncated
from comet.dialects.compound.map import ON_NUMBERS

PaddingValue: TypeAlias = Mapping[str, float | None]
"""The number in the padding along each padded dimension, None if unknown or several."""

_ELEMENTS = (1e300, -1e300)
"""
Two numbers that stand for all finite numbers but 0, as elements of other dimensions.

Functions of two operands except `eq` are monotonic in each operand (a quotient on each
side of 0): if both numbers give the same result, so do all numbers between them.
"""


def padding_of_result(
    op: Operation, dims: Collection[str], paddings: Mapping[SSAValue, PaddingValue]
) -> PaddingValue:
    """
    Return the number in the padding of the result of `op`, along each of `dims`.

    `paddings` has the numbers of the operands. An operand without the dimension is
    assumed to have finite elements, which are not 0 if it is a divisor.
    """
    names = [dim for dim in names_of(op.results[0]) if dim in dims]
    match op:
        case FillOp():
            return dict.fromkeys(names, op.value.value.data)
        case RenameOp():
            return {dim: paddings[op.input].get(op.origin[dim]) for dim in names}
        case CastOp():
            return {
                dim: _cast(op, number) for dim, number in paddings[op.input].items()
            }
        case MapOp():
            return {dim: _mapped(op, dim, paddings) for dim in names}
        case ReduceOp():
            return {dim: _reduced(op, paddings[op.input][dim]) for dim in names}
        case ContractOp():
            return {dim: _product(op, dim, paddings) for dim in names}
        case _:
            return dict.fromkeys(names)


def _cast(op: CastOp, number: float | None) -> float | None:
    """Return the number that a cast makes of the padding."""
    return number if number is None or not op.truncates else truncated(number)


def _mapped(
    op: MapOp, dim: str, paddings: Mapping[SSAValue, PaddingValue]
) -> float | None:
    """Return the number of a map along `dim`, None if it depends on elements."""
    operands = [_choices(value, dim, paddings) for value in op.inputs]
    function = ON_NUMBERS[op.kind.data]
    if op.kind.data is MapKind.SELECT:
        return _selected(*operands)
    if any(not choices for choices in operands):
        return None
    if op.kind.data is MapKind.EQ and any(len(choices) > 1 for choices in operands):
        return None
    found = {
        _computed(function, [choices[i % len(choices)] for choices in operands])
        for i in range(len(_ELEMENTS))
    }
    return found.pop() if len(found) == 1 else None


def _selected(
    condition: Sequence[float], then: Sequence[float], otherwise: Sequence[float]
) -> float | None:
    """Return the number of a selection: that of the case taken, or of both cases."""
    cases = (then, otherwise)
    if len(condition) == 1:
        cases = (then if condition[0] else otherwise,)
    numbers = {number for case in cases for number in case}
    return numbers.pop() if all(cases) and len(numbers) == 1 else None


def _choices(
    value: SSAValue, dim: str, paddings: Mapping[SSAValue, PaddingValue]
) -> tuple[float, ...]:
    """Return numbers that `value` may have in the padding, empty if unknown."""
    if isinstance(value.owner, FillOp):
        return (value.owner.value.value.data,)
    if dim not in names_of(value):
        return _ELEMENTS
    number = paddings[value].get(dim)
    return () if number is None else (number,)


def _computed(function: Callable[..., float], numbers: Sequence[float]) -> float | None:
    try:
        number = function(*numbers)
    except (ArithmeticError, ValueError):
        return None
    return None if math.isnan(number) else number


def _reduced(op: ReduceOp, number: float | None) -> float | None:
    """Return the reduction of a tensor that has `number` everywhere."""
    if number is None or op.kind.data is ReduceKind.MAX:
        return number
    extents = extents_of(op.input)
    return number * math.prod(extents[dim] for dim in op.reduced)


def _product(
    op: ContractOp, dim: str, paddings: Mapping[SSAValue, PaddingValue]
) -> float | None:
    """Return 0 if one operand has 0 in its padding and the other is finite."""
    choices = [_choices(value, dim, paddings) for value in op.operands]
    zero = all(choices) and any(set(numbers) == {0.0} for numbers in choices)
    return 0.0 if zero and all(map(math.isfinite, sum(choices, ()))) else None
