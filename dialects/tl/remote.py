"""
The operations of the `tl` dialect on memory of other ranks and on flags.

One to one with `comet.runtime.shim`. A pointer always points into this rank's heap;
`tl.rebase` gives the same object on another rank.
"""

from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr, i1, i32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.tl.blocks import expect_type
from comet.dialects.tl.memory import LoadLike
from comet.dialects.tl.types import (
    ConstexprType,
    ProgramsType,
    PtrType,
    broadcast_shapes,
    element_of,
    shape_of,
)

BASES = PtrType(i64)
"""The table of heap addresses, one for each rank."""
FLAG = PtrType(i32)
"""A flag, or the counters that number launches."""


@irdl_op_definition
class RankAndProgramIdOp(IRDLOperation):
    """
    The rank id that this program works for, and its program id among that rank's
    programs.

    If one launch has the programs of all ranks, the `first` ones of each, for which
    others may wait, come before all others, interleaved. The others come rank by rank.
    Without `first`, all are interleaved.

    ```mlir
    %r, %pid = tl.rank_and_program_id %rank, %PROGRAMS first 16
    ```
    """

    name = "tl.rank_and_program_id"
    rank = operand_def(i32)
    programs = operand_def(ProgramsType())
    first = opt_prop_def(IntegerAttr[I64])
    rank_id = result_def(i32)
    program = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "$rank `,` $programs (`first` $first^)? attr-dict"

    def __init__(self, rank: SSAValue, programs: SSAValue, first: int | None = None):
        super().__init__(
            operands=[rank, programs],
            properties={"first": None if first is None else IntegerAttr(first, i64)},
            result_types=[i32, i32],
        )


@irdl_op_definition
class SymmetricAddressOp(IRDLOperation):
    """
    The symmetric address of a parameter of the kernel: the pointer to this rank's copy.

    It is the parameter, unless one launch has the programs of all ranks: then
    parameters point to rank 0's copies.

    ```mlir
    %a = tl.symmetric_address %a_ptr, %rank, %bases, %PROGRAMS : !tl.ptr<f16>
    ```
    """

    name = "tl.symmetric_address"
    T: ClassVar = VarConstraint("T", base(PtrType))
    pointer = operand_def(T)
    rank = operand_def(i32)
    bases = operand_def(BASES)
    programs = operand_def(ProgramsType())
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = (
        "$pointer `,` $rank `,` $bases `,` $programs attr-dict `:` type($pointer)"
    )

    def __init__(
        self, pointer: SSAValue, rank: SSAValue, bases: SSAValue, programs: SSAValue
    ):
        super().__init__(
            operands=[pointer, rank, bases, programs], result_types=[pointer.type]
        )


@irdl_op_definition
class RebaseOp(IRDLOperation):
    """
    The pointer to the same object on rank `remote`; block addresses start from it.

    ```mlir
    %there = tl.rebase %here, %rank, %source, %bases : !tl.ptr<f16>
    ```
    """

    name = "tl.rebase"
    T: ClassVar = VarConstraint("T", base(PtrType))
    pointer = operand_def(T)
    current = operand_def(i32)
    remote = operand_def(i32)
    bases = operand_def(BASES)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = (
        "$pointer `,` $current `,` $remote `,` $bases attr-dict `:` type($pointer)"
    )

    def __init__(
        self, pointer: SSAValue, current: SSAValue, remote: SSAValue, bases: SSAValue
    ):
        super().__init__(
            operands=[pointer, current, remote, bases], result_types=[pointer.type]
        )


@irdl_op_definition
class RebaseAmongOp(IRDLOperation):
    """
    The same as `tl.rebase` among `world` ranks, for a rank that changes in a loop.

    ```mlir
    %there = tl.rebase_among %here, %rank, %source, %bases, %WORLD
        : !tl.ptr<f16>, !tl.constexpr<8>
    ```
    """

    name = "tl.rebase_among"
    T: ClassVar = VarConstraint("T", base(PtrType))
    pointer = operand_def(T)
    current = operand_def(i32)
    remote = operand_def(i32)
    bases = operand_def(BASES)
    world = operand_def(ConstexprType)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = (
        "$pointer `,` $current `,` $remote `,` $bases `,` $world attr-dict `:` "
        "type($pointer) `,` type($world)"
    )

    def __init__(
        self,
        pointer: SSAValue,
        current: SSAValue,
        remote: SSAValue,
        bases: SSAValue,
        world: SSAValue,
    ):
        super().__init__(
            operands=[pointer, current, remote, bases, world],
            result_types=[pointer.type],
        )


