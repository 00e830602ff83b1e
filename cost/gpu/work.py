"""
The work of a GPU kernel: what its programs compute, move, wait for and need.

All numbers are those of one program, but for `programs`, and the bytes of device
memory. They may be numpy arrays, one element per choice of block sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from comet.cost.reals import Real, longest


@dataclass(frozen=True)
class Operations:
    """The operations of one program."""

    tensor: Real = 0.0
    """Operations of contractions."""
    vector: Real = 0.0
    """In additions: a special function counts as many as take the same time."""
    looped: Real = 0.0
    """Those of `vector` in loops of contractions."""
    read: Real = 0.0
    """
    Those of `tensor` whose results their own loop reads, or that run on operands in
    registers: it waits for them before it starts later loads.
    """
    element: str = "f16"
    """Element type of the contractions' operands."""


@dataclass(frozen=True)
class MovedBytes:
    """The bytes that one program moves; of device memory, those of all programs."""

    l2: Real = 0.0
    """Loaded through L2, and stored."""
    stored: Real = 0.0
    """Those of `l2` that are stored."""
    exposed: Real = 0.0
    """Those of `l2` that are loaded outside of loops of contractions."""
    uneven: Real = 0.0
    """
    By how much programs of the busiest multiprocessor exceed the mean, as lengths
    differ: it loads these bytes after the others have ended.
    """
    shared: Real = 0.0
    """The bytes that contractions read from shared memory."""
    converted: Real = 0.0
    """The bytes that pass through shared memory to change layouts of tiles."""
    device: Real = 0.0
    """Of device memory, moved by all programs (see `tensor_traffic`)."""
    written: Real = 0.0
    """Those of `device` that are stored: not what is beyond the end of a row."""


@dataclass(frozen=True)
class Loops:
    """The loops of one program, and their software pipelines."""

    rounds: Real = 0.0
    """Iterations that wait for loads."""
    exposed: Real = 0.0
    """
    Those of `rounds` outside of loops of contractions: no software pipeline loads
    ahead there.
    """
    joined: Real = 0.0
    """
    Those of `rounds` that wait together with another one: a software pipeline waits
    once in an iteration, for all its loads.
    """
    pipelines: Real = 1
    """How often a program starts a loop that loads ahead."""
    stages: Real = 1
    """num_stages: the depth of the software pipeline."""
    loads_ahead: bool = False
    """
    Whether programs are persistent and warp-specialized: producer warps load the next
    tile while the others compute.
    """
    tiles_ahead: bool = False
    """
    Whether the software pipeline of a loop over tiles without products loads later
    tiles while a tile is computed and stored.
    """

    @property
    def pipelined(self) -> Real:
        """How often one program waits for a software pipeline."""
        return np.maximum(self.rounds - self.exposed - self.joined, 0)


@dataclass(frozen=True)
class ProgramNeeds:
    """The resources of a multiprocessor that a program needs."""

    warps: Real = 4
    registers: Real = 0.0
    """Bytes of registers."""
    shared: Real = 0.0
    """Bytes of shared memory."""
    groups: Real = 1
    """The groups of warps that compute in turns, if producer warps load for them."""


@dataclass(frozen=True)
class Exchanges:
    """How often a program waits for values of others."""

    programs: Real = 0.0
    """For those of other programs of its group."""
    ranks: Real = 0.0
    """For those of other ranks, which its group exchanges."""
    clusters: Real = 0.0
    """A thread block: for those of others of its cluster."""


@dataclass(frozen=True)
class KernelWork:
    """The work of a kernel."""

    programs: Real
    operations: Operations = Operations()
    moved: MovedBytes = MovedBytes()
    loops: Loops = Loops()
    needs: ProgramNeeds = ProgramNeeds()
    exchanges: Exchanges = Exchanges()
    together: Real = 1
    """
    The programs that run at the same time on as many multiprocessors: the thread blocks
    of a cluster, each of which counts as a program, and the programs of a group.
    """


def in_one_launch(works: Sequence[KernelWork]) -> list[KernelWork]:
    """Return the works of one launch: all programs need what the largest one needs."""
    registers = longest(work.needs.registers for work in works)
    shared = longest(work.needs.shared for work in works)
    return [
        replace(work, needs=replace(work.needs, registers=registers, shared=shared))
        for work in works
    ]
