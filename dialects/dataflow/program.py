"""Launch plans: programs, their kernels, buffers and barriers."""

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    base,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    MemoryAllocEffect,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException

from comet.dialects.blocks import yielded_by
from comet.dialects.compound.gather import ScatterAddOp
from comet.dialects.dataflow.arrival import CountersType
from comet.dialects.dataflow.channel import ChannelType
from comet.dialects.dataflow.flags import FlagsType
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.node import NodeOp


def _verify_types(
    op: Operation, what: str, found: Sequence[SSAValue], expected: Sequence[SSAValue]
) -> None:
    """Raise `VerifyException` unless both lists of values have the same types."""
    types = [[value.type for value in values] for values in (found, expected)]
    if types[0] != types[1]:
        actual, wanted = (", ".join(map(str, values)) for values in types)
        raise VerifyException(f"'{op.name}' op {what} ({actual}), expected ({wanted})")


def _yielded(op: Operation, block: Block) -> Sequence[SSAValue]:
    """Return the yielded values; raise `VerifyException` without a `dataflow.yield`."""
    if not isinstance(block.last_op, YieldOp):
        raise VerifyException(f"'{op.name}' op region ends in dataflow.yield")
    return block.last_op.values


@irdl_op_definition
class YieldOp(IRDLOperation):
    """
    The results of a program or a kernel.

    ```mlir
    dataflow.yield %c : tensor<4x8xf16, #compound.dims<M, N @HBM>>
    ```
    """

    name = "dataflow.yield"
    values = var_operand_def()
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(KernelOp, ProgramOp)))
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


@irdl_op_definition
class BufferOp(IRDLOperation):
    """
    A buffer in device memory that lives as long as the program; its contents are
    undefined until the one kernel with it in `outs` has written it.

    A `zeroed` one is first set to 0 by a separate launch: that kernel adds to it.

    ```mlir
    %scores = dataflow.buffer : tensor<4x8xf32, #compound.dims<M, N @HBM>>
    %sums = dataflow.buffer zeroed : tensor<4x8xf32, #compound.dims<M, N @HBM>>
    ```
    """

    name = "dataflow.buffer"
    zeroed = opt_prop_def(UnitAttr)
    result = result_def(base(TensorType))
    traits = traits_def(MemoryAllocEffect())
    assembly_format = "(`zeroed` $zeroed^)? attr-dict `:` type($result)"

    def __init__(self, type: Attribute, *, zeroed: bool = False):
        super().__init__(
            result_types=[type],
            properties={"zeroed": UnitAttr() if zeroed else None},
        )


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """
    On every rank, all kernels before it end before one after it starts.

    `local` orders the kernels of one rank only, as launches on one stream are.

    ```mlir
    dataflow.barrier
    dataflow.barrier local
    ```
    """

    name = "dataflow.barrier"
    local = opt_prop_def(UnitAttr)
    traits = lazy_traits_def(lambda: (HasParent(ProgramOp),))
    assembly_format = "(`local` $local^)? attr-dict"

    def __init__(self, local: bool = False):
        super().__init__(properties={"local": UnitAttr() if local else None})


def shards_attr(extents: Mapping[str, int]) -> DictionaryAttr | None:
    """Return the `shards` property of a kernel, None if there are none."""
    shards = {dim: IntegerAttr(extent, i64) for dim, extent in extents.items()}
    return DictionaryAttr(shards) if shards else None


