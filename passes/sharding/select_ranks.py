"""
`select-ranks`: graph or elementary level -> the same, for fewer ranks.

Narrows the mesh of the attached GPUs to some of its ranks; with one rank, shardings are
dropped. Needs the mesh, and no op that depends on its extent; rejects more ranks than
the machine has.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective.mesh import MeshOp
from comet.dialects.errors import OpError
from comet.passes.analysis.functions import compute_functions
from comet.passes.sharding.boundary import drop_shardings
from comet.passes.sharding.shardings import MeshOption, select_mesh, user_of

AXIS = "rank"
"""The mesh axis of GPUs."""


@dataclass(frozen=True)
class SelectRanksPass(ModulePass):
    """Run on the first ranks of a machine only."""

    name = "select-ranks"

    ranks: int
    """The number of GPUs to run on."""

    mesh: MeshOption = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.ranks == 1:
            for func in compute_functions(op):
                drop_shardings(func)
            if not any(isinstance(inner, MeshOp) for inner in op.ops):
                return
        mesh = select_mesh(self.name, op, self.mesh)
        if (narrowed := narrowed_mesh(op, mesh, self.ranks)) is not None:
            Rewriter.replace_op(mesh, narrowed)


def narrowed_mesh(module: ModuleOp, mesh: MeshOp, ranks: int) -> MeshOp | None:
    """
    Return `mesh` with `ranks` instances along its axis of GPUs, None if it has them.

    Raises PassFailedException if it has fewer, no such axis, or is already in use.
    """
    name, extents = mesh.sym_name.data, mesh.axis_extents
    if fault := mesh.fault((AXIS,)):
        raise PassFailedException(f"select-ranks: {fault}")
    if ranks < 1:
        raise PassFailedException(
            f"select-ranks: ranks={ranks} is too small; it is at least 1"
        )
    if ranks > extents[AXIS]:
        raise PassFailedException(
            f"select-ranks: ranks={ranks} is too many: @{name} has "
            f"{extents[AXIS]}; attach hardware with more, or use fewer"
        )
    if ranks == extents[AXIS]:
        return None
    if (op := user_of(mesh, module)) is not None:
        raise OpError(
            op,
            f"select-ranks: {op.name} is written for {extents[AXIS]} ranks of @{name}; "
            "run select-ranks before insert-collectives",
        )
    return MeshOp(name, extents | {AXIS: ranks}, mesh.axis_levels or None)