@irdl_op_definition
class RemoteLoadOp(LoadLike):
    """
    Read a block, each element from its own rank; `remote` broadcasts.

    ```mlir
    %x = tl.remote_load %p, %rank, %sources, %bases
        : tensor<4x64x!tl.ptr<f16>>, tensor<4x1xi32> -> tensor<4x64xf16>
    ```
    """

    name = "tl.remote_load"
    current = operand_def(i32)
    remote = operand_def()
    bases = operand_def(BASES)
    assembly_format = (
        "$ptr `,` $current `,` $remote `,` $bases (`mask` $mask^ `:` type($mask))? "
        "(`other` $other^ `:` type($other))? attr-dict `:` type($ptr) `,` "
        "type($remote) `->` type($result)"
    )

    def __init__(
        self,
        ptr: SSAValue,
        current: SSAValue,
        remote: SSAValue,
        bases: SSAValue,
        mask: SSAValue | None = None,
        other: SSAValue | None = None,
    ):
        # Operands that a class adds come before those that it inherits.
        super().__init__([current, remote, bases, ptr, mask, other])

    def verify_(self) -> None:
        expect_type(self, "element of the ranks", element_of(self.remote.type), i32)
        shape = shape_of(self.ptr.type)
        if broadcast_shapes(self.name, shape_of(self.remote.type), shape) != shape:
            raise VerifyException(
                f"'{self.name}' op ranks are a larger block than {shape}"
            )
        super().verify_()


class _SignalLike(IRDLOperation):
    """Changes a flag of rank `remote` after all earlier stores of this program."""

    flag = operand_def(FLAG)
    value = operand_def(i32)
    current = operand_def(i32)
    remote = operand_def(i32)
    bases = operand_def(BASES)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$flag `,` $value `,` $current `,` $remote `,` $bases attr-dict"

    def __init__(
        self,
        flag: SSAValue,
        value: SSAValue,
        current: SSAValue,
        remote: SSAValue,
        bases: SSAValue,
    ):
        super().__init__(operands=[flag, value, current, remote, bases])


@irdl_op_definition
class SignalOp(_SignalLike):
    """
    Set a flag that has one writer: barrier of the threads, then a release.

    ```mlir
    tl.signal %flag, %epoch, %rank, %peer, %bases
    ```
    """

    name = "tl.signal"


@irdl_op_definition
class SignalAddOp(_SignalLike):
    """
    Add to a flag that has several writers: barrier of the threads, then a release.

    ```mlir
    tl.signal_add %flag, %one, %rank, %peer, %bases
    ```
    """

    name = "tl.signal_add"


class _SignalAllLike(IRDLOperation):
    """Changes a flag of every rank after all earlier stores of this program."""

    flag = operand_def(FLAG)
    value = operand_def(i32)
    current = operand_def(i32)
    bases = operand_def(BASES)
    world = operand_def(ConstexprType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$flag `,` $value `,` $current `,` $bases `,` $world attr-dict `:` type($world)"
    )

    def __init__(
        self,
        flag: SSAValue,
        value: SSAValue,
        current: SSAValue,
        bases: SSAValue,
        world: SSAValue,
    ):
        super().__init__(operands=[flag, value, current, bases, world])


@irdl_op_definition
class SignalAllOp(_SignalAllLike):
    """
    Set a flag that has one writer, on every rank: one barrier, then one release.

    ```mlir
    tl.signal_all %flag, %epoch, %rank, %bases, %WORLD : !tl.constexpr<4>
    ```
    """

    name = "tl.signal_all"


