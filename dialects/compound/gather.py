"""Gathers of rows of a table by ids, as for embeddings and pages."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import (
    INTEGER_TENSOR,
    Element,
    element_type_of,
    extents_of,
    level_of,
    tensor,
)
from comet.dialects.compound.pad import ConcatOp, SliceOp
from comet.dialects.compound.rename import RenameOp


@irdl_op_definition
class GatherOp(IRDLOperation):
    """
    Take the positions of one dimension of a table that `ids` gives.

    The result has the dimensions of `ids` in place of that dimension. Positions start
    at 0. The caller has to make sure that ids are below the table's extent: GPU
    programs do not check it, and with other ids they read undefined values.

    ```mlir
    %x = compound.gather %table, %ids along "V" : tensor<9x4xf32, #compound.dims<V, D>>,
        tensor<2x3xi32, #compound.dims<B, T>>
        -> tensor<2x3x4xf32, #compound.dims<B, T, D>>
    ```
    """

    name = "compound.gather"
    dim = prop_def(StringAttr)
    table = operand_def()
    ids = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$table `,` $ids `along` $dim attr-dict "
        "`:` type($table) `,` type($ids) `->` type($result)"
    )

    def __init__(self, table: SSAValue, ids: SSAValue, dim: str):
        super().__init__(
            operands=[table, ids],
            result_types=[gathered_type(table, ids, dim)],
            properties={"dim": StringAttr(dim)},
        )

    @property
    def along(self) -> str:
        """The dimension of the table whose positions are taken."""
        return self.dim.data

    @property
    def rows(self) -> int:
        """The extent (elements) of that dimension: every id is less."""
        return extents_of(self.table)[self.along]

    def verify_(self) -> None:
        if not INTEGER_TENSOR.verifies(self.ids.type):
            raise VerifyException(
                f"'{self.name}' op has ids in i32 or i64, got {self.ids.type}; convert "
                "them before the function is called"
            )
        before, ids = extents_of(self.table), extents_of(self.ids)
        if self.along not in before:
            raise VerifyException(
                f"'{self.name}' op gathers along {self.along}, which "
                f"{self.table.type} does not have"
            )
        for name in ids:
            if name in before:
                raise VerifyException(
                    f"'{self.name}' op table and ids both have dimension {name}; give "
                    "one of them another name with compound.rename"
                )
        if level_of(self.ids) != level_of(self.table):
            raise VerifyException(f"'{self.name}' op table and ids are at one level")
        expected = gathered_type(self.table, self.ids, self.along)
        if self.result.type != expected:
            raise VerifyException(
                f"'{self.name}' op result is {expected}, with the dimensions of ids in "
                f"place of {self.along}, not {self.result.type}"
            )


def gathered_type(
    table: SSAValue | Attribute, ids: SSAValue | Attribute, dim: str
) -> TensorType[Element]:
    """Return the table's type with the dimensions of `ids` in place of `dim`."""
    sizes: dict[str, int] = {}
    for name, extent in extents_of(table).items():
        sizes |= extents_of(ids) if name == dim else {name: extent}
    return tensor(sizes, element_type_of(table), level_of(table))


def id_limits(value: SSAValue) -> Iterator[int]:
    """
    Yield the extents (elements) that the ids in `value` must be below.

    These are the extents of the tables that `value`, or a part of it, has ids for.
    """
    for use in value.uses:
        op = use.operation
        if isinstance(op, GatherOp) and op.ids is value:
            yield op.rows
        if isinstance(op, RenameOp | SliceOp | ConcatOp) or (
            isinstance(op, GatherOp) and op.table is value
        ):
            yield from id_limits(op.result)
