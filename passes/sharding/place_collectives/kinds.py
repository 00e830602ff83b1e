"""The forms that an all-reduce can take, and which of them is cheapest."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException, VerifyException

from comet.cost.estimate import CostError
from comet.cost.from_ir.collective import CollectivePrice, Pricer, payload_of, price_of
from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    BroadcastOp,
    GatherOp,
    ReduceScatterOp,
    RootReduceOp,
)
from comet.dialects.collective.base import AlgorithmAttr, CollectiveOp
from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.collective.spmd import SpmdOp, region_states, verify_results
from comet.dialects.compound import ReduceOp
from comet.dialects.compound.dims import (
    ceil_div,
    element_type_of,
    extents_of,
    tensor,
    with_extents,
)
from comet.dialects.cost import annotate
from comet.passes.search import Candidate, Cost, Found, Goal, cheapest
from comet.passes.sharding.shardings import part_dim

Kind = Literal["allreduce", "reduce_scatter_all_gather", "reduce_broadcast", "gather"]
"""
One op; a reduce-scatter and an all-gather; a reduction to instance 0 and a broadcast of
the result; or a gather of all terms there, a local reduction and a broadcast.
"""


COLLECTIVES: dict[Kind, tuple[str, ...]] = {
    "allreduce": ("all_reduce",),
    "reduce_scatter_all_gather": ("reduce_scatter", "all_gather"),
    "reduce_broadcast": ("reduce", "broadcast"),
    "gather": ("gather", "broadcast"),
}
"""The collectives of each form, by the names of `comet.cost.collectives.algorithms`."""


ROOT = 0
"""The instance of a group that reduces or gathers for all."""


@dataclass(frozen=True)
class Implementation:
    """How an explicit collective is carried out."""

    kind: Kind | None
    """None for an op that is not replaced."""
    prices: tuple[CollectivePrice, ...]
    """One for each collective that it consists of."""

    @property
    def cost(self) -> Cost:
        """The sum of its costs; raises CostError if a collective has no price."""
        if not all(price.figures for price in self.prices):
            raise CostError("no COMET file says it, or nothing prices it")
        latency = sum(price.time for price in self.prices)
        energy = sum(price.energy for price in self.prices)
        return Cost(latency, energy)


def form_of(kind: Kind, value: SSAValue, ranks: int, pricer: Pricer) -> Implementation:
    """
    Return an all-reduce of `value` over `ranks` instances in the form `kind`.

    Raises CostError for an algorithm that does not run there.
    """
    prices = [
        pricer.price(name, payload_of(value, ranks if name == "gather" else 1))
        for name in COLLECTIVES[kind]
    ]
    return Implementation(kind, tuple(prices))


def form_of_op(op: CollectiveOp, pricer: Pricer) -> Implementation:
    """Return `op` unchanged; raises CostError if its algorithm cannot run."""
    return Implementation(None, (price_of(op, pricer),))


def form_to_root(op: CollectiveOp, pricer: Pricer) -> Implementation:
    """Return an all-gather as a gather; raises CostError as `form_of_op` does."""
    return Implementation(
        "gather", (pricer.price("gather", payload_of(op.results[0])),)
    )


def write_price(op: CollectiveOp, price: CollectivePrice) -> None:
    """Write on a collective how it is carried out, and what it takes."""
    if price.algorithm is not None:
        op.algorithm = AlgorithmAttr(price.algorithm)
    if price.figures is not None:
        annotate(op, price.figures)


def cheapest_form(
    op: CollectiveOp, forms: Sequence[Implementation], goal: Goal
) -> Implementation:
    """
    Return the form of `op` that costs least, the first of several.

    Where nothing prices them, that is the first one, which leaves all to the target.
    """
    candidates = [
        Candidate(form.kind or "as it is", partial(_found, form)) for form in forms
    ]
    value = op.input.name_hint or "a value"
    with suppress(PassFailedException):
        return cheapest("collective", f"%{value}", candidates, goal).result
    return forms[0]


def _found(form: Implementation) -> Found[Implementation]:
    return Found(form, form.cost, "network")


def ops_of_form(
    op: AllReduceOp, kind: Kind, scatter_dim: str | None
) -> list[Operation]:
    """
    Return the ops, not yet inserted, that compute `op` in the form `kind`.

    The form of shards needs a dimension to scatter.
    """
    if kind == "gather":
        return _through_root(op)
    if kind == "reduce_broadcast":
        mesh, axes = op.mesh.string_value(), op.axis_names
        reduce = RootReduceOp(op.input, mesh, axes, kind=op.kind.data, root=ROOT)
        return [reduce, BroadcastOp(reduce.result, mesh, axes, root=ROOT)]
    assert scatter_dim is not None
    return _through_shards(op, scatter_dim)


def _through_shards(op: AllReduceOp, dim: str) -> list[Operation]:
    mesh, axes = op.mesh.string_value(), op.axis_names
    shard = ceil_div(extents_of(op.input)[dim], op.group_size)
    type_ = with_extents(op.input.type, {dim: shard})
    scatter = ReduceScatterOp(op.input, mesh, axes, type_, kind=op.kind.data, dim=dim)
    gather = AllGatherOp(scatter.result, mesh, axes, op.result.type, dim=dim)
    return [scatter, gather]


def _through_root(op: AllReduceOp) -> list[Operation]:
    mesh, axes = op.mesh.string_value(), op.axis_names
    terms = part_dim(axes)
    extents = extents_of(op.input) | {terms: op.group_size}
    type_ = tensor(extents, element_type_of(op.input))
    gather = GatherOp(op.input, mesh, axes, type_, dim=terms, root=ROOT)
    reduce = ReduceOp(op.kind.data, gather.result, op.result.type)
    return [gather, reduce, BroadcastOp(reduce.result, mesh, axes, root=ROOT)]


def root_suffices(region: SpmdOp, op: AllGatherOp) -> bool:
    """
    Return whether only the root needs the result of an all-gather in the region.

    That is true where nothing later exchanges along the same axes, or reads the shard
    of another instance.
    """
    mesh = lookup_mesh(region, region.mesh)
    try:
        states = region_states(region, {op.result: {op.axis_names: ROOT}})
        verify_results(region, mesh, states)
    except VerifyException:
        return False
    return True


def gather_to_root(op: AllGatherOp) -> GatherOp:
    """Return the gather, not yet inserted, that gives the root what `op` gives all."""
    mesh, axes = op.mesh.string_value(), op.axis_names
    return GatherOp(op.input, mesh, axes, op.result.type, dim=op.dim.data, root=ROOT)
