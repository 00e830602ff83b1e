"""The plan of `pad`: the number in the padding of each value, and masks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from comet.dialects.compound import (
    CastOp,
    ContractOp,
    ExtentOp,
    FillOp,
    IndexOp,
    MapOp,
    ReduceOp,
    RenameOp,
)
from comet.dialects.compound.dims import element_type_of, names_of
from comet.dialects.compound.elementary import neutral_of
from comet.dialects.errors import OpError
from comet.passes.graph.pad.padding_value import PaddingValue, padding_of_result

PADDED = (
    CastOp,
    ContractOp,
    ExtentOp,
    FillOp,
    IndexOp,
    MapOp,
    ReduceOp,
    RenameOp,
    ReturnOp,
)
"""The ops that may have a padded dimension."""


@dataclass(frozen=True)
class Mask:
    """A mask before `reader`: from there on, the padding of a value holds `number`."""

    reader: Operation
    operand: int
    number: float
    dims: tuple[str, ...]

    @property
    def value(self) -> SSAValue:
        """The operand of the reader."""
        return self.reader.operands[self.operand]


@dataclass(frozen=True)
class PadPlan:
    """The padded extents of a function, and the numbers in the padding."""

    true: Mapping[str, int]
    """The extent (elements) of each padded dimension in the signature."""
    padded: Mapping[str, int]
    """Its extent in the body."""
    arguments: Mapping[SSAValue, float]
    """The number in the padding of each argument with a padded dimension."""
    masks: tuple[Mask, ...]


def plan_padding(
    func: FuncOp, true: Mapping[str, int], padded: Mapping[str, int]
) -> PadPlan:
    """
    Choose the number in the padding of each value of a function.

    For an argument that an op reduces directly, it is the neutral element of the first
    such reduction; for other arguments 0. Raises PassFailedException for an op that
    cannot have a padded dimension.
    """
    block = func.body.block
    for op in block.ops:
        _check_op(func, op, padded)
    arguments: dict[SSAValue, float] = {
        value: 0.0 for value in block.args if padded.keys() & set(names_of(value))
    }
    for mask in reversed(tuple(_masks(block, padded, arguments))):
        if mask.value in arguments:
            arguments[mask.value] = mask.number
    masks = tuple(_masks(block, padded, arguments))
    return PadPlan(true, padded, arguments, masks)


def _check_op(func: FuncOp, op: Operation, padded: Mapping[str, int]) -> None:
    values = [v for nested in op.walk() for v in (*nested.operands, *nested.results)]
    having = padded.keys() & {name for value in values for name in names_of(value)}
    reshaped = isinstance(op, RenameOp) and not padded.keys().isdisjoint(op.reshaped)
    if having and (reshaped or not isinstance(op, PADDED)):
        raise OpError(
            op,
            f"pad: '{op.name}' of @{func.sym_name.data} has the dimension "
            f"{min(having)}, and what its padding would hold is not known; pad before "
            "stream and split, or other dimensions",
        )


def _masks(
    block: Block, padded: Mapping[str, int], arguments: Mapping[SSAValue, float]
) -> Iterator[Mask]:
    """Yield the masks that a function needs, given the numbers in its arguments."""
    paddings: dict[SSAValue, PaddingValue] = {
        value: {dim: arguments[value] for dim in names_of(value) if dim in padded}
        for value in block.args
    }
    for op in list(block.ops)[:-1]:
        for value, (number, dims) in _needs(op, padded, paddings).items():
            paddings[value] = {
                dim: number if dim in dims or current == number else None
                for dim, current in paddings[value].items()
            }
            yield Mask(op, op.operands.index(value), number, dims)
        paddings[op.results[0]] = padding_of_result(op, padded, paddings)


def _needs(
    op: Operation, padded: Mapping[str, int], paddings: Mapping[SSAValue, PaddingValue]
) -> dict[SSAValue, tuple[float, tuple[str, ...]]]:
    """Return the operands that need a mask before `op`: number and dimensions."""
    needs: dict[SSAValue, tuple[float, tuple[str, ...]]] = {}
    if isinstance(op, ReduceOp):
        number = neutral_of(op.kind.data, element_type_of(op.input))
        now = paddings[op.input]
        dims = tuple(d for d in op.reduced if d in padded and now[d] != number)
        if dims:
            needs[op.input] = number, dims
    if isinstance(op, ContractOp):
        for dim in (dim for dim in op.contracted if dim in padded):
            for value in _not_summable(op, dim, paddings):
                _, dims = needs.get(value, (0.0, ()))
                needs[value] = 0.0, (*dims, dim)
    return needs


def _not_summable(
    op: ContractOp, dim: str, paddings: Mapping[SSAValue, PaddingValue]
) -> Iterator[SSAValue]:
    """Yield the operands that need padding 0, so that terms along `dim` are 0."""
    numbers = {value: paddings[value][dim] for value in op.operands}
    unknown = [v for v, n in numbers.items() if n is None or not isfinite(n)]
    if unknown or 0.0 not in numbers.values():
        yield from unknown or (op.lhs,)
