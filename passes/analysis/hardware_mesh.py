"""The mesh of the attached hardware."""

from __future__ import annotations

from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.collective.mesh import MeshOp


def hardware_mesh(system: SystemOp) -> MeshOp:
    """Return the mesh of the hardware, which has the name of the hardware."""
    return MeshOp(system.system_name, system.axes, system.axis_levels)


def check_mesh(mesh: MeshOp, system: SystemOp) -> None:
    """Raise PassFailedException if `mesh` is not the mesh of the hardware."""
    spanned = hardware_mesh(system)
    if mesh.properties != spanned.properties:
        raise PassFailedException(
            f"the module's mesh @{mesh.sym_name.data} is {_described(mesh)}, but the "
            f"hardware has {_described(spanned)}; remove the mesh or correct it"
        )


def _described(mesh: MeshOp) -> str:
    levels = mesh.axis_levels
    axes = (
        f"{axis} = {extent}" + (f" at {levels[axis]}" if axis in levels else "")
        for axis, extent in mesh.axis_extents.items()
    )
    return "{" + ", ".join(axes) + "}"
