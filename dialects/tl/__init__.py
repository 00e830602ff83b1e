"""
The `tl` dialect: Triton one to one, from the launching function down to blocks.

A module at this level has `tl.kernel` operations and functions that allocate buffers
(`tl.empty`), launch kernels on them (`tl.launch`), in order, and deallocate them. The
discardable string attribute `tl.comment` of any operation is printed above its line; a
value's name hint is the name of the Python variable.
"""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    I64,
    DenseArrayBase,
    FlatSymbolRefAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.dialects.utils import (
    parse_func_op_like,
    print_func_op_like,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    SingleBlockImplicitTerminator,
    SymbolOpInterface,
    SymbolTable,
    SymbolUserOpInterface,
)
from xdsl.utils.bitwise_casts import is_power_of_two
from xdsl.utils.exceptions import VerifyException

from comet.dialects.tl.blocks import (
    ArangeOp,
    BroadcastToOp,
    ConstantOp,
    ExpandDimsOp,
    FullOp,
    NumProgramsOp,
    PermuteOp,
    ProgramIdOp,
    Swizzle2dOp,
    expect_type,
)
from comet.dialects.tl.buffers import ClearOp, DeallocOp, EmptyOp, ViewOp
from comet.dialects.tl.control import ForOp, IfOp, YieldOp, end_regions
from comet.dialects.tl.descriptors import (
    DescriptorLoadOp,
    DescriptorStoreOp,
    DescriptorType,
    MakeDescriptorOp,
    ReshapeOp,
    SplitOp,
)
from comet.dialects.tl.math import (
    BinaryOp,
    CastOp,
    CmpOp,
    CumsumOp,
    DotOp,
    DotOperandOp,
    RandOp,
    ReduceOp,
    UnaryOp,
    WhereOp,
)
from comet.dialects.tl.memory import (
    AddPtrOp,
    AtomicAddOp,
    DebugBarrierOp,
    LoadOp,
    StoreOp,
)
from comet.dialects.tl.plan import (
    BarrierOp,
    HeapBasesOp,
    HeapZerosOp,
    PlanOp,
    PlanYieldOp,
    RankOp,
    ZerosOp,
)
from comet.dialects.tl.remote import (
    ArriveLastOp,
    FinishEpochOp,
    NextEpochOp,
    RankAndProgramIdOp,
    RebaseAmongOp,
    RebaseOp,
    RemoteLoadOp,
    SignalAddAllOp,
    SignalAddOp,
    SignalAllOp,
    SignalOp,
    SignalProgramsOp,
    SymmetricAddressOp,
    WaitAllOp,
    WaitOp,
    WaitProgramsOp,
)
from comet.dialects.tl.types import (
    BinaryKindAttr,
    CacheModifierType,
    CompareKindAttr,
    ConstexprType,
    PrecisionAttr,
    ProgramsType,
    PtrType,
    ReduceKindAttr,
    UnaryKindAttr,
    element_of,
)

COMMENT = "tl.comment"
"""The attribute whose text is printed above the line of an op."""

COMPILE_TIME = (ConstexprType, ProgramsType, CacheModifierType)
"""Types of parameters that are known when a kernel is compiled."""


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """The end of a kernel."""

    name = "tl.return"
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(KernelOp)))
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()


@irdl_op_definition
class KernelOp(IRDLOperation):
    """
    A `triton.jit` function.

    Its parameters are pointers, scalars and constexprs; the value of a constexpr is in
    its type.

    ```mlir
    tl.kernel @copy(%src: !tl.ptr<f16>, %N: !tl.constexpr<53>) {
      ...
    }
    ```
    """

    name = "tl.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    traits = traits_def(
        SymbolOpInterface(),
        IsolatedFromAbove(),
        SingleBlockImplicitTerminator(ReturnOp),
    )

    def __init__(self, name: str, body: Region | Sequence[Attribute]):
        if not isinstance(body, Region):
            body = Region(Block(arg_types=body))
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[body])

    def __post_init__(self):
        super().__post_init__()
        end_regions(self)

    def constexprs(self) -> Mapping[int, int]:
        """Return the value of every constexpr parameter, by its position."""
        return {
            arg.index: arg.type.value.data
            for arg in self.body.block.args
            if isinstance(arg.type, ConstexprType)
        }

    def print(self, printer: Printer) -> None:
        print_func_op_like(
            printer,
            self.sym_name,
            FunctionType.from_lists(self.body.block.arg_types, []),
            self.body,
            self.attributes,
            reserved_attr_names=("sym_name",),
        )

    @classmethod
    def parse(cls, parser: Parser) -> "KernelOp":
        name, _, _, body, attributes, _, _ = parse_func_op_like(
            parser, reserved_attr_names=("sym_name",)
        )
        if not body.blocks:
            body.add_block(Block())
        op = cls(name, body)
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def verify_(self) -> None:
        for arg in self.body.block.args:
            if not isinstance(arg.type, (PtrType, IntegerType, *COMPILE_TIME)):
                raise VerifyException(
                    f"'{self.name}' op parameter {arg.index} is {arg.type}, expected a "
                    "pointer, an integer or a constexpr"
                )


