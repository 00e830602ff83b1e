"""Gathers of rows of a table by ids, and sums of rows, as for embeddings and pages."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import (
    Float16Type,
    Float32Type,
    StringAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
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

    With `own`, instances of an SPMD region have shards of that dimension, and ids of
    their own: each takes rows of its own shard, whose first position is 0.

    ```mlir
    %x = compound.gather %table, %ids along "V" : tensor<9x4xf32, #compound.dims<V, D>>,
        tensor<2x3xi32, #compound.dims<B, T>>
        -> tensor<2x3x4xf32, #compound.dims<B, T, D>>
    %y = compound.gather %shard, %mine along "V" own
        : tensor<3x4xf32, #compound.dims<V, D>>, tensor<1x3xi32,
        #compound.dims<rank, T>> -> tensor<1x3x4xf32, #compound.dims<rank, T, D>>
    ```
    """

    name = "compound.gather"
    dim = prop_def(StringAttr)
    own = opt_prop_def(UnitAttr)
    table = operand_def()
    ids = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$table `,` $ids `along` $dim (`own` $own^)? attr-dict "
        "`:` type($table) `,` type($ids) `->` type($result)"
    )

    def __init__(self, table: SSAValue, ids: SSAValue, dim: str, *, own: bool = False):
        super().__init__(
            operands=[table, ids],
            result_types=[gathered_type(table, ids, dim)],
            properties={
                "dim": StringAttr(dim),
                "own": UnitAttr() if own else None,
            },
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
        _verify_ids(self, self.ids)
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


ADDED = (Float32Type(), Float16Type(), i32, i64)
"""
The element types of which several programs may add to one number.

Triton compiles atomic additions of bf16, too, but its interpreter has none, so that no
kernel with them could be checked without a GPU.
"""


@irdl_op_definition
class ScatterAddOp(IRDLOperation):
    """
    Add each row of `values` to the row of the result that its id names.

    The result begins as zeros, and several rows may have one id: their sum is in any
    order. It has dimension `into` in place of those of `ids`; `values` are what
    `compound.gather` takes from such a table, and the gradient of that op is this one.
    The first position is 0; that ids are below the extent is the caller's to see to.

    ```mlir
    %g = compound.scatter_add %values, %ids into "V"
        : tensor<2x3x4xf32, #compound.dims<B, T, D>>, tensor<2x3xi32,
        #compound.dims<B, T>> -> tensor<9x4xf32, #compound.dims<V, D>>
    ```
    """

    name = "compound.scatter_add"
    dim = prop_def(StringAttr)
    values = operand_def()
    ids = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$values `,` $ids `into` $dim attr-dict "
        "`:` type($values) `,` type($ids) `->` type($result)"
    )

    def __init__(self, values: SSAValue, ids: SSAValue, dim: str, type: Attribute):
        super().__init__(
            operands=[values, ids],
            result_types=[type],
            properties={"dim": StringAttr(dim)},
        )

    @property
    def into(self) -> str:
        """The dimension of the result whose positions ids name."""
        return self.dim.data

    @property
    def rows(self) -> int:
        """The extent (elements) of that dimension: every id is less."""
        return extents_of(self.result)[self.into]

    def verify_(self) -> None:
        _verify_ids(self, self.ids)
        after, ids = extents_of(self.result), extents_of(self.ids)
        if self.into not in after:
            raise VerifyException(
                f"'{self.name}' op adds into {self.into}, which {self.result.type} "
                "does not have"
            )
        for name in ids:
            if name in after:
                raise VerifyException(
                    f"'{self.name}' op result and ids both have dimension {name}; give "
                    "one of them another name with compound.rename"
                )
        if level_of(self.ids) != level_of(self.result):
            raise VerifyException(f"'{self.name}' op ids and result are at one level")
        if (element := element_type_of(self.result)) not in ADDED:
            raise VerifyException(
                f"'{self.name}' op adds f32, f16, i32 or i64, not {element}; cast "
                "the values"
            )
        expected = gathered_type(self.result, self.ids, self.into)
        if self.values.type != expected:
            raise VerifyException(
                f"'{self.name}' op values are {expected}, with the dimensions of ids "
                f"in place of {self.into}, not {self.values.type}"
            )


def _verify_ids(op: GatherOp | ScatterAddOp, ids: SSAValue) -> None:
    if not INTEGER_TENSOR.verifies(ids.type):
        raise VerifyException(
            f"'{op.name}' op has ids in i32 or i64, got {ids.type}; convert them "
            "before the function is called"
        )


def gathered_type(
    table: SSAValue | Attribute, ids: SSAValue | Attribute, dim: str
) -> TensorType[Element]:
    """Return the table's type with the dimensions of `ids` in place of `dim`."""
    sizes: dict[str, int] = {}
    for name, extent in extents_of(table).items():
        sizes |= extents_of(ids) if name == dim else {name: extent}
    return tensor(sizes, element_type_of(table), level_of(table))


def scatterings(value: SSAValue) -> tuple[ScatterAddOp, ...]:
    """Return the ops that scatter `value`, in the order of its uses."""
    users = (use.operation for use in value.uses)
    scatters = (user for user in users if isinstance(user, ScatterAddOp))
    return tuple(op for op in scatters if op.values is value)


def stored_values(result: SSAValue) -> tuple[SSAValue, ...]:
    """
    Return the values that a kernel stores for a result of its node.

    A result that is only scattered is not stored, but the sums that it is added to.
    """
    sums = tuple(op.result for op in scatterings(result))
    stored = len(sums) < result.uses.get_length() or not sums
    return (result, *sums) if stored else sums


def id_limits(value: SSAValue) -> Iterator[int]:
    """
    Yield the extents (elements) that the ids in `value` must be below.

    These are the extents of the tables that `value`, or a part of it, has ids for,
    read or added to.
    """
    for use in value.uses:
        op = use.operation
        if isinstance(op, GatherOp | ScatterAddOp) and op.ids is value:
            yield op.rows
        if isinstance(op, RenameOp | SliceOp | ConcatOp) or (
            isinstance(op, GatherOp) and op.table is value
        ):
            yield from id_limits(op.result)