@irdl_op_definition
class KernelOp(IRDLOperation):
    """
    One kernel and its launch: the schedule nodes of `body` computed from `ins`, their
    results written to the buffers `outs`. A result is its buffer, filled.

    Channels are among the `ins`, each once; a kernel that only produces values of
    channels has no `outs`. If a node has two loops over a dimension in `sources`, the
    first is over the ranks that sent it; the first loop over a dimension in
    `destinations` is over the ranks that receive it. `shards` has the extent over all
    ranks of dimensions with unequal shards. At least `coresident` programs have to run
    at the same time, with those before them, because they wait for each other.

    ```mlir
    %c = dataflow.kernel @gemm ins(%a, %b : tensor<..>, tensor<..>)
        outs(%buffer : tensor<..>) sources ["K"] shards {K = 10 : i64} {
    ^bb0(%a1: tensor<..>, %b1: tensor<..>):
      %c1 = schedule.spatial on grid [g0: M = 8] ...
      dataflow.yield %c1 : tensor<..>
    } -> tensor<..>
    ```
    """

    name = "dataflow.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    ins = var_operand_def()
    outs = var_operand_def()
    body = region_def("single_block")
    results_ = var_result_def()
    sources = opt_prop_def(ArrayAttr[StringAttr])
    destinations = opt_prop_def(ArrayAttr[StringAttr])
    shards = opt_prop_def(DictionaryAttr)
    coresident = opt_prop_def(IntegerAttr[I64])
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = lazy_traits_def(
        lambda: (IsolatedFromAbove(), RecursiveMemoryEffect(), HasParent(ProgramOp))
    )
    assembly_format = (
        "$sym_name (`ins` `(` $ins^ `:` type($ins) `)`)? (`outs` `(` $outs^ `:` "
        "type($outs) `)`)? (`sources` $sources^)? (`destinations` $destinations^)? "
        "(`shards` $shards^)? (`coresident` $coresident^)? attr-dict-with-keyword "
        "$body (`->` type($results_)^)?"
    )

    def __init__(
        self,
        name: str,
        ins: Sequence[SSAValue],
        outs: Sequence[SSAValue],
        body: Region,
    ):
        super().__init__(
            operands=[ins, outs],
            result_types=[[out.type for out in outs]],
            properties={"sym_name": StringAttr(name)},
            regions=[body],
        )

    @property
    def shard_extents(self) -> dict[str, int]:
        """The extents over all ranks of dimensions with unequal shards, in elements."""
        shards: Mapping[str, Attribute] = self.shards.data if self.shards else {}
        return {
            dim: extent.value.data
            for dim, extent in shards.items()
            if isinstance(extent, IntegerAttr)
        }

    @property
    def nodes(self) -> tuple[SpatialOp, ...]:
        """The nodes on the launch grid, in order."""
        return tuple(op for op in self.body.block.ops if isinstance(op, SpatialOp))

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """What the body makes for each of the buffers `outs`."""
        return yielded_by(self.body.block)

    @property
    def launch(self) -> LaunchAttr | None:
        """
        The launch numbers: the maximum over its nodes, None if none has any yet.

        One launch has the same numbers for all programs. The most registers of a thread
        are the fewest that a node gives.
        """
        wanted = [node.launch for node in self.nodes if node.launch is not None]
        if not wanted:
            return None
        warps = max(launch.warps for launch in wanted)
        stages = max(launch.stages for launch in wanted)
        specialize = all(launch.specialize for launch in wanted)
        limits = [launch.registers for launch in wanted if launch.registers]
        registers = min(limits, default=0)
        return LaunchAttr(
            warps,
            stages,
            specialize=specialize,
            registers=registers,
            cluster=max(launch.cluster for launch in wanted),
        )

    def launch_of(self, node: SpatialOp) -> LaunchAttr:
        """
        Return the launch numbers of the programs of one of its nodes.

        These are those of the launch, and the subtiles of the node's own epilogue.
        """
        own, launch = node.launch or LaunchAttr(), self.launch or LaunchAttr()
        return launch.replaced(subtiles=own.subtiles)

    def verify_(self) -> None:
        block = self.body.block
        _verify_types(self, "region takes", block.args, self.ins)
        _verify_types(self, "region yields", _yielded(self, block), self.outs)
        _verify_types(self, "results are", self.results_, self.outs)
        self._verify_ranks()
        self._verify_clusters()
        shared = ChannelType | FlagsType | CountersType
        memory = [v for v in self.ins if isinstance(v.type, shared)]
        if len(set(memory)) < len(memory):
            raise VerifyException(
                f"'{self.name}' op @{self.sym_name.data} takes a channel, flags "
                "or counters twice; one argument each is enough"
            )
        for out, value in zip(self.outs, _yielded(self, block), strict=True):
            self._verify_buffer(out)
            self._verify_zeros(out, value)
        if self.coresident is not None and self.coresident.value.data < 2:
            raise VerifyException(
                f"'{self.name}' op @{self.sym_name.data} has programs that wait for "
                f"each other, at least 2, not {self.coresident.value.data}"
            )

    def _verify_clusters(self) -> None:
        """Check that all programs of a launch are clusters of as many blocks."""
        launch = self.launch
        if launch is not None and launch.cluster > 1 and len(self.nodes) > 1:
            raise VerifyException(
                f"'{self.name}' op @{self.sym_name.data} has several nodes, and its "
                "programs are clusters; leave cluster out, or launch them one by one"
            )

    def _verify_ranks(self) -> None:
        """Check the kernel's properties for dimensions that are sharded over ranks."""
        nodes = [op for op in self.body.walk() if isinstance(op, NodeOp)]
        looped = {loop.dim for node in nodes for loop in node.loops}
        named = {"sources": self.sources, "destinations": self.destinations}
        for what, names in named.items():
            dims = [] if names is None else [name.data for name in names]
            for dim in dims:
                if dims.count(dim) > 1 or dim not in looped:
                    raise VerifyException(
                        f"'{self.name}' op @{self.sym_name.data} names {dim} in its "
                        f"{what}; name dimensions that its nodes loop over, each once"
                    )
        extents = self.shard_extents
        for dim in self.shards.data if self.shards else ():
            if extents.get(dim, 0) < 1:
                raise VerifyException(
                    f"'{self.name}' op @{self.sym_name.data} has no positive number of "
                    f"elements of {dim} in shards"
                )

    def _verify_buffer(self, out: SSAValue) -> None:
        if not isinstance(out.owner, BufferOp):
            raise VerifyException(
                f"'{self.name}' op @{self.sym_name.data} writes to a value that is no "
                "dataflow.buffer"
            )
        if out.has_more_than_one_use():
            raise VerifyException(
                f"'{self.name}' op @{self.sym_name.data} shares its output buffer; "
                "read the kernel's result, and give other kernels their own buffers"
            )

    def _verify_zeros(self, out: SSAValue, value: SSAValue) -> None:
        """Check that what is added to is 0 before, and nothing else is."""
        adds = isinstance(value.owner, ScatterAddOp)
        if isinstance(out.owner, BufferOp) and adds != (out.owner.zeroed is not None):
            does, wants = ("adds", "zeroed") if adds else ("stores", "not zeroed")
            raise VerifyException(
                f"'{self.name}' op @{self.sym_name.data} {does} to its output, so the "
                f"dataflow.buffer of it is {wants}"
            )


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """
    A launch plan: buffers, kernels in launch order, and barriers between them.

    A kernel that reads what an earlier one wrote comes after a barrier.

    ```mlir
    %c = dataflow.program ins(%a, %b : tensor<..>, tensor<..>) {
    ^bb0(%a1: tensor<..>, %b1: tensor<..>):
      %buffer = dataflow.buffer : tensor<..>
      %c1 = dataflow.kernel @gemm ins(%a1, %b1 : ..) outs(%buffer : ..) { .. } -> ..
      dataflow.yield %c1 : tensor<..>
    } -> tensor<..>
    ```
    """

    name = "dataflow.program"
    ins = var_operand_def()
    body = region_def("single_block")
    results_ = var_result_def()
    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect())
    assembly_format = (
        "`ins` `(` $ins `:` type($ins) `)` attr-dict-with-keyword "
        "$body `->` type($results_)"
    )

    def __init__(
        self, ins: Sequence[SSAValue], result_types: Sequence[Attribute], body: Region
    ):
        super().__init__(operands=[ins], result_types=[result_types], regions=[body])

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The results, inside."""
        return yielded_by(self.body.block)

    def kernels(self) -> Iterator[KernelOp]:
        """Iterate over the kernels, in launch order."""
        return (op for op in self.body.block.ops if isinstance(op, KernelOp))

    def verify_(self) -> None:
        block = self.body.block
        _verify_types(self, "region takes", block.args, self.ins)
        _verify_types(self, "region yields", _yielded(self, block), self.results_)
        names: set[str] = set()
        unfinished: set[SSAValue] = set()
        for op in block.ops:
            if isinstance(op, BarrierOp):
                unfinished.clear()
            if isinstance(op, KernelOp):
                self._verify_kernel(op, names, unfinished)

    def _verify_kernel(
        self, kernel: KernelOp, names: set[str], unfinished: set[SSAValue]
    ) -> None:
        name = kernel.sym_name.data
        if name in names:
            raise VerifyException(f"'{self.name}' op has two kernels @{name}")
        if any(value in unfinished for value in kernel.ins):
            raise VerifyException(
                f"'{self.name}' op kernel @{name} reads what an earlier kernel writes; "
                "put a dataflow.barrier between them"
            )
        names.add(name)
        unfinished.update(kernel.results_)


def programs_in(op: Operation) -> list[ProgramOp]:
    """Return the launch plans inside an op, in order."""
    return [inner for inner in op.walk() if isinstance(inner, ProgramOp)]