@irdl_op_definition
class SignalAddAllOp(_SignalAllLike):
    """
    Add to a flag that has several writers, on every rank: one barrier, one release.

    ```mlir
    tl.signal_add_all %flag, %one, %rank, %bases, %WORLD : !tl.constexpr<4>
    ```
    """

    name = "tl.signal_add_all"


@irdl_op_definition
class SignalProgramsOp(IRDLOperation):
    """
    Add one to a flag that other programs of this GPU wait for: barrier of the threads,
    then a release.

    ```mlir
    tl.signal_programs %flag
    ```
    """

    name = "tl.signal_programs"
    flag = operand_def(FLAG)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$flag attr-dict"

    def __init__(self, flag: SSAValue):
        super().__init__(operands=[flag])


@irdl_op_definition
class ArriveLastOp(IRDLOperation):
    """
    Whether this is the last of the programs that arrive at a counter: barrier of the
    threads, then an addition that releases and acquires. The last one sets the
    counter to 0 again.

    ```mlir
    %last = tl.arrive_last %counter, %arrivals
    ```
    """

    name = "tl.arrive_last"
    counter = operand_def(FLAG)
    arrivals = operand_def(i32)
    result = result_def(i1)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$counter `,` $arrivals attr-dict"

    def __init__(self, counter: SSAValue, arrivals: SSAValue):
        super().__init__(operands=[counter, arrivals], result_types=[i1])


class _WaitForFlag(IRDLOperation):
    """Waits until a flag is at least `value`, then acquires what it published."""

    flag = operand_def(FLAG)
    value = operand_def(i32)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$flag `,` $value attr-dict"

    def __init__(self, flag: SSAValue, value: SSAValue):
        super().__init__(operands=[flag, value])


@irdl_op_definition
class WaitProgramsOp(_WaitForFlag):
    """
    Wait until programs of this GPU have added to a flag up to `value`; acquire what
    they published.

    ```mlir
    tl.wait_programs %flag, %awaited
    ```
    """

    name = "tl.wait_programs"


@irdl_op_definition
class WaitOp(_WaitForFlag):
    """
    Wait until a flag of this rank is at least `value`; acquire what it published.

    ```mlir
    tl.wait %flag, %epoch
    ```
    """

    name = "tl.wait"


@irdl_op_definition
class WaitAllOp(IRDLOperation):
    """
    Wait until `count` flags of this rank, `stride` apart, are at least `value`.

    ```mlir
    tl.wait_all %flag, %epoch, %stride, %WORLD : !tl.constexpr<4>
    ```
    """

    name = "tl.wait_all"
    flag = operand_def(FLAG)
    value = operand_def(i32)
    stride = operand_def(i32)
    count = operand_def(ConstexprType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$flag `,` $value `,` $stride `,` $count attr-dict `:` type($count)"
    )

    def __init__(
        self, flag: SSAValue, value: SSAValue, stride: SSAValue, count: SSAValue
    ):
        super().__init__(operands=[flag, value, stride, count])


@irdl_op_definition
class NextEpochOp(IRDLOperation):
    """
    The number of this launch, from 1, which `counters` have in device memory.

    ```mlir
    %epoch = tl.next_epoch %counters
    ```
    """

    name = "tl.next_epoch"
    counters = operand_def(FLAG)
    result = result_def(i32)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "$counters attr-dict"

    def __init__(self, counters: SSAValue):
        super().__init__(operands=[counters], result_types=[i32])


@irdl_op_definition
class FinishEpochOp(IRDLOperation):
    """
    End a launch: the last of the rank's `programs` to arrive publishes its number.

    ```mlir
    tl.finish_epoch %counters, %epoch, %programs
    ```
    """

    name = "tl.finish_epoch"
    counters = operand_def(FLAG)
    epoch = operand_def(i32)
    programs = operand_def(i32)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$counters `,` $epoch `,` $programs attr-dict"

    def __init__(self, counters: SSAValue, epoch: SSAValue, programs: SSAValue):
        super().__init__(operands=[counters, epoch, programs])
