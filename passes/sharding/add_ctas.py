"""
`add-ctas`: graph or elementary level -> the same, with a mesh axis inside each GPU.

Adds the axis `cta` to the mesh of the attached GPUs: groups of programs of one launch
that exchange values through device memory, which they share. It is the innermost axis,
so that the programs of a group start one after the other. Rejects a mesh that has the
axis, or is in use.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.errors import OpError
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.sharding.shardings import MeshOption, select_mesh, user_of

AXIS = "cta"
"""The mesh axis of the programs that exchange."""


@dataclass(frozen=True)
class AddCtasPass(ModulePass):
    """Let groups of programs of one GPU be instances of the mesh."""

    name = "add-ctas"

    ctas: int
    """The programs of a group."""

    mesh: MeshOption = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = attached_gpu(self.name, op)
        mesh = select_mesh(self.name, op, self.mesh)
        levels = gpu_levels(system)
        default = dict.fromkeys(mesh.axis_extents, levels.memory)
        axis_levels = default | mesh.axis_levels | {AXIS: levels.shared}
        Rewriter.replace_op(mesh, with_ctas(op, mesh, self.ctas, axis_levels))


def with_ctas(
    module: ModuleOp, mesh: MeshOp, ctas: int, levels: dict[str, str]
) -> MeshOp:
    """
    Return `mesh` with `ctas` programs in each group.

    Raises PassFailedException if it has such an axis, or is in use, or for no programs.
    """
    name = mesh.sym_name.data
    if ctas < 1:
        raise PassFailedException(
            f"add-ctas: ctas={ctas} is no number of programs; use 1 or more"
        )
    if AXIS in mesh.axis_extents:
        raise PassFailedException(
            f"add-ctas: @{name} has {mesh.axis_extents[AXIS]} programs in a group "
            "already; run add-ctas once"
        )
    if (op := user_of(mesh, module)) is not None:
        raise OpError(
            op,
            f"add-ctas: {op.name} is written for @{name} without groups of programs; "
            "run add-ctas before insert-collectives",
        )
    return MeshOp(name, mesh.axis_extents | {AXIS: ctas}, levels)
