"""Rejects mappings that the COMET tool cannot price."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import DiagnosticException

from comet.cost.accelerator.tool.network import TABLED_MESHES, mesh_used
from comet.dialects.arch import attached_system
from comet.dialects.arch.nodes import LevelOp
from comet.dialects.comet import UNPRICED, CollectiveOp, TileOp
from comet.dialects.errors import OpError


def check_tool(module: ModuleOp) -> None:
    """
    Check that the COMET tool prices a mapping: its nodes, and the meshes that they use.

    Raises DiagnosticException for the first node that it does not know.
    """
    system = attached_system(module)
    for op in module.walk():
        if isinstance(reason := op.attributes.get(UNPRICED), StringAttr):
            raise OpError(op, f"target comet: {reason.data}")
        if isinstance(op, TileOp) and not op.is_temporal:
            for entry in op.entries:
                copies = prod(size for row in entry.factors for _, size in row)
                _check_mesh(system.level(entry.child), copies)
        elif isinstance(op, CollectiveOp):
            copies = prod(system.level(name.data).instances for name in op.src)
            _check_mesh(system.level(op.target.data), copies)


def _check_mesh(level: LevelOp, copies: int) -> None:
    mesh = mesh_used(level.mesh_shape, copies)
    if copies > 1 and mesh not in TABLED_MESHES:
        raise DiagnosticException(
            f"target comet: {copies} instances of {level.level_name} lie on a mesh of "
            f"{' by '.join(map(str, mesh))}, and the COMET tool knows 2 by 2, 4 by 4 "
            "and 16 by 16; run known-meshes after attach-hardware, and let no "
            "dimension use a part of an axis"
        )
