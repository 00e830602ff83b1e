"""The memory levels that the tile trees of accelerators use."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias

from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp

Axes: TypeAlias = tuple[str, ...]
"""Mesh axes, the major one first."""


@dataclass(frozen=True)
class MemoryChain:
    """
    The levels of an accelerator of clusters of cores, by their purpose.

    Off-chip `root`, one `shared` buffer per cluster, and in each core the buffers that
    feed the matrix unit (`lhs`, `rhs`) and the one of the vector units (`out`).
    """

    root: str
    shared: str
    lhs: str
    rhs: str
    out: str
    cluster_axes: Axes
    """The mesh axes of the clusters, the instances of `shared`."""
    core_axes: Axes
    """The mesh axes of the cores of one cluster."""

    @property
    def by_level(self) -> tuple[Axes, ...]:
        """The axes in groups: those of the clusters, and those of the cores."""
        return tuple(axes for axes in (self.cluster_axes, self.core_axes) if axes)

    @property
    def by_direction(self) -> tuple[Axes, ...]:
        """The axes in groups: the first axis of each level, the second ones, ..."""
        directions = zip_longest(self.cluster_axes, self.core_axes)
        return tuple(
            tuple(axis for axis in axes if axis is not None) for axes in directions
        )


def memory_chain(system: SystemOp) -> MemoryChain:
    """
    Return the memory levels of `system` by purpose.

    Raises PassFailedException if it is not a root, one shared level, and below it an
    output buffer and one or two buffers that fill a compute unit, in each core one.
    """
    root = system.levels[0] if system.levels else None
    if root is None or len(root.children) != 1:
        raise _unsupported(system, "one level below the outermost one")
    shared = root.children[0]
    fills = [level for level in shared.children if level.is_filled]
    outs = [level for level in shared.children if not level.is_filled]
    if not 1 <= len(fills) <= 2 or len(outs) != 1:
        raise _unsupported(
            system,
            f"one or two levels that @{shared.level_name} fills and one that it drains",
        )
    for level in fills:
        if level.instances != outs[0].instances:
            raise _unsupported(
                system,
                f"@{level.level_name} to have as many instances as "
                f"@{outs[0].level_name}, one in each core",
            )
    return MemoryChain(
        root=root.level_name,
        shared=shared.level_name,
        lhs=fills[0].level_name,
        rhs=fills[-1].level_name,
        out=outs[0].level_name,
        cluster_axes=tuple(shared.axis_extents),
        core_axes=system.axes_of(outs[0].level_name),
    )


def _unsupported(system: SystemOp, wanted: str) -> PassFailedException:
    return PassFailedException(
        f"hardware @{system.system_name} is not a hierarchy that tile trees are built "
        f"for: expected {wanted}"
    )
