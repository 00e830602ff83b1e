"""
`distribute`: elementary level -> elementary level, annotated.

Annotates every elementary op that has the dimension with the mesh axes over which its
iterations are sharded. The meaning of the program is unchanged; the extent need not
divide. Needs a mesh; rejects an unknown dimension or axis, and a second use of either.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective.spmd import Sharding, sharding_attr
from comet.dialects.errors import OpError
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.sharding.shardings import (
    MESH,
    SHARD,
    MeshOption,
    select_mesh,
    shardable_dims,
    sharding_of_op,
)


@dataclass(frozen=True)
class DistributePass(FunctionPass):
    """Annotate elementary ops with a sharding of one dimension."""

    name = "distribute"

    LEVELS = (IRLevel.ELEMENTARY,)

    dim: str
    """The dimension to shard."""
    axes: tuple[str, ...]
    """The mesh axes to shard it over, major first."""
    op: str | None = None
    """Only ops of this name, such as contract; all that have the dimension if unset."""
    skip: str | None = None
    """No ops of this name."""
    mesh: MeshOption = None

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        mesh = select_mesh("distribute", module, self.mesh)
        if fault := mesh.fault(self.axes):
            raise PassFailedException(f"distribute: {fault}")
        chosen = OpFilter(self.op, self.skip)
        plan = plan_distribution(function, self.dim, self.axes, chosen)
        function.attributes[MESH] = SymbolRefAttr(mesh.sym_name)
        for target, sharding in plan.items():
            target.attributes[SHARD] = sharding_attr(sharding)


@dataclass(frozen=True)
class OpFilter:
    """The ops to shard, by their names."""

    only: str | None = None
    """The name that all of them have."""
    skipped: str | None = None
    """A name that none of them has."""

    def has(self, op: Operation) -> bool:
        """Return whether `op` is one of them."""
        only, skipped = map(_short, (self.only or op.name, self.skipped or ""))
        return _short(op.name) == only != skipped

    def __str__(self) -> str:
        """Return the words before `op` in a message."""
        only = "" if self.only is None else f"compound.{_short(self.only)} "
        return f"{only}{'other ' if self.skipped else ''}"


def _short(name: str) -> str:
    return name.split(".")[-1]


def plan_distribution(
    func: FuncOp, dim: str, axes: tuple[str, ...], chosen: OpFilter
) -> dict[Operation, Sharding]:
    """
    Return the new sharding of every op of `func` that gets one.

    Raises PassFailedException if no op has the dimension, or if one is already sharded
    in it or over one of the axes.
    """
    ops = {op: shardable_dims(op) for op in func.body.block.ops}
    dims = sorted({name for names in ops.values() for name in names})
    targets = [op for op, names in ops.items() if dim in names and chosen.has(op)]
    if not dims:
        raise OpError(
            func,
            f"distribute: @{func.sym_name.data} computes nothing along a dimension, so "
            "that there is nothing to spread; leave distribute out, or ask for one "
            "rank",
        )
    if not targets:
        raise OpError(
            func,
            f"distribute: no {chosen}op of @{func.sym_name.data} has the dimension "
            f"{dim}; dimensions of the function are {', '.join(dims)}",
        )
    return {op: {**_unused(op, dim, axes), dim: axes} for op in targets}


def _unused(op: Operation, dim: str, axes: tuple[str, ...]) -> Sharding:
    """Return the present sharding of `op`, which must leave `dim` and `axes` free."""
    present = sharding_of_op(op)
    if dim in present:
        raise OpError(
            op,
            f"distribute: '{op.name}' is already sharded in {dim} over "
            f"{', '.join(present[dim])}",
        )
    for split, used in present.items():
        if shared := [axis for axis in axes if axis in used]:
            raise OpError(
                op,
                f"distribute: axis {shared[0]} of '{op.name}' splits {split} already; "
                f"an axis splits one dimension, choose another for {dim}",
            )
    return present
