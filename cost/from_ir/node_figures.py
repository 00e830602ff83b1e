"""
Figures of the nodes of a kernel that do not depend on the program around it.

Searches price many copies of a program, in which most kernels are equal: these are read
once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.ir import Operation

from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.gpu.device import Device
from comet.cost.gpu.summary import Evaluated, KernelSummary
from comet.cost.gpu.tiling import kernel_work, tensor_traffic
from comet.cost.gpu.work import KernelWork
from comet.cost.reals import Real
from comet.dialects.arch.gpu_levels import GpuLevels
from comet.dialects.dataflow import KernelOp
from comet.dialects.description import Description
from comet.recent import Recent


@dataclass(frozen=True)
class NodeFigures:
    """The summary, the blocks and the work of one node on the launch grid."""

    summary: KernelSummary
    blocks: Evaluated
    """The block size of each dimension."""
    traffic: tuple[Real, ...]
    """Bytes of device memory, of each tensor and of what is spilled."""
    work: KernelWork
    """With one program for each tile."""


def figures_of(
    kernel: KernelOp, gpu: Device, levels: GpuLevels
) -> tuple[NodeFigures, ...]:
    """Return the figures of each node of a kernel, in order."""
    found: list[NodeFigures] = []
    for node in kernel.nodes:
        summary = summarize(node, levels, gpu)
        blocks = Evaluated.of(summary, tile_blocks(node))
        numbers = launch_numbers(kernel.launch_of(node))
        traffic = tuple(tensor_traffic(summary, blocks, gpu))
        work = kernel_work(summary, blocks, numbers, gpu)
        found.append(NodeFigures(summary, blocks, traffic, work))
    return tuple(found)


MOST_KNOWN = 256
"""Kernels whose figures are remembered: those of several copies of a program."""

_KNOWN = Recent[Hashable, tuple[NodeFigures, ...]](MOST_KNOWN)


class KnownFigures:
    """The figures of kernels on one GPU; equal kernels are read once."""

    def __init__(self, gpu: Device, levels: GpuLevels):
        self._gpu, self._levels = gpu, levels
        self._machine = f"{gpu} {levels}"

    def of(self, kernel: KernelOp) -> tuple[NodeFigures, ...]:
        """Return the figures of each node of a kernel, in order."""
        key = self._machine, kernel_description(kernel)
        if (known := _KNOWN.get(key)) is not None:
            return known
        return _KNOWN.keep(key, figures_of(kernel, self._gpu, self._levels))


def kernel_description(kernel: KernelOp) -> Hashable:
    """
    Return all that the figures of a kernel depend on.

    These are its ops, and those of the program that it reads; of other kernels, only
    the types of their results.
    """
    seen = Description(_is_no_kernel)
    seen.operations((kernel,))
    return seen.so_far


def _is_no_kernel(op: Operation) -> bool:
    return not isinstance(op, KernelOp)
