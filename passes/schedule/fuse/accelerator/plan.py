"""The fusion plan of an accelerator, and checks of what its nests can contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.collective import AllGatherOp, CollectiveOp, GatherOp
from comet.dialects.collective.mesh import MeshOp, lookup_mesh
from comet.dialects.collective.state import States
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    FillOp,
    FoldOp,
    PadOp,
    RenameOp,
)
from comet.dialects.compound.copied import (
    ComputeOp,
    origins_of,
    readers_of,
    reads_through,
)
from comet.dialects.compound.dims import extents_of, names_of
from comet.dialects.errors import OpError, called
from comet.passes.analysis.addresses import check_addresses
from comet.passes.analysis.hardware_mesh import check_mesh
from comet.passes.analysis.memory_chain import MemoryChain, memory_chain
from comet.passes.analysis.padding import argument_of, is_border, is_resizing
from comet.passes.schedule.fuse.accelerator.borders import (
    dissolved_collectives,
    follows_gather,
)
from comet.passes.schedule.fuse.accelerator.folds import (
    check_iter_args,
    check_partials,
    states_in_steps,
    with_iter_args,
)
from comet.passes.schedule.fuse.accelerator.groups import nest_groups
from comet.passes.schedule.fuse.accelerator.nests import NestBuilder
from comet.passes.schedule.fuse.accelerator.residents import resident_values
from comet.passes.schedule.fuse.instance_ops import InstanceOps, read_instance_ops
from comet.passes.schedule.fuse.rewrite import FusionPlan, rewrite
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.node_names import name_nodes
from comet.passes.schedule.retile import unscattered
from comet.passes.schedule.tile_tree import (
    Aliases,
    Leaf,
    Levels,
    Node,
    chunks_of,
    ops_of,
    resolve,
)


@dataclass(frozen=True)
class ChainLevels(Levels):
    """Values are at the level of their node; operands of products have own buffers."""

    chain: MemoryChain
    resident: frozenset[SSAValue]
    """Values that stay in the cores between two nodes."""
    aliases: Aliases

    def at(self, value: SSAValue, node: Node | None) -> str:
        chain = self.chain
        if node is None:
            return chain.root
        if node.level != chain.out:
            return chain.out if value in self.resident else node.level
        for op in ops_of(node):
            if isinstance(op, ContractOp) and value is resolve(op.lhs, self.aliases):
                return chain.lhs
            if isinstance(op, ContractOp) and value is resolve(op.rhs, self.aliases):
                return chain.rhs
        return chain.out


def fuse_function(func: FuncOp, system: SystemOp, strategy: Strategy) -> None:
    """
    Rewrite the elementary ops of `func` as tile trees on `system`, without factors.

    Raises PassFailedException for ops that cannot be leaves, and for hardware without
    the levels of a `MemoryChain`.
    """
    rewrite(func, Fusible.of(func, system).plan(strategy))
    name_nodes(func)


@dataclass(frozen=True)
class Fusible:
    """A function that accelerators can run, as the plans of all strategies see it."""

    instance: InstanceOps
    chain: MemoryChain
    mesh: MeshOp
    states: States
    """The states of all values."""
    dissolved: dict[SSAValue, SSAValue]
    """The results of collectives that borders of nodes do, with their operands."""

    @classmethod
    def of(cls, func: FuncOp, system: SystemOp) -> Self:
        """Read a function; raises PassFailedException as `fuse_function`."""
        _check_ops(func)
        chain, instance = memory_chain(system), read_instance_ops(func)
        _check_results(instance)
        mesh = _mesh(instance, system)
        states = states_in_steps(instance, frozenset(chain.core_axes))
        dissolved = dissolved_collectives(instance, chain)
        return cls(instance, chain, mesh, states, dissolved)

    def plan(self, strategy: Strategy) -> FusionPlan:
        """Return the fusion plan of a strategy; raises PassFailedException."""
        instance, chain, states = self.instance, self.chain, self.states
        builder = NestBuilder(chain, self.mesh, states, self.dissolved, strategy)
        groups = nest_groups(instance.ops, states, strategy.name)
        for group in groups:
            check_partials(group, states)
        trees = tuple(map(builder.nest, groups))
        inputs = {local: v for local, v in instance.inputs.items() if local is not v}
        inside = [op for each in instance.ops for op in each.walk()]
        aliases = self.dissolved | chunks_of(instance.ops) | origins_of(inside)
        aliases |= {**inputs, **instance.leaving}
        completed = frozenset(self.dissolved.values())
        spills = strategy.name == "partial"
        buffered = resident_values(
            trees, chain.out, aliases, instance, completed, spills=spills
        )
        resident = frozenset(with_iter_args(set(buffered), instance.ops))
        if strategy.chunks == "root":
            check_iter_args(instance, resident)
        levels = ChainLevels(chain, resident, aliases)
        return FusionPlan(
            instance.func.body.block,
            (Leaf(instance.pads), *trees, Leaf(instance.slices)),
            tuple(instance.returned.operands),
            levels,
            aliases,
        )


def _mesh(instance: InstanceOps, system: SystemOp) -> MeshOp:
    """Return the mesh of the program, or that of `system` if it has no region."""
    region = instance.region
    name = system.system_name if region is None else region.mesh.string_value()
    mesh = lookup_mesh(instance.func, name)
    check_mesh(mesh, system)
    return mesh


def _check_ops(func: FuncOp) -> None:
    """Raise PassFailedException for an op that no accelerator nest can contain."""
    check_addresses(func)
    for op in func.walk():
        if is_resizing(op) and not (is_border(op) and op.parent_op() is func):
            way = (
                "pad arguments"
                if isinstance(op, PadOp)
                else "run outline-mappings first, as comet-accelerator does"
            )
            raise OpError(
                op,
                f"fuse: '{op.name}' of @{func.sym_name.data} changes the extents of a "
                "value inside the function, and accelerators read and write whole "
                f"tensors; {way}, or compile for a GPU",
            )
        if isinstance(op, RenameOp) and not follows_gather(op):
            raise OpError(op, _two_names(op))
        if isinstance(op, CastOp):
            _check_cast(op)
        if isinstance(op, CollectiveOp) and op.from_level is None:
            raise OpError(
                op, f"fuse: '{op.name}' is at no level; run place-collectives first"
            )
        if isinstance(op, AllGatherOp | GatherOp):
            _check_gather(op)


def _two_names(op: RenameOp) -> str:
    """Say that a value has two names of a dimension, and what then."""
    name = op.result.name_hint or "a value"
    before, after = (", ".join(names_of(v)) for v in (op.input, op.result))
    way = "run outline-mappings first, as comet-accelerator does"
    if any(isinstance(use.operation, CollectiveOp) for use in op.input.uses):
        # place-collectives has named the shards that are exchanged apart.
        way = "shard all ops that use it along the same axes"
    return (
        f"fuse: %{name} sees the dimensions {before} as {after}, and a tensor of the "
        f"COMET files has one name for each; {way}, or compile for a GPU"
    )


def _check_cast(op: CastOp) -> None:
    """Raise PassFailedException for a cast that no compute op does at its border."""
    if op.truncates:
        name = op.result.name_hint or "a value"
        raise OpError(
            op,
            f"fuse: the cast %{name} makes integers of floats, and no unit of an "
            "accelerator truncates; compute with floats, or compile for a GPU",
        )
    if reads_through(op) is None:
        return
    for user in readers_of(op.result):
        if not isinstance(user, ComputeOp | FoldOp | CastOp):
            name = op.result.name_hint or "a value"
            reader, way_out = f"'{user.name}'", f"give '{user.name}'"
            if user.has_trait(IsTerminator):
                reader, way_out = "the caller", "return"
            raise OpError(
                op,
                f"fuse: {reader} reads the cast %{name}, and accelerators cast only "
                "operands of compute ops, and results without other uses; "
                f"{way_out} the value before the cast",
            )


def _check_gather(op: AllGatherOp | GatherOp) -> None:
    """Raise PassFailedException unless the shards that a gather joins are equal."""
    if isinstance(op, AllGatherOp) and unscattered(op) is not None:
        return
    dim = op.dim.data
    extent, shard = extents_of(op.result)[dim], extents_of(op.input).get(dim, 1)
    if extent != shard * op.group_size:
        raise OpError(
            op,
            f"fuse: '{op.name}' joins {op.group_size} shards of {shard} along {dim}, "
            f"which has {extent}, and instances of an accelerator have equal shards; "
            f"distribute {dim} over axes that divide it, or pad it",
        )


def _check_results(instance: InstanceOps) -> None:
    """Raise PassFailedException if a result is an argument, padded, or a constant."""
    for value in instance.outputs:
        source = argument_of(value)
        is_argument = source is not None and source.owner is instance.func.body.block
        if is_argument or isinstance(value.owner, FillOp):
            raise PassFailedException(
                f"fuse: @{instance.func.sym_name.data} returns {called(value)}, "
                f"{'an argument' if is_argument else 'a constant'}, and accelerators "
                "have no operation that only stores one; return computed values only"
            )
