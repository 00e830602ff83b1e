"""
`known-meshes`: any level before sharding -> the same, on meshes the COMET tool knows.

Makes each mesh of the attached accelerator that the COMET tool has no hop count for
smaller, so that the files of a mapping can be written; the machine says which instances
are left out. Rejects a program that is already sharded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from comet.cost.accelerator.tool.network import TABLED_MESHES
from comet.dialects.arch import LEFT_OUT, SystemOp, attached_system
from comet.dialects.arch.fields import dictionary_of, fields_of
from comet.dialects.arch.nodes import NodeOp
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.comet import MappingOp
from comet.dialects.errors import OpError
from comet.dialects.schedule import node as schedule
from comet.passes.analysis.hardware_kind import require_accelerator
from comet.passes.analysis.hardware_mesh import hardware_mesh


@dataclass(frozen=True)
class Narrowed:
    """Nodes of the machine with one mesh, and the edge of the square that they keep."""

    nodes: tuple[NodeOp, ...]
    edge: int

    def __str__(self) -> str:
        """Say which instances are left out."""
        x, y = self.nodes[0].mesh_shape
        return (
            f"{self.edge**2} of the {x * y} instances of "
            f"{', '.join(node.level_name for node in self.nodes)} are used, as the "
            f"COMET tool knows no mesh of {x} by {y}"
        )


@dataclass(frozen=True)
class KnownMeshesPass(ModulePass):
    """Use only as many instances of each level as form a mesh of the COMET tool."""

    name = "known-meshes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = attached_system(op)
        require_accelerator(self.name, system)
        if plan := tuple(narrowed(system)):
            check_unsharded(op)
            narrow(op, system, plan)


def narrowed(system: SystemOp) -> Iterator[Narrowed]:
    """Yield the nodes whose meshes the COMET tool does not know."""
    for mesh in dict.fromkeys(node.mesh_shape for node in system.nodes):
        if mesh not in TABLED_MESHES:
            edge = max(x for x, _ in TABLED_MESHES if x <= min(mesh))
            nodes = tuple(node for node in system.nodes if node.mesh_shape == mesh)
            yield Narrowed(nodes, edge)


def check_unsharded(module: ModuleOp) -> None:
    """Raise PassFailedException if an op of `module` depends on the mesh."""
    for op in module.walk():
        if isinstance(op, CollectiveOp | schedule.NodeOp | MappingOp):
            raise OpError(
                op,
                f"known-meshes: '{op.name}' is written for the whole mesh; run "
                "known-meshes before the program is sharded",
            )


def narrow(module: ModuleOp, system: SystemOp, plan: tuple[Narrowed, ...]) -> None:
    """Set the meshes of `plan`; write on the machine which instances are left out."""
    system.attributes[LEFT_OUT] = StringAttr("; ".join(map(str, plan)))
    for narrowed in plan:
        for node in narrowed.nodes:
            set_mesh(node, narrowed.edge)
    mesh = hardware_mesh(system)
    for op in module.ops:
        if isinstance(op, MeshOp) and op.sym_name == mesh.sym_name:
            Rewriter.replace_op(op, mesh)
            return


def set_mesh(node: NodeOp, edge: int) -> None:
    """Give a node of the machine a square mesh."""
    link = {} if node.link is None else fields_of(node.link)
    fields = {name: field for name, field in link.items() if name != "mesh"}
    node.properties["link"] = dictionary_of(fields | {"meshX": edge, "meshY": edge})
    if node.range is not None:
        node.properties["range"] = StringAttr(f"[0..{edge**2 - 1}]")
