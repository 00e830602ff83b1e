"""What padding holds: the number of each elementary op's result beyond the true end."""

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
from comet.dialects.compound.map import ON_NUMBERS

Held: TypeAlias = Mapping[str, float | None]
"""The number in the padding of each padded dimension; None: not one, or not known."""

_ELEMENTS = (1e300, -1e300)
"""
Stand for elements along other dimensions, which may be any finite numbers but 0.

Functions of two operands but `eq` are monotonic in each, a quotient on each side of 0:
if both give one number, all numbers between them do.
"""


def result_holds(
    op: Operation, dims: Collection[str], held: Mapping[SSAValue, Held]
) -> Held:
    """
    Return what the padding of the result of `op` along each of `dims` holds.

    `held` has the operands. Elements of an operand without the dimension are assumed to
    be finite, and no divisor among them to be 0.
    """
    names = [dim for dim in names_of(op.results[0]) if dim in dims]
    match op:
        case FillOp():
            return dict.fromkeys(names, op.value.value.data)
        case RenameOp():
            return {dim: held[op.input].get(op.origin[dim]) for dim in names}
        case CastOp():
            return held[op.input]
        case MapOp():
            return {dim: _mapped(op, dim, held) for dim in names}
        case ReduceOp():
            return {dim: _reduced(op, held[op.input][dim]) for dim in names}
        case ContractOp():
            return {dim: _product(op, dim, held) for dim in names}
        case _:
            return dict.fromkeys(names)


def _mapped(op: MapOp, dim: str, held: Mapping[SSAValue, Held]) -> float | None:
    """Return the number of a map along `dim` if it does not depend on elements."""
    operands = [_choices(value, dim, held) for value in op.inputs]
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
    """Return the number of a selection: of what it takes, or of both cases."""
    cases = (then, otherwise)
    if len(condition) == 1:
        cases = (then if condition[0] else otherwise,)
    numbers = {number for case in cases for number in case}
    return numbers.pop() if all(cases) and len(numbers) == 1 else None


def _choices(
    value: SSAValue, dim: str, held: Mapping[SSAValue, Held]
) -> tuple[float, ...]:
    """Return numbers that `value` may have in the padding; none if that is unknown."""
    if isinstance(value.owner, FillOp):
        return (value.owner.value.value.data,)
    if dim not in names_of(value):
        return _ELEMENTS
    number = held[value].get(dim)
    return () if number is None else (number,)


def _computed(function: Callable[..., float], numbers: Sequence[float]) -> float | None:
    try:
        number = function(*numbers)
    except (ArithmeticError, ValueError):
        return None
    return None if math.isnan(number) else number


def _reduced(op: ReduceOp, number: float | None) -> float | None:
    """Return the reduction of `number`, along dimensions that `op` reduces."""
    if number is None or op.kind.data is ReduceKind.MAX:
        return number
    extents = extents_of(op.input)
    return number * math.prod(extents[dim] for dim in op.reduced)


def _product(op: ContractOp, dim: str, held: Mapping[SSAValue, Held]) -> float | None:
    """Return 0 if an operand holds it and the other one is finite."""
    choices = [_choices(value, dim, held) for value in op.operands]
    zero = all(choices) and any(set(numbers) == {0.0} for numbers in choices)
    return 0.0 if zero and all(map(math.isfinite, sum(choices, ()))) else None
