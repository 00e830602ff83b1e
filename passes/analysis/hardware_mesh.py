"""The mesh of the attached hardware."""

from __future__ import annotations

from comet.dialects.arch import SystemOp
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.errors import OpError


def hardware_mesh(system: SystemOp) -> MeshOp:
    """Return the mesh of all instances of the hardware, with the hardware's name."""
    return MeshOp(system.system_name, system.axes, system.axis_levels)


def check_mesh(mesh: MeshOp, system: SystemOp) -> None:
    """
    Raise PassFailedException if `mesh` is not the mesh of the hardware.

    On GPUs it may have fewer ranks than the hardware.
    """
    hardware = hardware_mesh(system)
    allowed = hardware if system.gpu is None else _with_fewer_ranks(mesh, hardware)
    if mesh.properties != allowed.properties:
        raise OpError(
            mesh,
            f"the module's mesh @{mesh.sym_name.data} is {_described(mesh)}, but the "
            f"hardware has {_described(hardware)}; remove the mesh or correct it",
        )


def _with_fewer_ranks(mesh: MeshOp, hardware: MeshOp) -> MeshOp:
    """Return `hardware` with at most the instances of `mesh` along each axis."""
    written = mesh.axis_extents
    extents = {a: min(n, written.get(a, n)) for a, n in hardware.axis_extents.items()}
    return MeshOp(hardware.sym_name.data, extents, hardware.axis_levels)


def _described(mesh: MeshOp) -> str:
    levels = mesh.axis_levels
    axes = (
        f"{axis} = {extent}" + (f" at {levels[axis]}" if axis in levels else "")
        for axis, extent in mesh.axis_extents.items()
    )
    return "{" + ", ".join(axes) + "}"
