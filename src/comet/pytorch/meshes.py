"""The axis of a mesh along which the tensors of a model are spread over ranks."""

# torch has types for only half of its functions for distributed programs.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from typing import cast
from unittest.mock import patch

from torch import Tensor, distributed
from torch.distributed import ProcessGroup
from torch.distributed import distributed_c10d as c10d
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard

from comet.pytorch.groups import described, members, of_all_processes
from comet.tools.diagnostics import UsageError

SHARED = -1
"""In place of an axis: all ranks have the same tensor."""


def spread_over(tensors: Sequence[Tensor]) -> ProcessGroup | None:
    """
    Return the ranks along the axis of a mesh over which DTensors are spread.

    If all DTensors are the same on all ranks, this is the last axis of a mesh; None if
    there are none. Raises UsageError if they are spread over several axes.
    """
    axes: dict[tuple[int, ...], ProcessGroup] = {}
    last = None
    for tensor in tensors:
        if isinstance(tensor, DTensor):
            for group, placement in _placed(tensor.device_mesh, tensor.placements):
                last = group
                if not isinstance(placement, Replicate):
                    axes[members(group)] = group
    if len(axes) > 1:
        raise _several_axes(axes.values())
    return next(iter(axes.values()), last)


def _placed(
    mesh: DeviceMesh, placements: Sequence[Placement]
) -> Generator[tuple[ProcessGroup, Placement]]:
    """Yield the ranks along the axes of a mesh, and what a tensor is over them."""
    for axis, placement in enumerate(placements):
        if (group := mesh.get_group(axis)).size() > 1:
            yield group, placement


def _several_axes(groups: Iterable[ProcessGroup]) -> UsageError:
    over = " and over ".join(map(described, groups))
    return UsageError(
        f"tensors are spread over {over}; from_torch needs those of one axis of a mesh"
    )


def part_of(
    tensor_axes: int,
    mesh: DeviceMesh,
    placements: Sequence[Placement],
    group: ProcessGroup,
) -> int | None:
    """
    Return the axis of a tensor of which the ranks of a group have parts, or SHARED.

    None if that is not known. Raises UsageError if other ranks have parts.
    """
    found = None
    for ranks, placement in _placed(mesh, placements):
        if members(ranks) == members(group):
            found = placement
        elif not isinstance(placement, Replicate):
            raise _several_axes((group, ranks))
    if isinstance(found, Shard):
        return cast("int", found.dim) % tensor_axes
    return SHARED if isinstance(found, Replicate) else None


@contextmanager
def as_rank(rank: int, ranks: ProcessGroup) -> Generator[None]:
    """Let this process be another one of a group, whatever asks torch for its rank."""
    here, there = distributed.get_rank(), members(ranks)[rank]
    known_coordinate = DeviceMesh.get_coordinate

    def number(group: ProcessGroup | None = None) -> int:
        among = members(group or of_all_processes())
        return next((among.index(each) for each in (there, here) if each in among), -1)

    def along(mesh: DeviceMesh, mesh_dim: int | str | None = None) -> int:
        return number(mesh.get_group(mesh_dim))

    def coordinate(mesh: DeviceMesh) -> tuple[int, ...] | None:
        if known_coordinate(mesh) is None:
            return None
        return tuple(map(number, mesh.get_all_groups()))

    def process(_: DeviceMesh) -> int:
        return there

    asked: list[tuple[object, str, Callable[..., object]]] = [
        (DeviceMesh, "get_coordinate", coordinate),
        (DeviceMesh, "_sym_get_coordinate", along),
        (DeviceMesh, "get_local_rank", along),
        (DeviceMesh, "get_rank", process),
        (ProcessGroup, "rank", number),
        (distributed, "get_rank", number),
        (c10d, "get_rank", number),
    ]
    with ExitStack() as stack:
        for owner, name, answer in asked:
            stack.enter_context(patch.object(owner, name, answer))
        yield
