"""Collectives in the form of the COMET files."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp

from comet.dialects import comet
from comet.dialects.arch import SystemOp
from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    CollectiveOp,
    GatherOp,
    RootReduceOp,
)
from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.comet.kinds import COLLECTIVES, REDUCTIONS
from comet.dialects.compound.dims import bits_of, names_of
from comet.dialects.errors import OpError
from comet.kinds import CollectiveKind


def exchange_of(
    op: CollectiveOp, system: SystemOp, tag: str, tensor: str, dim: str | None
) -> comet.CollectiveOp:
    """
    Return the collective of the files for `op` on `tensor`, which it changes in place.

    In the files all instances of the levels `src` take part. If idle axes exclude some
    of them, `spatial_factor` is the number that does. Raises PassFailedException for a
    collective that the files do not have, and for one with no level or two.
    """
    kind = kind_in_files(op)
    level = _level(op)
    levels = _joined_levels(op)
    members = prod(system.level(name).instances for name in levels)
    reduces = isinstance(op, AllReduceOp | RootReduceOp)
    reduction = REDUCTIONS[op.kind.data] if reduces else None
    return comet.CollectiveOp(
        kind,
        tag,
        level,
        tensor,
        tensor,
        levels,
        levels,
        bits_of(op.input),
        dimension=dim,
        reduction_op=reduction,
        spatial_factor=None if op.group_size == members else op.group_size,
    )


def kind_in_files(op: CollectiveOp) -> CollectiveKind:
    """
    Return the type of a collective in the files.

    Raises PassFailedException for one that they do not have.
    """
    kind = COLLECTIVES.get(type(op))
    if kind is None:
        raise OpError(
            op,
            f"lower-to-comet: the COMET files have no '{op.name}'; place it as an "
            "all-reduce",
        )
    if isinstance(op, GatherOp | AllGatherOp) and op.dim.data not in names_of(op.input):
        raise OpError(
            op,
            f"lower-to-comet: '{op.name}' stacks along the new dimension "
            f"{op.dim.data}, and the COMET files change a tensor in place and give it "
            "one shape; place the reduction as an all-reduce",
        )
    return kind


def check_collectives(module: ModuleOp) -> None:
    """
    Raise PassFailedException for an explicit collective that the files do not have.
    """
    for op in module.walk():
        if isinstance(op, CollectiveOp) and op.is_explicit:
            kind_in_files(op)


def _joined_levels(op: CollectiveOp) -> list[str]:
    """Return the levels whose instances `op` joins, as its mesh places its axes."""
    placed = lookup_mesh(op, op.mesh).axis_levels
    if not placed:
        raise OpError(
            op,
            f"lower-to-comet: {op.mesh} does not say at which memory level its axes "
            "begin; give it `at`, or use the mesh of the hardware",
        )
    return list(dict.fromkeys(placed[axis] for axis in op.axis_names))


def _level(op: CollectiveOp) -> str:
    """Return the one level of `op`."""
    source, target = op.from_level, op.to_level
    if source is None or target is None:
        raise OpError(
            op,
            f"lower-to-comet: '{op.name}' is at no level; run place-collectives first",
        )
    if source != target:
        raise OpError(
            op,
            f"lower-to-comet: '{op.name}' goes from {source.data} to {target.data}, "
            "and a collective of the COMET files stays at one level; let a spatial "
            "node combine between levels",
        )
    return source.data
