"""
What the summary of a GPU kernel has, by what it describes.

`from_ir/kernel.py` reads it from a tile tree, `summary.py` has the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from comet.cost.gpu.bounded import Bound
from comet.cost.gpu.launch_order import LaunchOrder
from comet.cost.gpu.shares import SharedTiles
from comet.cost.gpu.terms import DividedEpilogue, Point, RowSplit, Term, Wait


@dataclass(frozen=True)
class Nest:
    """The grid and the loops of a program, and the order of programs."""

    extents: Mapping[str, int]
    grid: tuple[str, ...]
    loops: tuple[str, ...]
    inner_dims: frozenset[str]
    """Dimensions of loops that are inside other loops."""
    group: Mapping[str, int] = field(default_factory=dict[str, int])
    """The dimensions that groups of programs split, with their fixed blocks."""
    ctas: Mapping[str, int] = field(default_factory=dict[str, int])
    """The same, with the programs of a group along each."""
    bounds: Mapping[str, Bound] = field(default_factory=dict[str, Bound])
    """The dimensions whose loops a mask bounds, with the bound."""
    seen: Mapping[str, float] = field(default_factory=dict[str, float])
    """The mean fraction of the positions of loops that lengths end at run time."""
    unmasked: frozenset[str] = frozenset()
    """The loops that are written as two, one of them without the mask."""
    shards: Mapping[str, int] = field(default_factory=dict[str, int])
    """The extent of each rank's shard of the dimensions that are gathered."""
    split: RowSplit | None = None
    """How clusters divide its tiles, None if they cannot."""
    multiprocessors: int = 1
    """The multiprocessors of the GPU, each of which runs programs in turn."""
    order: LaunchOrder = LaunchOrder()  # noqa: RUF009  # it is frozen
    """The order in which programs start."""
    shares: SharedTiles | None = None
    """The lists of tiles that programs share."""


@dataclass(frozen=True)
class Moves:
    """The memory traffic of programs."""

    tensors: tuple[Term, ...] = ()
    """Inputs and results in device memory, bytes."""
    spilled: tuple[Term, ...] = ()
    """Tiles that loops store to device memory for later loops of a program, bytes."""
    loads: tuple[Term, ...] = ()
    """Bytes into shared memory or registers."""
    stores: tuple[Term, ...] = ()
    """Bytes to device memory."""
    ids: tuple[Term, ...] = ()
    """The ids of gathers whose rows are loaded, bytes."""


@dataclass(frozen=True)
class LiveTiles:
    """The live tiles of registers and shared memory."""

    points: tuple[Point, ...]
    """The values that are alive in registers at the same time, for each op."""
    epilogue: DividedEpilogue | None = None
    """The epilogue, if subtiles can divide it."""
    shared: tuple[tuple[Term, ...], ...] = ()
    """The tiles that shared memory holds at the same time, in each node, bytes."""
    added: tuple[Term, ...] = ()
    """The tiles of kernels with products that programs add to memory, bytes."""
    narrow: tuple[tuple[Term, ...], ...] = ()
    """The registers for addresses of narrow loads, in each node, bytes."""
    accessed: tuple[tuple[Term, ...], ...] = ()
    """The tiles that each loop loads and stores, without products, bytes."""


@dataclass(frozen=True)
class VectorWork:
    """The operations of vector lanes, and the layouts that they convert."""

    operations: tuple[Term, ...] = ()
    """Other floating-point operations."""
    converted: tuple[Term, ...] = ()
    """Tiles that get another layout, through shared memory, bytes."""


@dataclass(frozen=True)
class Synchronization:
    """Where programs wait for loads, for each other, and for other ranks."""

    waits: tuple[Wait, ...] = ()
    """The points where a program waits for loads."""
    exchanges: int = 0
    """How often a program waits for the others of its group, for each tile."""
    rank_exchanges: int = 0
    """How often its group waits for other ranks, for each tile."""
