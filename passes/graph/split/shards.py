"""The shards of products that a rank computes, in a function with shardings."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from comet.dialects.compound.dims import bytes_of, ceil_div, joined_extents
from comet.passes.sharding.boundary import says_sharding
from comet.passes.sharding.moves import received
from comet.passes.sharding.propagate_shardings import stated_shardings
from comet.passes.sharding.propagate_shardings.known import Known, operands_of
from comet.passes.sharding.shardings import mesh_of, sharding_of_op


@dataclass(frozen=True)
class Shards:
    """The shardings of a function; without, each rank computes all of it."""

    known: Known | None = None

    def extents(self, op: Operation) -> dict[str, int]:
        """Return the extents of the dimensions of a rank's shards of the operands."""
        whole = joined_extents(op.operands)
        if self.known is None:
            return whole
        mesh, sharding = self.known.mesh, sharding_of_op(op)
        return {
            dim: ceil_div(extent, mesh.size(sharding.get(dim, ())))
            for dim, extent in whole.items()
        }

    def are_exchanged_for(self, op: Operation) -> bool:
        """Return whether ranks exchange operands or results of an op."""
        return any(map(self._is_exchanged, (*operands_of(op), *op.results)))

    def _is_exchanged(self, value: SSAValue) -> bool:
        """Whether ranks have only terms, or a reader needs other shards than theirs."""
        if self.known is None or (held := self.known.held(value)) is None:
            return False
        if held.pending:
            return True
        size, mesh = bytes_of(value), self.known.mesh
        wanted = self.known.wanted(value)
        return any(received(held, each, size, mesh) != 0 for each in wanted)


def shards_in(func: FuncOp, module: ModuleOp) -> Shards:
    """Return the shardings that a function of `module` states, also on its ops."""
    if not says_sharding(func):
        return Shards()
    return Shards(stated_shardings(func, mesh_of(func, module, "split")))
