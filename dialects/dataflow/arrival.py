"""
Counters of the dataflow dialect: the last program to arrive continues.

Programs that make partial results of one tile add to its counter after their stores.
Nobody waits: whoever brings the counter to its end knows that all have stored, and
runs the node that merges their partial results (the fix-up of split-K and stream-K).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, UnitAttr, i64
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import INTEGER_TENSOR, names_of
from comet.dialects.dataflow.channel import verify_blocks
from comet.dialects.dataflow.flags import (
    KERNEL,
    FlagScope,
    ScopeAttr,
    Semantics,
    SemanticsAttr,
)
from comet.dialects.dataflow.transfer import VIEWS
from comet.dialects.parents import HasParentNamed
from comet.dialects.schedule.attributes import LoopAttr, parse_loops, print_loops


@irdl_attr_definition
class CountersType(ParametrizedAttribute, TypeAttribute):
    """
    Counters in device memory, one for each block of a value; 0 before a launch.

    ```mlir
    !dataflow.counters<[M = 2, N = 3]>
    ```
    """

    name = "dataflow.counters"

    blocks: ArrayAttr[LoopAttr] = param_def()

    @property
    def factors(self) -> dict[str, int]:
        """The number of blocks along each dimension that is cut."""
        return {loop.dim: loop.factor for loop in self.blocks}

    @property
    def count(self) -> int:
        """The number of counters."""
        return prod(self.factors.values())

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (parse_loops(parser),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_loops(printer, self.blocks)


@irdl_op_definition
class CountersOp(IRDLOperation):
    """
    Counters that live as long as the program, 0 at first.

    ```mlir
    %counters = dataflow.counters : !dataflow.counters<[M = 2, N = 3]>
    ```
    """

    name = "dataflow.counters"
    result = result_def(CountersType)
    traits = traits_def(MemoryAllocEffect())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type: CountersType):
        super().__init__(result_types=[type])

    @property
    def type(self) -> CountersType:
        """The type of the counters: which blocks have one."""
        assert isinstance(self.result.type, CountersType)
        return self.result.type


@irdl_op_definition
class ArriveOp(IRDLOperation):
    """
    Each program of a node arrives at the counter of its block, after its stores.

    The partial results of the node are the operands. The results are the same memory,
    as the last of `arrivals` programs sees it: what all of them have stored. A node
    that reads them is run by that program, which has set the counter to 0 again.
    `fence` puts the stores of all threads before the atomic addition, which one thread
    does. With `count`, element i of it is how many programs arrive for block i: no
    more than `arrivals`.

    ```mlir
    %all = dataflow.arrive %c at %counters arrivals 4 acq_rel gpu fence
        : tensor<..> at !dataflow.counters<[M = 2, N = 3]>
    %all = dataflow.arrive %c at %counters arrivals 4 count %count : tensor<..>
        acq_rel gpu fence : tensor<..> at !dataflow.counters<[M = 2, N = 3]>
    ```
    """

    name = "dataflow.arrive"
    partials = var_operand_def(VIEWS)
    counters = operand_def(CountersType)
    arrivals = prop_def(IntegerAttr[I64])
    count = opt_operand_def(INTEGER_TENSOR)
    semantics = prop_def(SemanticsAttr)
    scope = prop_def(ScopeAttr)
    fence = opt_prop_def(UnitAttr)
    complete = var_result_def(VIEWS)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(HasParentNamed((KERNEL,)))
    assembly_format = (
        "$partials `at` $counters `arrivals` $arrivals "
        "(`count` $count^ `:` type($count))? $semantics $scope "
        "(`fence` $fence^)? attr-dict `:` type($partials) `at` type($counters)"
    )

    def __init__(
        self,
        partials: Sequence[SSAValue],
        counters: SSAValue,
        arrivals: int,
        semantics: Semantics = Semantics.ACQ_REL,
        scope: FlagScope = FlagScope.GPU,
        fence: bool = True,
        count: SSAValue | None = None,
    ):
        super().__init__(
            operands=[partials, counters, count],
            result_types=[[value.type for value in partials]],
            properties={
                "arrivals": IntegerAttr(arrivals, i64),
                "semantics": SemanticsAttr(semantics),
                "scope": ScopeAttr(scope),
                "fence": UnitAttr() if fence else None,
            },
        )

    @property
    def type(self) -> CountersType:
        """The type of the counters."""
        assert isinstance(self.counters.type, CountersType)
        return self.counters.type

    def verify_(self) -> None:
        if not self.partials:
            raise VerifyException(
                f"'{self.name}' op has no partial results; list what programs store"
            )
        if self.arrivals.value.data < 2:
            raise VerifyException(
                f"'{self.name}' op is for several programs, at least 2, not "
                f"{self.arrivals.value.data}"
            )
        if self.count is not None and {*names_of(self.count)} - {*self.type.factors}:
            raise VerifyException(
                f"'{self.name}' op counts programs along dimensions without counters: "
                f"{self.count.type}"
            )
        for value in self.partials:
            verify_blocks(self, self.type.blocks, value.type)
