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
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from comet.cost.accelerator.tool.network import TABLED_MESHES
from comet.dialects.arch import SystemOp
from comet.dialects.arch.nodes import NodeOp
from comet.passes.analysis.hardware_kind import attached_accelerator
from comet.passes.sharding.select_instances import check_unsharded, reshape


@dataclass(frozen=True)
class SquareMesh:
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
        system = attached_accelerator(self.name, op)
        if plan := tuple(narrowed(system)):
            check_unsharded(self.name, op)
            shapes = {n: (each.edge, each.edge) for each in plan for n in each.nodes}
            reshape(op, system, shapes, "; ".join(map(str, plan)))


def narrowed(system: SystemOp) -> Iterator[SquareMesh]:
    """Yield the nodes whose meshes the COMET tool does not know."""
    for mesh in dict.fromkeys(node.mesh_shape for node in system.nodes):
        if mesh not in TABLED_MESHES:
            edge = max(x for x, _ in TABLED_MESHES if x <= min(mesh))
            nodes = tuple(node for node in system.nodes if node.mesh_shape == mesh)
            yield SquareMesh(nodes, edge)
