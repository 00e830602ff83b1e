"""
Work-arounds for bugs and gaps of Triton, one function each: what breaks without it.

Nothing else in `passes/triton` is there for the sake of a compiler below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import cast

from xdsl.dialects.builtin import BFloat16Type, IntegerAttr, IntegerType, f32, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from comet.dialects import tl
from comet.dialects.compound import MapOp, ReduceOp
from comet.dialects.compound.dims import element_type_of
from comet.dialects.compound.elementary import is_integer, truncated
from comet.dialects.dataflow import KernelOp
from comet.dialects.parents import enclosing
from comet.dialects.schedule import CopyOp, SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import GRID_AXES, UNROLLED
from comet.dialects.tl.types import BinaryKind, CompareKind, element_of, shape_of
from comet.passes.triton.lower_to_triton.values import Scope, converted, literal
from comet.passes.triton.slices import kernel_slices
from comet.passes.triton.use_descriptors import has_other_axes


def breaks_thread_locality(op: ReduceOp) -> bool:
    """
    Whether Triton's pass OptimizeThreadLocality would take up a reduction, and break.

    The pass moves the reduction of a tile that a loop has just loaded out of the loop.
    Up to Triton 3.8 it assumes, unchecked, that the loop's result has one use
    (triton-lang/triton#11682) and that the loop accumulates by the same kind (#11305):
    results are wrong, or the compiler crashes. Anything between the load and the
    reduction keeps the pass away: a selection that changes nothing is put there.
    """
    node, user = op.parent_op(), op.result.get_user_of_unique_use()
    if not isinstance(node, TemporalOp) or user is None:
        return False
    if op.input not in node.tiles and not isinstance(op.input.owner, CopyOp):
        return False
    if user is node.body.block.last_op:
        result = node.outs[node.yielded.index(op.result)]
        return result.has_more_than_one_use()
    return isinstance(user, MapOp) and user.result in node.yielded


def permute_before_loops(kernel: tl.KernelOp) -> None:
    """
    Move permutations of blocks before the loops that do not change the blocks.

    Matrix instructions of sm_90 read operands from shared memory, and Triton 3.9 stores
    one there where it is permuted: in a loop, again in each iteration, and registers
    hold it through all of them.
    """
    moved: dict[tuple[SSAValue, tuple[int, ...], Block], SSAValue] = {}
    for op in list(kernel.walk()):
        if not isinstance(op, tl.PermuteOp):
            continue
        place = op
        while isinstance(loop := place.parent_op(), tl.ForOp):
            if loop.is_ancestor(op.input.owner):
                break
            place = loop
        if place is op or (block := place.parent) is None:
            continue
        key = op.input, op.order.get_values(), block
        if key in moved:
            Rewriter.replace_op(op, (), (moved[key],))
            continue
        op.detach()
        block.insert_op_before(op, place)
        op.result.name_hint = f"{op.input.name_hint or 'block'}_t"
        moved[key] = op.result


def store_last_first(kernel: tl.KernelOp) -> None:
    """
    Reverse the order of stores that no other effect stands between.

    A store has another layout than what a narrower load is computed in, and Triton 3.6
    computes the value again in it. Where the values of a chain are stored in their
    order, a later one may read what was computed for an earlier one too early:
    "operand does not dominate this use", in RemoveLayoutConversions. The last value
    needs all others, so that none comes too late if it is stored first.
    """
    blocks = (
        block
        for op in kernel.walk()
        for region in op.regions
        for block in region.blocks
    )
    for block in blocks:
        stores: list[tl.StoreOp] = []
        for op in list(block.ops):
            if isinstance(op, tl.StoreOp):
                stores.append(op)
            elif not is_side_effect_free(op):
                _reverse(stores)
                stores = []
        _reverse(stores)


def _reverse(stores: Sequence[tl.StoreOp]) -> None:
    """Move stores of a block behind the last one, in reverse order."""
    for op, after in pairwise(reversed(stores)):
        block = op.parent
        assert block is not None
        after.detach()
        block.insert_op_after(after, op)


def breaks_warp_groups(grid: SpatialOp) -> bool:
    """
    Whether Triton would fail to divide a kernel's copies between two groups of warps.

    Triton 3.9 fails where a descriptor has axes that the tile lacks; the loops of such
    a kernel are not specialized.
    """
    slices = kernel_slices(grid)
    copies = (op for op in grid.walk() if isinstance(op, CopyOp) and op.descriptor)
    return any(has_other_axes(op, slices[op.parent_op()]) for op in copies)


def end_at_run_time(
    scope: Scope, node: TemporalOp, iterations: int, end: SSAValue
) -> SSAValue:
    """
    Return the end of a loop; ptxas does not know that of a long one.

    Where it does, it unrolls loops of PTX whole: 16 iterations of a product of 128 x
    256 x 64 to 64 instead of 4 matrix instructions, 64 of 16 x 64 x 64 to 512 instead
    of 8, in twice the time. LLVM, for gfx942, unrolls eight of 256 x 256 x 16 and reads
    operands early: 92 bytes were spilled, of 174 registers in a loop. Triton's
    `loop_unroll_factor` reaches neither. What is added is 0: the program id along an
    axis that the grid does not have, or by how often it exceeds the programs there.
    """
    kernel = enclosing(node, KernelOp)
    if iterations <= UNROLLED or kernel is None:
        return end
    nodes = (op for op in kernel.walk() if isinstance(op, SpatialOp))
    grids = [op.programs.grid for op in nodes if op.programs]
    last = max((grid[-1] for grid in grids if len(grid) == GRID_AXES), default=1)
    prologue, axis = scope.prologue, GRID_AXES - 1
    if last == 1:
        zero = prologue.insert(tl.ProgramIdOp(axis), "zero")
    else:
        program = prologue.insert(tl.ProgramIdOp(axis))
        programs = prologue.integer(last)
        times = tl.BinaryOp(BinaryKind.FLOORDIV, program, programs)
        zero = prologue.insert(times, "zero")
    return scope.binary(BinaryKind.ADD, end, zero, "end")


def make_branch_ends_differ(branches: Iterable[Block]) -> None:
    """
    Put barriers at the end of branches that end with the same ops as an earlier one.

    MLIR makes one block of those ends. The shared memory of a branch is then alive
    until this block, so that Triton adds up that of both branches (3.9; a kernel of two
    equal products took 384 KB instead of 192). The number of barriers, for which no
    program waits long, makes the ends differ.
    """
    earlier: Counter[tuple[object, ...]] = Counter()
    for block in branches:
        end = tuple(
            (op.name, *(value.type for value in op.results))
            for op in _after_products(block)
        )
        if block.last_op is not None and end:
            for _ in range(earlier[end]):
                block.insert_op_before(tl.DebugBarrierOp(), block.last_op)
            earlier[end] += 1


def _after_products(block: Block) -> list[Operation]:
    """Return the ops after the last loop that fills shared memory for products."""
    found: list[Operation] = []
    for op in reversed(block.ops):
        found.append(op)
        if isinstance(op, tl.ForOp) and any(
            isinstance(nested, tl.DotOp) for nested in op.walk()
        ):
            return found[:-1]
    return []


def in_f32(scope: Scope, value: SSAValue) -> SSAValue:
    """
    Return a value in f32, in which everything but a dot is computed.

    Triton's interpreter has no arithmetic of bf16: it computes with the bits.
    """
    return converted(scope, value, f32)


def before_cast(scope: Scope, value: SSAValue, element: Attribute) -> SSAValue:
    """
    Return the operand of a cast: in f32 for a cast between integers and bf16.

    Triton's interpreter converts an integer to the bits of a bf16, or these to one. And
    it casts no Python number: one that is no integer, such as infinity, is a block.
    """
    if isinstance(constant := value.owner, tl.ConstantOp):
        number, integer = truncated(constant.number), cast("IntegerType", element)
        if isinstance(element, IntegerType) and not is_integer(number, integer):
            return scope.insert(tl.FullOp(constant.value, []))
        return value
    types = {type(element_of(value.type)), type(element)}
    return in_f32(scope, value) if types == {BFloat16Type, IntegerType} else value


def compared_in_block(
    scope: Scope, kind: CompareKind, number: SSAValue, limit: int, dims: Sequence[str]
) -> SSAValue:
    """
    Return how an integer compares to a limit, for all elements of a block.

    Triton's interpreter makes bytes of a scalar condition that a block is masked with,
    and then takes it for no mask. And its loops count in integers of Python, which
    `tl.broadcast_to` does not take, but sums do.
    """
    if scope.axes(dims):
        sizes = scope.block_sizes(dims)
        if _counts_loops(number):
            zero = IntegerAttr(0, i32)
            zeros = scope.insert(tl.FullOp(zero, sizes))
            number = scope.binary(BinaryKind.ADD, zeros, number)
        else:
            number = scope.insert(tl.BroadcastToOp(number, sizes))
    constant = scope.integer(limit)
    return scope.compare(kind, number, constant)


def _counts_loops(number: SSAValue) -> bool:
    """Whether a number comes from loops and constants alone."""
    if isinstance(owner := number.owner, Block):
        return True
    return isinstance(owner, tl.ConstantOp) or (
        isinstance(owner, tl.BinaryOp) and all(map(_counts_loops, owner.operands))
    )


def compared(scope: Scope, kind: CompareKind, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """
    Return how two values compare; positions of rows and columns by their difference.

    LLVM widens loop variables to 64 bits if they are also in addresses, and with them
    all values that they are compared with. Then each loop-invariant position in the
    mask of a loop takes two registers (Triton 3.6 to 3.9, sm_90). Positions are from 0
    to 2^31 - 1, so that their differences fit in 32 bits.
    """
    broadcast = _along_rows(lhs, rhs) and _along_rows(rhs, lhs)
    ordered = kind in (CompareKind.GE, CompareKind.GT)
    if not (broadcast and ordered and _is_position(lhs) and _is_position(rhs)):
        return scope.compare(kind, lhs, rhs)
    distance = scope.binary(BinaryKind.SUB, lhs, rhs)
    zero = scope.integer(0)
    return scope.compare(kind, distance, zero)


def _along_rows(value: SSAValue, other: SSAValue) -> bool:
    """Whether a block broadcasts along some axis of another one."""
    extents = zip(shape_of(value.type), shape_of(other.type), strict=False)
    return any(own == 1 < wide for own, wide in extents)


def _is_position(value: SSAValue) -> bool:
    """Whether integers are computed from loop variables and ids of programs alone."""
    if element_of(value.type) != i32:
        return False
    owner = value.owner
    if isinstance(owner, Block):
        return not shape_of(value.type)
    return all(map(_is_position, owner.operands))


def dot_operand(scope: Scope, value: SSAValue) -> SSAValue:
    """
    Return an operand of a dot, of bf16 as one that the interpreter multiplies as f32.

    It would multiply blocks of bf16 as integers; on a device nothing changes.
    """
    if not isinstance(element_of(value.type), BFloat16Type):
        return value
    return scope.insert(tl.DotOperandOp(value))


def with_a_block(scope: Scope, operands: Sequence[SSAValue]) -> list[SSAValue]:
    """
    Return operands of which one is a block: the first of constants becomes rank 0.

    Triton's functions and conversions take blocks, and fail if all operands are Python
    numbers.
    """
    first, *others = operands
    constant = first.owner
    if any(literal(value) is None for value in operands):
        return [first, *others]
    assert isinstance(constant, tl.ConstantOp)
    return [scope.insert(tl.FullOp(constant.value, [])), *others]


def typed_start(scope: Scope, start: SSAValue, like: SSAValue) -> SSAValue:
    """
    Return the init arg of a scalar accumulator, with the element type of `like`.

    A Python number is f32 or i32 to Triton, which rejects a loop whose
    iter_arg starts with it and has another type afterwards.
    """
    number, element = literal(start), element_type_of(like)
    if number is None or element in (f32, i32):
        return start
    return scope.insert(tl.FullOp(tl.ConstantOp.of(number, element).value, []))
