"""
The operations of the `tl` dialect for host programs that run on every rank.

A function for several ranks is one `tl.plan`: what every rank allocates, launches and
waits for. Its values are those of one rank; the function's are global.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_op_definition,
    lazy_traits_def,
    opt_operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import (
    HasParent,
    IsTerminator,
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import ceil_div, extents_of
from comet.dialects.tl.types import element_of, shape_of


@irdl_op_definition
class HeapZerosOp(IRDLOperation):
    """
    A new tensor of zeros in the symmetric heap: at the same offset on every rank.

    With `of`, it is the memory of an argument of the plan, which launch e reads from
    slot e modulo the first extent: callers write it there, and do not pass it.

    ```mlir
    %recv = tl.heap_zeros : tensor<2x4x64x16xf16>
    %recv = tl.heap_zeros of %a : tensor<2x64x16xf16>, tensor<64x16xf16>
    ```
    """

    name = "tl.heap_zeros"
    input = opt_operand_def(base(TensorType))
    result = result_def(base(TensorType))
    traits = traits_def(MemoryAllocEffect())
    assembly_format = "(`of` $input^)? attr-dict `:` type($result) (`,` type($input)^)?"

    def __init__(self, type: Attribute, input: SSAValue | None = None):
        super().__init__(operands=[input], result_types=[type])

    def verify_(self) -> None:
        if self.input is None:
            return
        result, input_type = self.result.type, self.input.type
        expected, shape = (
            (shape_of(result)[1:], element_of(result)),
            shape_of(input_type),
        )
        if expected != (shape, element_of(input_type)):
            raise VerifyException(
                f"'{self.name}' op no slot of {result} is a {input_type}"
            )
        if self.input.has_more_than_one_use():
            raise VerifyException(
                f"'{self.name}' op of an argument that others use, and nobody passes"
            )


@irdl_op_definition
class ZerosOp(IRDLOperation):
    """
    A new tensor of zeros that no other rank sees.

    ```mlir
    %counters = tl.zeros : tensor<2xi32>
    ```
    """

    name = "tl.zeros"
    result = result_def(base(TensorType))
    traits = traits_def(MemoryAllocEffect())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type: Attribute):
        super().__init__(result_types=[type])


@irdl_op_definition
class RankOp(IRDLOperation):
    """
    The number of the rank that runs the plan.

    ```mlir
    %rank = tl.rank
    ```
    """

    name = "tl.rank"
    result = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[i32])


@irdl_op_definition
class HeapBasesOp(IRDLOperation):
    """
    The address of each rank's heap, as seen from this rank.

    ```mlir
    %bases = tl.heap_bases : tensor<4xi64>
    ```
    """

    name = "tl.heap_bases"
    result = result_def(base(TensorType))
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, ranks: int):
        super().__init__(result_types=[TensorType(i64, [ranks])])


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """
    Wait for all ranks: what comes after sees all earlier work of every rank.

    ```mlir
    tl.barrier
    ```
    """

    name = "tl.barrier"
    traits = lazy_traits_def(
        lambda: (HasParent(PlanOp), MemoryReadEffect(), MemoryWriteEffect())
    )
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()


@irdl_op_definition
class PlanYieldOp(AbstractYieldOperation[Attribute]):
    """One rank's shards of the results."""

    name = "tl.plan_yield"
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(PlanOp)))


@irdl_op_definition
class PlanOp(IRDLOperation):
    """
    What every rank does, in order; `split` names the dimensions that are sharded.

    A rank has ceil(extent / ranks) elements of such a dimension, the last ranks fewer;
    of a tensor with an empty name every rank has all.

    ```mlir
    %c = tl.plan ranks 4 ins(%a, %b : tensor<..>, tensor<..>) split ["K", ""] to [""] {
    ^bb0(%a1: tensor<..>, %b1: tensor<..>):
      ...
      tl.plan_yield %c1 : tensor<..>
    } -> tensor<..>
    ```
    """

    name = "tl.plan"
    ranks = prop_def(IntegerAttr[I64])
    ins = var_operand_def()
    ins_split = prop_def(ArrayAttr[StringAttr])
    outs_split = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    outs = var_result_def()
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = (
        "`ranks` $ranks `ins` `(` $ins `:` type($ins) `)` `split` $ins_split `to` "
        "$outs_split attr-dict-with-keyword $body `->` type($outs)"
    )

    def __init__(
        self,
        ranks: int,
        ins: Sequence[SSAValue],
        ins_split: Sequence[str],
        outs_split: Sequence[str],
        result_types: Sequence[Attribute],
        body: Region,
    ):
        super().__init__(
            operands=[ins],
            result_types=[result_types],
            properties={
                "ranks": IntegerAttr(ranks, i64),
                "ins_split": ArrayAttr(StringAttr(dim) for dim in ins_split),
                "outs_split": ArrayAttr(StringAttr(dim) for dim in outs_split),
            },
            regions=[body],
        )

    def verify_(self) -> None:
        last = self.body.block.last_op
        if not isinstance(last, PlanYieldOp):
            raise VerifyException(f"'{self.name}' op region ends in tl.plan_yield")
        if self.ranks.value.data < 1:
            raise VerifyException(f"'{self.name}' op runs on 1 rank or more")
        self._verify_shards("argument", self.ins, self.body.block.args, self.ins_split)
        self._verify_shards("result", self.outs, last.arguments, self.outs_split)

    def _verify_shards(
        self,
        what: str,
        outer: Sequence[SSAValue],
        inner: Sequence[SSAValue],
        split: ArrayAttr[StringAttr],
    ) -> None:
        """Check that a rank has its shard of every tensor."""
        if not len(outer) == len(inner) == len(split):
            raise VerifyException(
                f"'{self.name}' op has {len(outer)} {what}s outside, {len(inner)} "
                f"inside, and says how {len(split)} are split"
            )
        for whole, shard, dim in zip(outer, inner, split, strict=True):
            extents = extents_of(whole)
            if dim.data in extents:
                extents[dim.data] = ceil_div(extents[dim.data], self.ranks.value.data)
            elif dim.data:
                raise VerifyException(
                    f"'{self.name}' op {what} {whole.type} has no dimension {dim.data}"
                )
            if extents_of(shard) != extents:
                raise VerifyException(
                    f"'{self.name}' op a rank holds {shard.type} of {what} {whole.type}"
                )
