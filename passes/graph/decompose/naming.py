"""
The dimension names that `decompose` gives to the axes of all values.

An axis of a value is the same dimension as that of the op that uses or defines the
value. Two dimensions of one op, and two axes of one value, are always different; if
they would become the same, as in `gemm_softmax %x, %x`, the operand is renamed instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound.dims import unused
from comet.dialects.compound.named import CompoundOp

Owner = SSAValue | Operation
Axis = tuple[Owner, str]
"""An axis of a value (its index in decimal) or a dimension of an op (its name)."""


@dataclass(frozen=True)
class Naming:
    """The names that `decompose` gives in one function."""

    values: Mapping[SSAValue, tuple[str, ...]]
    """The dimension names of every value, in axis order."""
    ops: Mapping[Operation, Mapping[str, str]]
    """The function's name for each dimension of every named op."""


@dataclass
class _Classes:
    """Sets of axes that are the same dimension (union-find)."""

    members: dict[Axis, list[Axis]] = field(default_factory=dict[Axis, list[Axis]])

    def of(self, axis: Axis) -> list[Axis]:
        """Return the set that `axis` is in."""
        return self.members.setdefault(axis, [axis])

    def unify(self, first: Axis, second: Axis) -> None:
        """Join two sets, unless the result would have two axes of one owner."""
        axes, moved = self.of(first), self.of(second)
        owners = {owner for owner, _ in axes}
        if axes is moved or any(owner in owners for owner, _ in moved):
            return
        axes.extend(moved)
        for axis in moved:
            self.members[axis] = axes


def name_dimensions(
    named: Sequence[CompoundOp], values: Mapping[SSAValue, int]
) -> Naming:
    """
    Name the axes of `values` (each with its rank) and the dimensions of the ops.

    A dimension gets its name in the first op that has it, with a number if that is
    taken (N1). The axes of a value that no op uses are called D.
    """
    classes = _Classes()
    for op in named:
        for value, dims in _uses(op):
            for index, dim in enumerate(dims):
                classes.unify((op, dim), (value, str(index)))
    names: dict[Axis, str] = {}
    for op in named:
        for dim in _dims(op):
            _name(names, classes.of((op, dim)), dim)
    for value, rank in values.items():
        for index in range(rank):
            _name(names, classes.of((value, str(index))), "D")
    return Naming(
        {v: tuple(names[v, str(i)] for i in range(r)) for v, r in values.items()},
        {op: {dim: names[op, dim] for dim in _dims(op)} for op in named},
    )


def names_in_types(
    named: Sequence[CompoundOp], values: Mapping[SSAValue, tuple[str, ...]]
) -> Naming:
    """
    Name the dimensions of the ops by the names in the types of `values`, all values.

    A dimension has the name in the result of the op, or else in the first operand with
    it. It gets an unused name if that is the name of another dimension of the op, or if
    no value has the dimension.
    """
    taken = {name for names in values.values() for name in names}
    ops: dict[Operation, Mapping[str, str]] = {}
    for op in named:
        names: dict[str, str] = {}
        *operands, result = _uses(op)
        for value, dims in (result, *operands):
            for dim, name in zip(dims, values[value], strict=True):
                if name not in names.values():
                    names.setdefault(dim, name)
        for dim in _dims(op):
            if dim not in names:
                names[dim] = unused(dim, taken)
                taken.add(names[dim])
        ops[op] = names
    return Naming(values, ops)


def _uses(op: CompoundOp) -> list[tuple[SSAValue, tuple[str, ...]]]:
    operands = zip(op.inputs, op.operand_dims, strict=True)
    return [*operands, (op.result, op.result_dims)]


def _dims(op: CompoundOp) -> list[str]:
    return [*(dim for _, dims in _uses(op) for dim in dims), *op.inner_dims]


def _name(names: dict[Axis, str], axes: Sequence[Axis], wanted: str) -> None:
    """Give all `axes` one name, `wanted` or numbered, unless they have one."""
    if axes[0] in names:
        return
    name = unused(wanted, set(names.values()))
    names.update(dict.fromkeys(axes, name))
