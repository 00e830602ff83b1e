"""The functions of traced graphs: what one GPU computes, or what ranks do."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType, UnitAttr
from xdsl.ir import Block, Region, SSAValue

from comet.dialects.collective import MeshOp, SpmdOp, YieldOp
from comet.dialects.compound.dims import Element, names_of, with_extents
from comet.dialects.reference import REFERENCE, reference_name
from comet.pytorch.collectives import MESH
from comet.pytorch.dims import Dim
from comet.pytorch.emitter import RANK, Emitter, Tensor
from comet.pytorch.naming import with_reused_names
from comet.pytorch.ranks import Ranks


def function_of(
    name: str, given: Sequence[Tensor], computed: Sequence[Tensor], ranks: Ranks
) -> ModuleOp:
    """
    Return a module with the function `name` from some tensors to others.

    If there are several ranks it is a region with their collectives, and a tensor in
    which they differ has the dimension RANK; the reference computes the same with the
    values of all ranks in one tensor.
    """
    names = _names(given, computed, ranks.dim)
    if ranks.count == 1:
        only = Emitter(ranks.dim, 1, names)
        return ModuleOp([_function(name, given, computed, only)])
    local = Emitter(ranks.dim, 1, names)
    values = _emitted(local, given, computed)
    local.block.add_op(YieldOp(*values))
    whole = Emitter(ranks.dim, ranks.count, names)
    reference = _function(reference_name(name), given, computed, whole)
    reference.properties["sym_visibility"] = StringAttr("private")
    reference.attributes[REFERENCE] = UnitAttr()
    mesh = MeshOp(MESH, {RANK: ranks.count})
    function = _of_ranks(name, local.block, values, ranks.count)
    return ModuleOp([mesh, function, reference])


def _names(
    given: Sequence[Tensor], computed: Sequence[Tensor], ranks: Dim
) -> dict[Dim, str]:
    """Return the names of all dimensions; see `naming`."""
    first = Emitter(ranks)
    _emitted(first, given, computed)
    return with_reused_names(first.block, first.names)


def _emitted(
    to: Emitter, given: Sequence[Tensor], computed: Sequence[Tensor]
) -> list[SSAValue]:
    """Emit arguments and ops, and return the values of what is computed."""
    for number, tensor in enumerate(given):
        to.define(tensor, to.block.insert_arg(to.type(tensor), number))
    values = ((to.value(tensor), tensor) for tensor in computed)
    return [to.ordered(value, [*to.named(tensor.dims)]) for value, tensor in values]


def _function(
    name: str, given: Sequence[Tensor], computed: Sequence[Tensor], to: Emitter
) -> func.FuncOp:
    """Return a function in whose block `to` emits what is computed."""
    returned = _emitted(to, given, computed)
    to.block.add_op(func.ReturnOp(*returned))
    types = [arg.type for arg in to.block.args], [value.type for value in returned]
    return func.FuncOp(name, types, Region(to.block))


def _of_ranks(
    name: str, body: Block, yielded: Sequence[SSAValue], count: int
) -> func.FuncOp:
    """Return the function whose region has the body of one rank."""
    inputs = [_whole(value, count) for value in body.args]
    results = [_whole(value, count) for value in yielded]
    function = func.FuncOp(name, (inputs, results))
    block = function.body.block
    shardings = [list(map(_sharding, values)) for values in (body.args, yielded)]
    region = SpmdOp(MESH, block.args, shardings[0], results, shardings[1], Region(body))
    for outer, inner in zip(block.args, body.args, strict=True):
        outer.name_hint = inner.name_hint
    block.add_ops([region, func.ReturnOp(*region.outs)])
    return function


def _whole(value: SSAValue, count: int) -> TensorType[Element]:
    """Return the type of the values of all ranks."""
    return with_extents(value.type, {RANK: count} if RANK in names_of(value) else {})


def _sharding(value: SSAValue) -> dict[str, list[str]]:
    return {RANK: [RANK]} if RANK in names_of(value) else {}
