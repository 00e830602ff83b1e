"""The meshes that the COMET tool knows, among those that a mapping uses."""

from __future__ import annotations

from math import prod

from xdsl.utils.exceptions import DiagnosticException

from comet.cost.accelerator.noc import TABLED_MESHES, mesh_used
from comet.dialects.arch import SystemOp
from comet.dialects.arch.nodes import LevelOp
from comet.dialects.comet import CollectiveOp, MappingOp, TileOp


def check_meshes(mapping: MappingOp, system: SystemOp) -> None:
    """
    Check that the COMET tool has a hop count for each mesh that `mapping` uses.

    Raises DiagnosticException for the first node that uses another one.
    """
    for op in mapping.walk():
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
            "and 16 by 16; run known-meshes after attach-hardware"
        )
