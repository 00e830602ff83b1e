"""Views of values: other names for dimensions, or one dimension as two."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import (
    element_type_of,
    extents_of,
    level_of,
    names_of,
)


@irdl_op_definition
class RenameOp(IRDLOperation):
    """
    View a value under other dimension names, axis by axis.

    With `split` one axis is viewed as two: equal parts, and the elements of a part.

    ```mlir
    %k = compound.rename %x : tensor<4x2xf32, #compound.dims<M, N>>
        -> tensor<4x2xf32, #compound.dims<N, K>>
    %s = compound.rename %x split "M" : tensor<4x2xf32, #compound.dims<M, N>>
        -> tensor<2x2x2xf32, #compound.dims<M_part, M_in, N>>
    ```
    """

    name = "compound.rename"
    split = opt_prop_def(StringAttr)
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$input (`split` $split^)? attr-dict `:` type($input) `->` type($result)"
    )

    def __init__(
        self, input: SSAValue, result_type: Attribute, split: str | None = None
    ):
        super().__init__(
            operands=[input],
            result_types=[result_type],
            properties={"split": None if split is None else StringAttr(split)},
        )

    @property
    def cut(self) -> str | None:
        """The operand's dimension that is viewed as two, None if there is none."""
        return None if self.split is None else self.split.data

    @property
    def renaming(self) -> dict[str, str]:
        """The result's name for each of the operand's names; of two, that of parts."""
        names = list(names_of(self.result))
        if self.cut is not None:
            del names[names_of(self.input).index(self.cut) + 1]
        return dict(zip(names_of(self.input), names, strict=True))

    def verify_(self) -> None:
        types = [element_type_of(value) for value in (self.input, self.result)]
        if types[0] != types[1]:
            raise VerifyException(
                f"'{self.name}' op mixes element types {types[0]} and {types[1]}; make "
                "the conversion explicit with compound.cast"
            )
        before = tuple(extents_of(self.input).values())
        after = tuple(extents_of(self.result).values())
        if self.cut is not None:
            after = self._joined(after, self.cut)
        if before != after or level_of(self.input) != level_of(self.result):
            raise VerifyException(f"'{self.name}' op keeps shape and level")

    def _joined(self, extents: tuple[int, ...], cut: str) -> tuple[int, ...]:
        """Return extents of the result with the two axes of `cut` as one."""
        if cut not in names_of(self.input):
            raise VerifyException(
                f"'{self.name}' op splits {cut}, which {self.input.type} does not have"
            )
        first = names_of(self.input).index(cut)
        return (
            *extents[:first],
            prod(extents[first : first + 2]),
            *extents[first + 2 :],
        )


def viewed(value: SSAValue) -> SSAValue:
    """Return the value below a chain of renames."""
    while isinstance(value.owner, RenameOp):
        value = value.owner.input
    return value
