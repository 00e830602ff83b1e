"""The `comet-accelerator` pipeline: named ops to the ops that mirror COMET files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.collective_mesh import MeshOp
from comet.dialects.compound_dims import extents_of, names_of
from comet.passes.functions import compute_functions
from comet.passes.hardware_kind import require_accelerator
from comet.passes.memory_chain import memory_chain


@dataclass(frozen=True)
class CometAcceleratorPass(ModulePass):
    """
    Compile a named compound op for a spatial accelerator.

    Before: named ops, with the hardware attached. After: the `comet` dialect, ready for
    `-t comet`. Every part is a pass of its own.
    """

    name = "comet-accelerator"

    dim: str | None = None
    """The dimension that clusters and cores share; N, if there is one, if unset."""

    at: str | None = None
    """The level of the explicit collectives; the shared buffer's if unset."""

    kind: Literal["allreduce", "reduce_scatter_all_gather", "gather", "auto"] = "auto"
    """See `place-collectives`."""

    strategy: Literal["none", "partial", "full", "auto"] = "auto"
    """See `fuse`."""

    factors: str = "auto"
    """See `tile`."""

    bind: Literal["sequential", "pipeline", "parallel", "auto"] = "sequential"
    """See `bind`."""

    model: Literal["tool", "paper", "ideal"] = "paper"
    """See `annotate-cost`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from comet.passes.decompose import DecomposePass

        system = attached_system(op)
        require_accelerator(self.name, system)
        PassPipeline((DecomposePass(accumulator="input"),)).apply(ctx, op)
        axes = whole_axes(op, system, self.dim)
        PassPipeline(tuple(self.parts(system, axes))).apply(ctx, op)

    def parts(self, system: SystemOp, axes: tuple[str, ...]) -> Iterator[ModulePass]:
        """Yield the passes after `decompose`, in order."""
        from comet.passes.annotate_cost import AnnotateCostPass
        from comet.passes.bind import BindPass
        from comet.passes.distribute import DistributePass
        from comet.passes.fuse import FusePass
        from comet.passes.insert_collectives import InsertCollectivesPass
        from comet.passes.lower_to_comet import LowerToCometPass
        from comet.passes.place_collectives import PlaceCollectivesPass
        from comet.passes.tile import TilePass

        if axes:
            yield DistributePass(dim=self.dim or "N", axes=axes)
        yield InsertCollectivesPass()
        at = self.at if self.at is not None else memory_chain(system).shared
        yield PlaceCollectivesPass(at=at, kind=self.kind)
        yield FusePass(strategy=self.strategy)
        yield TilePass(factors=self.factors)
        yield BindPass(kind=self.bind)
        yield AnnotateCostPass(model=self.model)
        yield LowerToCometPass()


def whole_axes(
    module: ModuleOp, system: SystemOp, dim: str | None = None
) -> tuple[str, ...]:
    """
    Return the mesh axes that can share `dim`: all, or without some of the innermost.

    Axes are dropped, from the innermost on, until their product divides the extent.
    Without `dim`, that is N; where there is no N, nothing is shared. Raises
    PassFailedException if no value has the dimension `dim`.
    """
    values = [
        value
        for func in compute_functions(module)
        for op in func.body.block.ops
        for value in (*op.operands, *op.results)
    ]
    name = dim or "N"
    extents = [extents_of(value)[name] for value in values if name in names_of(value)]
    if dim is not None and not extents:
        known = dict.fromkeys(name for value in values for name in names_of(value))
        raise PassFailedException(
            f"comet-accelerator: there is no dimension {dim} to share; there are "
            f"{', '.join(known)}"
        )
    mesh = MeshOp(system.system_name, system.axes)
    axes = tuple(system.axes)
    while axes and any(extent % mesh.size(axes) for extent in extents):
        axes = axes[:-1]
    return axes if extents else ()
