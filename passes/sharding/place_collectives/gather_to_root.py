"""A gather to one instance that does the rest alone, in the place of an all-gather."""

from __future__ import annotations

from xdsl.utils.exceptions import VerifyException

from comet.dialects.collective import AllGatherOp, GatherOp
from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.collective.spmd import SpmdOp, region_states, verify_results

ROOT = 0
"""The instance of a group that does what the others leave to it."""


def root_suffices(region: SpmdOp, op: AllGatherOp) -> bool:
    """
    Say whether the root can do alone all that follows `op` in the region.

    It can where nothing behind exchanges along the same axes, or needs the share of
    another instance.
    """
    mesh = lookup_mesh(region, region.mesh.string_value())
    try:
        states = region_states(region, {op.result: {op.axis_names: ROOT}})
        verify_results(region, mesh, states)
    except VerifyException:
        return False
    return True


def gather_to_root(op: AllGatherOp) -> GatherOp:
    """Return the gather, not yet inserted, that gives the root what `op` gives all."""
    mesh, axes = op.mesh.string_value(), op.axis_names
    return GatherOp(op.dim.data, op.input, ROOT, mesh, axes, op.result.type)
