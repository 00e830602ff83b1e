"""Positions of elements, which masks and prefix sums are made of."""

from __future__ import annotations

from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, irdl_op_definition, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound_dims import element_type_of, names_of


@irdl_op_definition
class IndexOp(IRDLOperation):
    """
    The position of each element along the only dimension of the result: 0, 1, 2, ...

    Positions count from the start of the whole dimension, not of a share or a tile.

    ```mlir
    %n = compound.index : tensor<8xf32, #compound.dims<N>>
    ```
    """

    name = "compound.index"
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result_type: Attribute):
        super().__init__(result_types=[result_type])

    def verify_(self) -> None:
        element_type_of(self.result)
        if len(names_of(self.result)) != 1:
            raise VerifyException(
                f"'{self.name}' op result has one dimension, got {self.result.type}"
            )
