"""`compound.rename`: other dimension names, or split or merged dimensions."""

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
    With `merge` an axis and the next one are viewed as one.

    ```mlir
    %k = compound.rename %x : tensor<4x2xf32, #compound.dims<M, N>>
        -> tensor<4x2xf32, #compound.dims<N, K>>
    %s = compound.rename %x split "M" : tensor<4x2xf32, #compound.dims<M, N>>
        -> tensor<2x2x2xf32, #compound.dims<M_part, M_in, N>>
    %m = compound.rename %s merge "M_part"
        : tensor<2x2x2xf32, #compound.dims<M_part, M_in, N>>
        -> tensor<4x2xf32, #compound.dims<M, N>>
    ```
    """

    name = "compound.rename"
    split = opt_prop_def(StringAttr)
    merge = opt_prop_def(StringAttr)
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$input (`split` $split^)? (`merge` $merge^)? attr-dict "
        "`:` type($input) `->` type($result)"
    )

    def __init__(
        self,
        input: SSAValue,
        result_type: Attribute,
        split: str | None = None,
        merge: str | None = None,
    ):
        super().__init__(
            operands=[input],
            result_types=[result_type],
            properties={
                "split": None if split is None else StringAttr(split),
                "merge": None if merge is None else StringAttr(merge),
            },
        )

    @property
    def cut(self) -> str | None:
        """The operand's dimension that is split, None if there is none."""
        return None if self.split is None else self.split.data

    @property
    def merged(self) -> tuple[str, ...]:
        """The operand's two dimensions that are merged, outer first; empty if none."""
        if self.merge is None:
            return ()
        names = names_of(self.input)
        first = names.index(self.merge.data)
        return names[first : first + 2]

    @property
    def dropped(self) -> str | None:
        """The merged dimension of one element, if there is one: the other one stays."""
        sizes = extents_of(self.input)
        return next((dim for dim in self.merged if sizes[dim] == 1), None)

    @property
    def reshaped(self) -> tuple[str, ...]:
        """The operand's dimensions that are split or merged."""
        return self.merged if self.cut is None else (self.cut,)

    @property
    def reshapes(self) -> bool:
        """Whether operand and result have different numbers of axes."""
        return bool(self.reshaped)

    @property
    def renaming(self) -> dict[str, str]:
        """
        The result's name for each of the operand's names.

        For a split dimension it is the name of the parts. Two merged dimensions have
        the same name.
        """
        before, names = names_of(self.input), list(names_of(self.result))
        if self.cut is not None:
            del names[before.index(self.cut) + 1]
        if self.merged:
            first = before.index(self.merged[0])
            names.insert(first, names[first])
        return dict(zip(before, names, strict=True))

    @property
    def origin(self) -> dict[str, str]:
        """
        The operand's name for each of the result's names.

        For a merged dimension it is the outer one. The elements of a part, in a split
        dimension, have no entry.
        """
        inner = self.merged[1:]
        return {new: old for old, new in self.renaming.items() if old not in inner}

    def keeps(self, dim: str) -> bool:
        """Whether operand and result have `dim` as the same axis."""
        return self.renaming.get(dim) == dim and dim not in self.reshaped

    def verify_(self) -> None:
        types = [element_type_of(value) for value in (self.input, self.result)]
        if types[0] != types[1]:
            raise VerifyException(
                f"'{self.name}' op mixes element types {types[0]} and {types[1]}; make "
                "the conversion explicit with compound.cast"
            )
        if self.split is not None and self.merge is not None:
            raise VerifyException(f"'{self.name}' op splits or merges, not both")
        before, after = self.input, self.result
        if self.merge is not None:
            self._check_pair(self.merge.data)
            shapes = self._joined(before, self.merge.data), self._shape(after)
        elif self.split is not None:
            self._check_has("splits", self.split.data)
            shapes = self._shape(before), self._joined(after, self.split.data)
        else:
            shapes = self._shape(before), self._shape(after)
        if shapes[0] != shapes[1] or level_of(before) != level_of(after):
            raise VerifyException(f"'{self.name}' op keeps shape and level")

    def _check_has(self, verb: str, dim: str) -> None:
        if dim not in names_of(self.input):
            raise VerifyException(
                f"'{self.name}' op {verb} {dim}, which {self.input.type} does not have"
            )

    def _check_pair(self, dim: str) -> None:
        self._check_has("merges", dim)
        if names_of(self.input)[-1] == dim:
            raise VerifyException(
                f"'{self.name}' op merges {dim}, after which {self.input.type} has no "
                "dimension"
            )

    def _shape(self, value: SSAValue) -> tuple[int, ...]:
        return tuple(extents_of(value).values())

    def _joined(self, value: SSAValue, dim: str) -> tuple[int, ...]:
        """Return the shape of a value, the axis of `dim` merged with the next one."""
        extents = self._shape(value)
        first = names_of(self.input).index(dim)
        pair = prod(extents[first : first + 2])
        return (*extents[:first], pair, *extents[first + 2 :])


def viewed(value: SSAValue) -> SSAValue:
    """Return the value below a chain of renames."""
    while isinstance(value.owner, RenameOp):
        value = value.owner.input
    return value
