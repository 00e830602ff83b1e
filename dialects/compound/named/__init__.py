"""
The named compound ops: whole patterns of a model on plain tensors (the graph level).

An op names the dimensions of its operands and its result. The shared verifier checks
shapes by these names, and `decompose` uses them. All ops in the modules of this folder
are registered; there is no other list of them.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import ClassVar, TypeGuard

from xdsl.dialects.builtin import AnyFloat, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    MessageConstraint,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import COUNT_TENSOR, FLOAT_TENSOR, element_type_of

PLAIN_TENSOR = MessageConstraint(
    FLOAT_TENSOR | COUNT_TENSOR, "expected a tensor of floats, or of i32 for counts"
)

AT_MOST = "compound.at_most"
"""The attribute of a function argument with counts: the largest count."""


class CompoundOp(IRDLOperation, ABC):
    """A named compound op; subclasses name the axes of their tensors."""

    OPERANDS: ClassVar[tuple[tuple[str, ...], ...]]
    """The dimension names of each operand, in axis order; see `operand_dims`."""
    RESULT: ClassVar[tuple[str, ...]]
    """The dimension names of the result, in axis order."""

    INNER: ClassVar[tuple[str, ...]] = ()
    """Dimensions of intermediate values that no operand and no result has."""

    LENGTHS: ClassVar[Mapping[int, str]] = {}
    """
    The dimension whose length an operand of i32 gives, by the index of the operand.
    """

    inputs = var_operand_def(PLAIN_TENSOR)
    result = result_def(PLAIN_TENSOR)
    traits = traits_def(Pure())

    def __init__(
        self,
        inputs: Iterable[SSAValue],
        result_type: TensorType[AnyFloat],
        properties: Mapping[str, Attribute] | None = None,
    ):
        super().__init__(
            operands=[list(inputs)],
            result_types=[result_type],
            properties=properties or {},
        )

    @property
    def operand_dims(self) -> tuple[tuple[str, ...], ...]:
        """The dimension names of each operand, in axis order."""
        return self.OPERANDS

    @property
    def result_dims(self) -> tuple[str, ...]:
        """The dimension names of the result, in axis order."""
        return self.RESULT

    @property
    def inner_dims(self) -> tuple[str, ...]:
        """Dimensions of intermediate values that no operand and no result has."""
        return self.INNER

    def named_extents(self) -> dict[str, int]:
        """
        Return the extent of each named dimension of the operands.

        Raises VerifyException if a rank or an extent does not fit the names.
        """
        extents: dict[str, int] = {}
        for index, (value, names) in enumerate(
            zip(self.inputs, self.operand_dims, strict=True)
        ):
            for name, extent in zip(names, self._shape(value, names), strict=True):
                if extents.setdefault(name, extent) != extent:
                    raise VerifyException(
                        f"'{self.name}' op operand {index} has extent {extent} for "
                        f"dimension {name}, an earlier operand has {extents[name]}"
                    )
        return extents

    def verify_(self) -> None:
        """Check ranks, extents and element types of all operands and the result."""
        if len(self.inputs) != len(self.OPERANDS):
            raise VerifyException(
                f"'{self.name}' op takes {len(self.OPERANDS)} operands, "
                f"got {len(self.inputs)}"
            )
        extents = self.named_extents()
        names = self.result_dims
        expected = tuple(extents[name] for name in names)
        if self._shape(self.result, names) != expected:
            raise VerifyException(
                f"'{self.name}' op result is {' x '.join(names)} = "
                f"{'x'.join(map(str, expected))}, got {self.result.type}"
            )
        self._verify_element_types()

    def _verify_element_types(self) -> None:
        """Check that counts are i32, and that all other values have one float type."""
        for index, value in enumerate(self.inputs):
            if COUNT_TENSOR.verifies(value.type) != (index in self.LENGTHS):
                wanted = "i32" if index in self.LENGTHS else "floats"
                raise VerifyException(
                    f"'{self.name}' op operand {index} is a tensor of {wanted}, got "
                    f"{value.type}"
                )
        computed = [v for i, v in enumerate(self.inputs) if i not in self.LENGTHS]
        types = dict.fromkeys(map(element_type_of, (*computed, self.result)))
        if len(types) > 1:
            raise VerifyException(
                f"'{self.name}' op operands share one element type, got "
                f"{' and '.join(map(str, types))}; give all of them one"
            )

    def _shape(self, value: SSAValue, names: Sequence[str]) -> tuple[int, ...]:
        type_ = value.type
        shape = type_.get_shape() if isinstance(type_, TensorType) else ()
        if len(shape) != len(names):
            raise VerifyException(
                f"'{self.name}' op expects {' x '.join(names)}, got {type_}"
            )
        if any(extent < 1 for extent in shape):
            raise VerifyException(
                f"'{self.name}' op extents are static and positive, got {type_}"
            )
        return shape


FORMAT = "$inputs attr-dict `:` functional-type(operands, results)"
"""The syntax of ops without properties."""


def named_ops() -> tuple[type[CompoundOp], ...]:
    """Return the ops that the modules of this folder define, in alphabetical order."""
    modules = [
        import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)
    ]
    kinds = [kind for module in modules for kind in vars(module).values()]
    return tuple(sorted({k for k in kinds if _is_named_op(k)}, key=lambda k: k.name))


def _is_named_op(kind: object) -> TypeGuard[type[CompoundOp]]:
    """Return whether this is the class of an op, not an abstract base."""
    return (
        isinstance(kind, type) and issubclass(kind, CompoundOp) and "name" in vars(kind)
    )
