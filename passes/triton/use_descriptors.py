"""
`use-descriptors`: copies of a kernel by tensor descriptor, which the hardware does.

A copy by descriptor needs no registers for addresses and no masks: TMA, the tensor
memory accelerator of Hopper, computes where a block is, and reads zeros beyond the end
of the tensor. It can copy a block with two axes or more, if the program only reads the
tensor, rows begin at multiples of 16 bytes, and what is masked is the tensor's end.
Other copies stay as they are. Takes functions at the dataflow level, with masks.

It also stores results of kernels whose launch numbers have `parts` (`stage-stores`):
the rows of a tile in this number of parts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Literal

from xdsl.dialects.builtin import I64, IntegerAttr, ModuleOp, UnitAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.compound import ReduceKind, RenameOp
from comet.dialects.compound.dims import element_type_of, extents_of, level_of, names_of
from comet.dialects.dataflow import KernelOp
from comet.dialects.dataflow.locality import is_local
from comet.dialects.errors import OpError
from comet.dialects.schedule import CopyOp, SpatialOp, YieldOp
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.node import nodes_around, outside
from comet.dialects.tl.descriptors import MAX_AXES, MAX_ROWS, MIN_BYTES
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.triton.mask_copies import mask_copies
from comet.passes.triton.slices import Slice, cut_dims, kernel_slices

MAX_BLOCK = 256
"""The most elements of a block along an axis: CUDA, cuTensorMapEncodeTiled."""

Slices = Mapping[Operation | None, Mapping[str, Slice]]


@dataclass(frozen=True)
class UseDescriptorsPass(FunctionPass):
    """Let tensor descriptors copy the operands of products, where they can."""

    name = "use-descriptors"

    LEVELS = (IRLevel.DATAFLOW,)
    TAKES_COPIES = True

    kernels: Literal["all", "specialized"] = "all"
    """The kernels to look at: `all`, or those whose launch numbers say `specialize`."""

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_gpu(self.name, module)
        alignment = device_of(system).triton.copies.descriptor_bytes
        if not alignment:
            raise PassFailedException(
                f"use-descriptors: @{system.label.data} has no descriptors; use "
                "copies=pointers, or say descriptor_bytes in its hardware file",
            )
        mask_copies(function)
        grids = [grid for grid in grid_nodes(function) if self._takes(grid)]
        levels = gpu_levels(system)
        for copy in tuple(descriptor_copies(grids, levels, alignment)):
            copy.descriptor = UnitAttr()
        for kernel in (op for op in function.walk() if isinstance(op, KernelOp)):
            if parts := stored_parts(kernel):
                _store_in_parts(kernel, parts, levels, alignment)

    def _takes(self, grid: SpatialOp) -> bool:
        """Whether copies of a kernel are looked at: not those to several blocks."""
        launch = grid.launch or LaunchAttr()
        return launch.specialize or (self.kernels == "all" and launch.cluster == 1)


def descriptor_copies(
    grids: Iterable[SpatialOp], levels: GpuLevels, alignment: int
) -> Iterator[CopyOp]:
    """
    Yield the copies of kernels that a descriptor can do.

    `alignment` is what the distance of rows has to be a multiple of, in bytes. Products
    in f32 use no matrix instructions: their threads read what descriptors copied into
    more registers than they have (Triton 3.9, sm_90: 64 x 64 x 32 spills 304 bytes).
    """
    for grid in grids:
        slices = kernel_slices(grid)
        for op in grid.walk():
            if (
                isinstance(op, CopyOp)
                and level_of(op.source) == levels.memory
                and level_of(op.result) == levels.shared
                and element_type_of(op.source) != f32
                and _is_only_read(op.source)
                and is_block(op, outside(op.source), slices, alignment)
                and ends_with_tensor(op, outside(op.source), slices)
            ):
                yield op


def _is_only_read(source: SSAValue) -> bool:
    """
    Return whether a tile is of a parameter, or a rename, in a local kernel.

    Ranks have equal shards: the end of a shorter one is not that of its memory.
    """
    value = outside(source)
    while isinstance(value, OpResult) and isinstance(value.owner, RenameOp):
        value = outside(value.owner.input)
    kernel = value.block.parent_op() if isinstance(value, BlockArgument) else None
    return isinstance(kernel, KernelOp) and _has_whole_shards(kernel)


def _has_whole_shards(kernel: KernelOp) -> bool:
    return is_local(kernel) and not kernel.shards


def stored_parts(kernel: KernelOp) -> int:
    """Return in how many parts descriptors store results; 0 if pointers store them."""
    return max((node.launch.parts for node in kernel.nodes if node.launch), default=0)


def _store_in_parts(
    kernel: KernelOp, parts: int, levels: GpuLevels, alignment: int
) -> None:
    """Let descriptors store the results of a kernel, or raise OpError."""
    copies = stored_copies(kernel, levels, alignment, parts)
    if not copies:
        raise OpError(kernel, f"use-descriptors: {not_stored(kernel, alignment)}")
    for copy in copies:
        copy.descriptor = UnitAttr()
        if parts > 1:
            copy.parts = IntegerAttr[I64](parts, 64)


def not_stored(kernel: KernelOp, alignment: int) -> str:
    """Return why descriptors cannot store the results of a kernel, and the way out."""
    return (
        f"no descriptor can store what @{kernel.sym_name.data} computes: it takes "
        "blocks of results that no program reads, by all warps of one rank, with rows "
        f"at multiples of {alignment} bytes, and whole ones in clusters; leave it out, "
        "or use stores=none"
    )


def stored_copies(
    kernel: KernelOp, levels: GpuLevels, alignment: int, parts: int
) -> tuple[CopyOp, ...]:
    """
    Return the copies of the results of a kernel, if descriptors store all in parts.

    Not in kernels of several nodes or with producer warps. Copies in nodes inside the
    one on the launch grid, as in groups of programs, do not count. Each thread block of
    a cluster stores its columns: parts of all would pass between blocks.
    """
    if not _has_whole_shards(kernel) or len(kernel.nodes) != 1:
        return ()
    (node,) = kernel.nodes
    if node.launch is None or node.launch.specialize or not _are_results(kernel, node):
        return ()
    if (cluster := node.launch.cluster) > 1 and parts > 1:
        return ()
    copies = tuple(value.owner for value in node.yielded)
    slices = kernel_slices(node)
    found = [
        copy
        for copy, result in zip(copies, node.results, strict=True)
        if isinstance(copy, CopyOp)
        and level_of(copy.source) != levels.memory
        and level_of(copy.result) == levels.memory
        and is_block(copy, result, slices, alignment, parts * cluster)
        and ends_with_tensor(copy, result, slices)
    ]
    return tuple(found) if len(found) == len(copies) else ()


def _are_results(kernel: KernelOp, node: SpatialOp) -> bool:
    """Whether tiles of a node are of results of its kernel, and nothing reads them."""
    cut = {loop.dim for loop in node.loops if loop.factor > 1}
    stored = all(
        isinstance(use.operation, YieldOp) for made in node.yielded for use in made.uses
    )
    returned = all(
        use.operation is kernel.body.block.last_op
        for result in node.results
        for use in result.uses
    )
    whole = all(cut <= {*names_of(result)} for result in node.results)
    return stored and returned and whole


def is_block(
    op: CopyOp, tensor: SSAValue, slices: Slices, alignment: int, parts: int = 1
) -> bool:
    """Return whether a copy is of blocks of a descriptor, `parts` along its rows."""
    if not names_of(op.source):
        return False
    node_slices, extents = slices[op.parent_op()], extents_of(tensor)
    blocks = {d: node_slices[d].block for d in names_of(op.source) if extents[d] > 1}
    bits = element_type_of(op.source).bitwidth
    last = names_of(op.source)[-1]
    if last in blocks:
        blocks[last] //= parts
    return (
        sum(block > 1 for block in blocks.values()) > 1
        and (last in blocks or parts == 1)
        and len(blocks) <= MAX_AXES
        and max(blocks.values()) <= MAX_BLOCK
        and blocks.get(last, 1) * bits >= 8 * MIN_BYTES
        and extents[last] * bits % (8 * alignment) == 0
    )


def descriptor_axes(
    extents: Mapping[str, int], tiled: Collection[str], masked: Collection[str]
) -> tuple[tuple[str, ...], ...]:
    """
    Return the dimensions of a tensor that each axis of its descriptor counts.

    Dimensions before the first of the `tiled` ones, of which a tile has more than one
    element, are rows of that one. They are axes of their own if the first is `masked`,
    because the row after its end is one of another matrix, or if there are more rows
    than an index can count.
    """
    dims = tuple(dim for dim, extent in extents.items() if extent > 1)
    first = next(n for n, dim in enumerate(dims) if dim in tiled)
    rows = dims[: first + 1]
    if dims[first] in masked or prod(extents[dim] for dim in rows) > MAX_ROWS:
        return tuple((dim,) for dim in dims)
    return (rows, *((dim,) for dim in dims[first + 1 :]))


def has_other_axes(op: CopyOp, slices: Mapping[str, Slice]) -> bool:
    """
    Return whether the descriptor of a copy has axes that its tile lacks.

    `slices` are the slices where the copy is.
    """
    extents = extents_of(outside(op.source))
    tiled = {dim for dim in extents if slices[dim].has_axis}
    axes = descriptor_axes(extents, tiled, op.masked)
    return any(dims[-1] not in tiled for dims in axes)


def ends_with_tensor(op: CopyOp, tensor: SSAValue, slices: Slices) -> bool:
    """
    Return whether all that is masked is beyond the end of the tensor.

    That is true if each slice ends with a block and with the slice that it is cut from,
    or with the tensor, and if masked elements are zeros.
    """
    extents = extents_of(tensor)
    return all(_ends(op, dim, extents[dim], slices) for dim in op.masked)


def _ends(op: CopyOp, dim: str, extent: int, slices: Slices) -> bool:
    """Return the result of `ends_with_tensor` for one dimension of extent `extent`."""
    nodes, current = list(nodes_around(op))[::-1], slices[op.parent_op()][dim]
    loops = sum(cut_dims(node).count(dim) for node in nodes)
    lengths = dict.fromkeys(slices[node][dim].length for node in nodes)
    cut = [length for length in lengths if length < extent]
    return (
        op.padding is ReduceKind.ADD
        and (current.length == current.block or not cut)
        and len(cut) == loops
        and all(outer % inner == 0 for outer, inner in pairwise(cut))
    )
