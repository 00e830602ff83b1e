"""The forms that an all-reduce can take, and which of them is cheapest."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from xdsl.ir import Operation, SSAValue

from comet.cost.gpu_collectives import ALL_GATHER, ALL_REDUCE, Link
from comet.dialects.arch import find_system
from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    BroadcastOp,
    GatherOp,
    ReduceScatterOp,
)
from comet.dialects.collective_base import Algorithm
from comet.dialects.compound import ReduceOp
from comet.dialects.compound_dims import (
    element_type_of,
    extents_of,
    tensor,
    with_extents,
)
from comet.passes.shardings import part_dim

Kind = Literal["allreduce", "reduce_scatter_all_gather", "gather"]
"""
One op; a reduction of shares that are then gathered; or all terms gathered at instance
0, reduced there and sent back.
"""


@dataclass(frozen=True)
class Form:
    """How an explicit collective is carried out."""

    kind: Kind
    algorithm: Algorithm | None
    """None leaves it to the target."""


def cheapest_form(
    op: AllReduceOp, ranks: int, kind: Kind | Literal["auto"], scatter_dim: str | None
) -> Form:
    """
    Return the form of that kind which takes the attached GPUs the least time.

    `ranks` is the size of the groups.

    Where nothing prices it, the algorithm is the target's own, and auto an all-reduce:
    on accelerators, whose files know neither reduce-scatter nor algorithms, and for a
    gather, which leaves all work to one instance.
    """
    system = find_system(op)
    if system is None or (gpu := system.gpu) is None or kind == "gather":
        return Form("allreduce" if kind == "auto" else kind, None)
    link = Link(gpu.link_latency, gpu.link_bandwidth)
    size = _bytes(op.input)
    whole: dict[Form, float] = {
        Form("allreduce", Algorithm(name)): seconds(link, ranks, size)
        for name, seconds in ALL_REDUCE.items()
    }
    shares: dict[Form, float] = {
        Form("reduce_scatter_all_gather", Algorithm(name)): 2
        * seconds(link, ranks, size)
        for name, seconds in ALL_GATHER.items()
    }
    times = whole | (shares if scatter_dim is not None else {})
    return min((f for f in times if kind in ("auto", f.kind)), key=times.__getitem__)


def _bytes(value: SSAValue) -> float:
    return prod(extents_of(value).values()) * element_type_of(value).bitwidth / 8


def ops_of_form(
    op: AllReduceOp, kind: Kind, scatter_dim: str | None
) -> list[Operation]:
    """
    Return the ops, not yet inserted, that compute `op` in the form `kind`.

    The form of shares needs a dimension to scatter.
    """
    if kind == "gather":
        return _through_root(op)
    assert scatter_dim is not None
    return _through_shares(op, scatter_dim)


def _through_shares(op: AllReduceOp, dim: str) -> list[Operation]:
    mesh, axes = op.mesh.string_value(), op.axis_names
    share = -(-extents_of(op.input)[dim] // op.group_size)
    type_ = with_extents(op.input.type, {dim: share})
    scatter = ReduceScatterOp(op.kind.data, dim, op.input, mesh, axes, type_)
    gather = AllGatherOp(dim, scatter.result, mesh, axes, op.result.type)
    return [scatter, gather]


def _through_root(op: AllReduceOp) -> list[Operation]:
    mesh, axes = op.mesh.string_value(), op.axis_names
    terms = part_dim(axes)
    extents = extents_of(op.input) | {terms: op.group_size}
    type_ = tensor(extents, element_type_of(op.input))
    gather = GatherOp(terms, op.input, 0, mesh, axes, type_)
    reduce = ReduceOp(op.kind.data, gather.result, op.result.type)
    return [gather, reduce, BroadcastOp(reduce.result, 0, mesh, axes)]
