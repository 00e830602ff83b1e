"""The operations of the `tl` dialect with regions: loops and branches."""

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, IntegerAttr, IntegerType, UnitAttr, i1, i32, i64
from xdsl.dialects.utils import (
    AbstractYieldOperation,
    parse_for_op_like,
    print_for_op_like,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

from comet.dialects.tl.blocks import expect_type
from comet.dialects.tl.types import ConstexprType, element_of


def end_regions(op: IRDLOperation) -> None:
    """Terminate the regions of an op; a clone has none yet when it is made."""
    if all(region.blocks for region in op.regions):
        for trait in op.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(op, trait)


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """The values that a loop passes to its next iteration."""

    name = "tl.yield"
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(ForOp, IfOp)))


@irdl_op_definition
class IfOp(IRDLOperation):
    """
    One of two blocks, by a condition that is the same in the whole program.

    ```mlir
    tl.if %first {
      ...
    } else {
      ...
    }
    ```
    """

    name = "tl.if"
    condition = operand_def(i1)
    then = region_def("single_block")
    otherwise = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect(), SingleBlockImplicitTerminator(YieldOp))
    assembly_format = "$condition $then `else` $otherwise attr-dict"

    def __init__(self, condition: SSAValue):
        super().__init__(
            operands=[condition], regions=[Region(Block()), Region(Block())]
        )

    def __post_init__(self):
        super().__post_init__()
        end_regions(self)


@irdl_op_definition
class ForOp(IRDLOperation):
    """
    A counted loop with iter_args; its results are their last values.

    With `warp_specialize` Triton lets producer warps load for it. With `num_stages` it
    loads for as many iterations at a time, even where no product reads what is loaded.

    ```mlir
    %c = tl.for %k : i32 = %zero : i32 to %K : !tl.constexpr<64>
        step %BLOCK_K : !tl.constexpr<16>
        iter_args(%acc = %init) -> (tensor<64x32xf32>) {
      ...
      tl.yield %acc1 : tensor<64x32xf32>
    }
    ```
    """

    name = "tl.for"
    lower = operand_def(IntegerType | ConstexprType)
    upper = operand_def(IntegerType | ConstexprType)
    step = operand_def(IntegerType | ConstexprType)
    inits = var_operand_def()
    body = region_def("single_block")
    results_ = var_result_def()
    warp_specialize = opt_prop_def(UnitAttr)
    num_stages = opt_prop_def(IntegerAttr[I64])
    traits = traits_def(RecursiveMemoryEffect(), SingleBlockImplicitTerminator(YieldOp))

    def __init__(
        self,
        lower: SSAValue | Operation,
        upper: SSAValue | Operation,
        step: SSAValue | Operation,
        inits: Sequence[SSAValue],
        body: Region | None = None,
        warp_specialize: UnitAttr | None = None,
        num_stages: int | None = None,
    ):
        stages = None if num_stages is None else IntegerAttr(num_stages, i64)
        types = [init.type for init in inits]
        if body is None:
            body = Region(Block(arg_types=[i32, *types]))
        super().__init__(
            operands=[lower, upper, step, inits],
            properties={"warp_specialize": warp_specialize, "num_stages": stages},
            regions=[body],
            result_types=[types],
        )

    def __post_init__(self):
        super().__post_init__()
        end_regions(self)

    def print(self, printer: Printer) -> None:
        if self.warp_specialize is not None:
            printer.print_string(" warp_specialize")
        if self.num_stages is not None:
            printer.print_string(f" num_stages {self.num_stages.value.data}")
        print_for_op_like(
            printer, self.lower, self.upper, self.step, self.inits, self.body
        )
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> "ForOp":
        specialized = parser.parse_optional_keyword("warp_specialize")
        staged = parser.parse_optional_keyword("num_stages")
        stages = parser.parse_integer() if staged else None
        lower, upper, step, inits, body = parse_for_op_like(parser)
        unit = UnitAttr() if specialized else None
        op = cls(lower, upper, step, inits, body, unit, stages)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def verify_(self) -> None:
        if self.num_stages is not None and self.num_stages.value.data < 1:
            raise VerifyException(
                f"'{self.name}' op has num_stages {self.num_stages.value.data}; a "
                "software pipeline has one stage or more"
            )
        index, *iter_args = self.body.block.args
        expect_type(self, "loop variable", index.type, i32)
        for bound in (self.lower, self.upper, self.step):
            expect_type(self, "bound", element_of(bound.type), i32)
        yielded = self.body.block.last_op
        assert isinstance(yielded, YieldOp)
        groups = (iter_args, yielded.arguments, self.results_)
        if any(len(group) != len(self.inits) for group in groups):
            raise VerifyException(
                f"'{self.name}' op has {len(self.inits)} first values but "
                f"{len(iter_args)} iter_args and yields {len(yielded.arguments)}"
            )
        for group in groups:
            for value, init in zip(group, self.inits, strict=True):
                expect_type(self, "iter_arg", value.type, init.type)