class LaunchedKernel(SymbolUserOpInterface):
    """Checks a launch against the kernel that it names."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, LaunchOp)
        kernel = SymbolTable.lookup_symbol(op, op.kernel)
        if not isinstance(kernel, KernelOp):
            raise VerifyException(f"'{op.name}' op {op.kernel} is not a tl.kernel")
        params = [
            arg.type
            for arg in kernel.body.block.args
            if not isinstance(arg.type, COMPILE_TIME)
        ]
        if len(params) != len(op.arguments):
            raise VerifyException(
                f"'{op.name}' op passes {len(op.arguments)} arguments to {op.kernel}, "
                f"which takes {len(params)}"
            )
        for param, argument in zip(params, op.arguments, strict=True):
            pointee = param.pointee if isinstance(param, PtrType) else param
            expect_type(op, "argument element", element_of(argument.type), pointee)


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """
    Run a kernel on a grid of programs; launches of one function run in order. All
    programs of a `cooperative` launch run at the same time, or it is an error. A
    thread has `registers` at most, if they are given. A program is a `cluster` of so
    many thread blocks, by default one.

    ```mlir
    tl.launch @kernel grid [8, 2] warps 4 stages 3 on %a, %c
      : tensor<256x128xf16>, tensor<256x512xf16>
    ```
    """

    name = "tl.launch"
    kernel = prop_def(FlatSymbolRefAttr)
    grid = prop_def(DenseArrayBase[I64])
    warps = prop_def(IntegerAttr[I64], default_value=IntegerAttr(4, i64))
    stages = prop_def(IntegerAttr[I64], default_value=IntegerAttr(2, i64))
    registers = opt_prop_def(IntegerAttr[I64])
    cluster = opt_prop_def(IntegerAttr[I64])
    cooperative = opt_prop_def(UnitAttr)
    arguments = var_operand_def()
    traits = traits_def(LaunchedKernel())
    assembly_format = (
        "$kernel `grid` $grid (`warps` $warps^)? (`stages` $stages^)? "
        "(`registers` $registers^)? (`cluster` $cluster^)? "
        "(`cooperative` $cooperative^)? `on` $arguments attr-dict `:` type($arguments)"
    )

    def __init__(
        self,
        kernel: str,
        grid: Sequence[int],
        arguments: Sequence[SSAValue],
        warps: int = 4,
        stages: int = 2,
        registers: int = 0,
        cluster: int = 1,
        cooperative: bool = False,
    ):
        super().__init__(
            operands=[arguments],
            properties={
                "kernel": SymbolRefAttr(kernel),
                "grid": DenseArrayBase.from_list(i64, grid),
                "warps": IntegerAttr(warps, i64),
                "stages": IntegerAttr(stages, i64),
                "registers": IntegerAttr(registers, i64) if registers else None,
                "cluster": IntegerAttr(cluster, i64) if cluster > 1 else None,
                "cooperative": UnitAttr() if cooperative else None,
            },
        )

    def verify_(self) -> None:
        grid = self.grid.get_values()
        if not 1 <= len(grid) <= 3 or min(grid) < 1:
            raise VerifyException(
                f"'{self.name}' op a grid has one to three positive extents, "
                f"not {list(grid)}"
            )
        warps = self.warps.value.data
        if not is_power_of_two(warps):
            raise VerifyException(f"'{self.name}' op {warps} warps: not a power of two")
        if self.stages.value.data < 1:
            raise VerifyException(f"'{self.name}' op needs at least one stage")
        if self.registers is not None and self.registers.value.data < 1:
            raise VerifyException(f"'{self.name}' op needs at least one register")
        cluster = 1 if self.cluster is None else self.cluster.value.data
        if not is_power_of_two(cluster):
            raise VerifyException(
                f"'{self.name}' op a cluster of {cluster} blocks: not a power of two"
            )


Tl = Dialect(
    "tl",
    [
        AddPtrOp,
        ArangeOp,
        ArriveLastOp,
        AtomicAddOp,
        BarrierOp,
        BinaryOp,
        BroadcastToOp,
        CastOp,
        ClearOp,
        ViewOp,
        CmpOp,
        ConstantOp,
        CumsumOp,
        DebugBarrierOp,
        DescriptorLoadOp,
        DescriptorStoreOp,
        DotOp,
        DotOperandOp,
        DeallocOp,
        EmptyOp,
        ExpandDimsOp,
        FinishEpochOp,
        ForOp,
        FullOp,
        HeapBasesOp,
        HeapZerosOp,
        IfOp,
        KernelOp,
        LaunchOp,
        LoadOp,
        MakeDescriptorOp,
        NextEpochOp,
        NumProgramsOp,
        SymmetricAddressOp,
        PermuteOp,
        RankAndProgramIdOp,
        PlanOp,
        PlanYieldOp,
        ProgramIdOp,
        RandOp,
        RankOp,
        RebaseAmongOp,
        RebaseOp,
        ReduceOp,
        RemoteLoadOp,
        ReshapeOp,
        ReturnOp,
        SignalAddAllOp,
        SignalAddOp,
        SignalAllOp,
        SignalOp,
        SignalProgramsOp,
        SplitOp,
        StoreOp,
        Swizzle2dOp,
        UnaryOp,
        WaitAllOp,
        WaitOp,
        WaitProgramsOp,
        WhereOp,
        YieldOp,
        ZerosOp,
    ],
    [
        BinaryKindAttr,
        CacheModifierType,
        CompareKindAttr,
        ConstexprType,
        DescriptorType,
        PrecisionAttr,
        ProgramsType,
        PtrType,
        ReduceKindAttr,
        UnaryKindAttr,
    ],
)
