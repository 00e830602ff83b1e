"""Positions of elements, for masks and prefix sums."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import extents_of, is_boolean


@irdl_op_definition
class IndexOp(IRDLOperation):
    """
    The position of each element along the only dimension of the result: 0, 1, 2, ...

    Positions count from the start of the whole dimension, not of a shard or a tile. In
    an SPMD region the result may be an instance's shard: then `of` is the extent of the
    whole dimension, and `over` the mesh axes that shard it, major first.

    ```mlir
    %n = compound.index : tensor<8xi32, #compound.dims<N>>
    %m = compound.index of 30 over ["rank"] : tensor<8xf32, #compound.dims<N>>
    ```
    """

    name = "compound.index"
    whole = opt_prop_def(IntegerAttr[I64])
    axes = opt_prop_def(ArrayAttr[StringAttr])
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "(`of` $whole^ `over` $axes)? attr-dict `:` type($result)"

    def __init__(
        self, result_type: Attribute, whole: int | None = None, axes: Sequence[str] = ()
    ):
        super().__init__(
            result_types=[result_type],
            properties={
                "whole": None if whole is None else IntegerAttr(whole, i64),
                "axes": ArrayAttr(map(StringAttr, axes)) if axes else None,
            },
        )

    @property
    def dim(self) -> str:
        """The dimension whose positions are counted."""
        (name,) = extents_of(self.result)
        return name

    @property
    def extent(self) -> int:
        """The extent (elements) of the whole dimension."""
        if self.whole is None:
            return extents_of(self.result)[self.dim]
        return self.whole.value.data

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The mesh axes that the dimension is sharded over, major first, if any."""
        return () if self.axes is None else tuple(axis.data for axis in self.axes)

    def verify_(self) -> None:
        if is_boolean(self.result):
            raise VerifyException(
                f"'{self.name}' op counts in floats or integers, got {self.result.type}"
            )
        if len(extents_of(self.result)) != 1:
            raise VerifyException(
                f"'{self.name}' op result has one dimension, got {self.result.type}"
            )
        if (self.whole is None) != (self.axes is None):
            raise VerifyException(
                f"'{self.name}' op says both the whole extent and the axes, or none"
            )
        if self.whole is not None and self.whole.value.data < 1:
            raise VerifyException(f"'{self.name}' op counts a positive extent")
