"""The arguments of a decomposition: operands, dimensions, accumulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation, SSAValue

from comet.dialects.compound.dims import extents_of, float_type_of
from comet.passes.graph.emitter import Emitter


@dataclass(frozen=True)
class Site:
    """The insertion point of a decomposition, and the operands and dimensions."""

    emit: Emitter
    operands: Sequence[SSAValue]
    """The operands of the op, with named dimensions."""
    dims: Mapping[str, str]
    """The function's name for each dimension of the op."""
    accumulator: AnyFloat
    """The element type of contractions and of everything after them."""

    def wide(self, value: SSAValue) -> SSAValue:
        """Return `value` in the element type of the accumulator."""
        return self.emit.cast(value, self.accumulator, name=value.name_hint)

    def narrow(self, value: SSAValue) -> SSAValue:
        """Return `value` in the element type of the operands."""
        element = float_type_of(self.operands[0])
        return self.emit.cast(value, element, name=value.name_hint)

    def extent(self, dim: str) -> int:
        """Return the global extent (elements) of a dimension of the op."""
        sizes = (extents_of(operand) for operand in self.operands)
        return next(s[self.dims[dim]] for s in sizes if self.dims[dim] in s)


class Decomposition(Protocol):
    """Emits the elementary ops of one named op and returns their result."""

    def __call__(self, named: Operation, site: Site) -> SSAValue: ...


@runtime_checkable
class Decomposable(Protocol):
    """A named op of another package: its class has the decomposition as a method."""

    def decompose(self, site: Site) -> SSAValue:
        """Emit the elementary ops of this op and return their result."""
        ...
