"""Checks of the properties that say how a kernel writes the loops of a node."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.utils.exceptions import VerifyException

from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.loop_bounds import BOUNDS
from comet.dialects.schedule.node import NodeOp

_REDUCED = frozenset({Combiner.ADD, Combiner.MAX})


def verify_unmask(op: NodeOp, unmask: UnitAttr | None) -> None:
    """Check that there is one loop, which can be written as two."""
    if unmask is not None and len(op.loops) != 1:
        raise VerifyException(
            f"'{op.name}' op unmask: the node has {len(op.loops)} loops; only "
            "one loop can be written as two loops"
        )


def verify_unroll(op: NodeOp, unroll: UnitAttr | None) -> None:
    """Check that iterations, written one after another, concatenate tiles."""
    if unroll is not None and set(op.combiners) != {Combiner.NONE}:
        raise VerifyException(
            f"'{op.name}' op unroll: the node combines results; only loops that "
            "concatenate tiles can be unrolled"
        )


def verify_coalesce(op: NodeOp, coalesce: UnitAttr | None) -> None:
    """Check that several loops, all of whose iterations run, reduce all results."""
    if coalesce is None:
        return
    dims = [loop.dim for loop in op.loops]
    if len(dims) < 2 or len({*dims}) < len(dims):
        raise VerifyException(
            f"'{op.name}' op coalesce: the node loops over {', '.join(dims)}; one loop "
            "can replace two or more, each over a dimension of its own"
        )
    if not _REDUCED.issuperset(op.combiners):
        kinds = ", ".join(str(kind) for kind in op.combiners)
        raise VerifyException(
            f"'{op.name}' op coalesce: the node combines results by {kinds}; one loop "
            "can replace loops that combine all results by add or max"
        )
    names = (*BOUNDS, "unmask", "specialize")
    given = [name for name in names if name in op.properties]
    if given:
        raise VerifyException(
            f"'{op.name}' op coalesce: the node has {given[0]}, which is about one of "
            "its loops; leave one of them out"
        )
