"""Process groups: of all processes, or of those along one axis of a mesh."""

# torch has types for only half of its functions for distributed programs.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from torch import distributed
from torch.distributed import ProcessGroup
from torch.distributed import distributed_c10d as c10d


def named(name: str) -> ProcessGroup:
    """Return the group of this process that graphs call `name`."""
    return c10d._resolve_process_group(c10d.GroupName(name))  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]


def of_all_processes() -> ProcessGroup:
    """Return the default group."""
    group = distributed.group.WORLD
    assert group is not None
    return group


def members(group: ProcessGroup) -> tuple[int, ...]:
    """Return the numbers that the ranks of a group have among all processes."""
    return tuple(distributed.get_process_group_ranks(group))


def described(group: ProcessGroup) -> str:
    """Return the ranks of a group, and the axis of a mesh if it is one."""
    ranks = ", ".join(map(str, members(group)))
    axis = group.group_desc.removeprefix("mesh_")
    return f"ranks {ranks}" + (f" ({axis})" if axis != group.group_desc else "")
