"""The memory levels that the tile trees of accelerators use."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp


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
    cluster_axes: tuple[str, ...]
    """The mesh axes of the clusters, the instances of `shared`."""
    core_axes: tuple[str, ...]
    """The mesh axes of the cores of one cluster."""


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
