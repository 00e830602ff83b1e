"""
The body of an SPMD region under construction: local ops, and the collectives between.

Every op is inserted with the shardings that it needs of its operands; the body fetches
them: from the operands of the region (in any sharding, unless theirs is given), by
copying constants and renames, or by collectives, such as an all-reduce of a partial
value. The dialect's own analysis gives the state of each local value.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.blocks import captured_by, values_in
from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    ReduceScatterOp,
    ScatterOp,
)
from comet.dialects.collective.analysis import result_states
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.spmd import Sharding, state_of_sharding
from comet.dialects.collective.state import State, States
from comet.dialects.compound import (
    ConcatOp,
    FillOp,
    GatherOp,
    IndexOp,
    ReduceKind,
    RenameOp,
    SliceOp,
    View,
)
from comet.dialects.compound.dims import ceil_div, extents_of, names_of, with_extents
from comet.dialects.errors import OpError
from comet.passes.analysis.dependence import is_constant
from comet.passes.analysis.padding import argument_of, is_border
from comet.passes.sharding.moves import scattered_dim, swapped
from comet.passes.sharding.through_views import (
    local_sharding,
    operand_sharding,
    shown_sharding,
)

ShardedValue = tuple[SSAValue, tuple[tuple[str, tuple[str, ...]], ...]]
"""A global value and a sharding of it, sorted by dimensions: a key of dictionaries."""


def sharding_of_state(state: State) -> Sharding:
    """Return the mesh axes that split each sharded dimension, major first."""
    sharding: Sharding = {}
    for axis, dim in state.sharded.items():
        sharding[dim] = (*sharding.get(dim, ()), axis)
    return sharding


def restricted(sharding: Sharding, value: SSAValue | Attribute) -> Sharding:
    """Return the part of a sharding for the dimensions of `value`."""
    names = names_of(value)
    return {dim: axes for dim, axes in sharding.items() if dim in names}


def local_type(type_: Attribute, sharding: Sharding, mesh: MeshOp) -> Attribute:
    """Return the type of one instance's shard: ceil(extent / instances) of each dim."""
    shards = {
        dim: ceil_div(extent, mesh.size(sharding.get(dim, ())))
        for dim, extent in extents_of(type_).items()
    }
    return with_extents(type_, shards)


class LocalBody:
    """A block that grows op by op, with the state of every value in it."""

    def __init__(self, mesh: MeshOp, arguments: Mapping[SSAValue, Sharding]):
        self.mesh = mesh
        self.arguments = arguments
        """The sharding of a value from outside, if it is given."""
        self.block = Block()
        self.states: States = {}
        self.inputs: dict[ShardedValue, BlockArgument] = {}
        """
        The region's argument for each value from outside and each sharding it is used
        in, in the order of the arguments outside.
        """
        self._held: dict[SSAValue, SSAValue] = {}
        self._fetched: dict[ShardedValue, SSAValue] = {}

    @property
    def mesh_name(self) -> str:
        """The symbol of the mesh."""
        return self.mesh.sym_name.data

    def insert(self, op: Operation, name: str | None = None) -> SSAValue:
        """Append a local op; return its first result, called `name`."""
        self.block.add_op(op)
        self.states |= result_states(op, self.states)
        op.results[0].name_hint = name or op.results[0].name_hint
        return op.results[0]

    def hold(self, outer: SSAValue, local: SSAValue) -> None:
        """Record that `local` is the local value of the global `outer`."""
        self._held[outer] = local

    def sharding(self, outer: SSAValue) -> Sharding:
        """Return the sharding of a value if it is not moved."""
        view = outer.owner
        if isinstance(view, View) and not is_border(view):
            return shown_sharding(view, self.sharding, self.mesh)
        if outer in self._held:
            return sharding_of_state(self.states[self._held[outer]])
        return self.arguments.get(outer, {})

    def fetch(self, outer: SSAValue, wanted: Sharding) -> SSAValue:
        """
        Return the local value of `outer`, complete and in the sharding `wanted`.

        An all-reduce, or a reduce-scatter, completes a partial sum here.
        """
        wanted = restricted(wanted, outer)
        key = (outer, tuple(sorted(wanted.items())))
        if key not in self._fetched:
            self._fetched[key] = self._fetch(outer, wanted)
        return self._fetched[key]

    def _fetch(self, outer: SSAValue, wanted: Sharding) -> SSAValue:
        if outer in self._held:
            return self._reshard(outer, wanted)
        type_ = local_type(outer.type, wanted, self.mesh)
        match outer.owner:
            case FillOp() as fill:
                return self.insert(
                    FillOp(fill.value.value.data, type_), outer.name_hint
                )
            case IndexOp() as index:
                axes = wanted.get(index.dim, ())
                extent = index.extent if axes else None
                return self.insert(IndexOp(type_, extent, axes), outer.name_hint)
            case Operation() as op if is_constant(outer):
                return self._local(op, wanted, type_)
            case RenameOp() | SliceOp() | ConcatOp() | GatherOp() as view if (
                not is_border(view)
            ):
                return self._fetch_view(view, wanted, type_)
            case _ if outer in self.arguments:
                self.hold(outer, self._input(outer, self.arguments[outer]))
                return self._reshard(outer, wanted)
            case _:
                return self._input(outer, wanted)

    def _fetch_view(self, view: View, wanted: Sharding, type_: Attribute) -> SSAValue:
        """Return the local value of a view: of shards, or of the whole and moved."""
        if isinstance(view, GatherOp):
            self._check_table(view)
        local = local_sharding(view, wanted, self.mesh)
        if local == wanted:
            return self._local(view, operand_sharding(view, wanted), type_)
        self.hold(view.result, self.fetch(view.result, local))
        return self._reshard(view.result, wanted)

    def _local(self, op: Operation, wanted: Sharding, type_: Attribute) -> SSAValue:
        """Insert an op with one result, on shards of its operands."""
        local = op.create(
            operands=[self.fetch(value, wanted) for value in op.operands],
            result_types=[type_],
            properties=op.properties,
        )
        return self.insert(local, op.results[0].name_hint)

    def _check_table(self, op: GatherOp) -> None:
        """Raise PassFailedException for a table whose shards are of other rows."""
        if axes := self.sharding(op.table).get(op.along):
            raise OpError(
                op,
                f"insert-collectives: '{op.name}' gathers along {op.along}, which is "
                f"split over {', '.join(axes)}, and ids may name any position; shard "
                "another dimension of the table, or a dimension of ids",
            )

    def _input(self, outer: SSAValue, wanted: Sharding) -> SSAValue:
        type_ = local_type(outer.type, wanted, self.mesh)
        index = _argument_index(outer)
        before = [value for value, _ in self.inputs if _argument_index(value) <= index]
        argument = self.block.insert_arg(type_, len(before))
        argument.name_hint = outer.name_hint
        self.states[argument] = state_of_sharding(wanted)
        inputs = {**self.inputs, (outer, tuple(sorted(wanted.items()))): argument}
        in_order = sorted(inputs.items(), key=lambda entry: entry[1].index)
        self.inputs = dict(in_order)
        return argument

    def _reshard(self, outer: SSAValue, wanted: Sharding) -> SSAValue:
        """Complete the reductions of a held value, then move it to its new shards."""
        local = self._finish(outer, wanted)
        self._held[outer] = local
        sharding = sharding_of_state(self.states[local])
        if sharding == wanted:
            return local
        # A value that is already whole need not be gathered again.
        if sharding and (gathered := self._fetched.get((outer, ()))) is not None:
            local, sharding = gathered, {}
        if (swap := swapped(sharding, wanted)) is not None:
            return self._exchange(outer, local, wanted, swap)
        for dim in [dim for dim, axes in sharding.items() if wanted.get(dim) != axes]:
            local = self._gather(outer, local, dim)
        for dim in [dim for dim, axes in wanted.items() if sharding.get(dim) != axes]:
            local = self._scatter(outer, local, dim, wanted[dim])
        return local

    def _finish(self, outer: SSAValue, wanted: Sharding) -> SSAValue:
        """Reduce a partial value, into shards if these are wanted."""
        local = self._held[outer]
        state, name = self.states[local], local.name_hint
        for kind in dict.fromkeys(state.partial.values()):
            axes = tuple(a for a, pending in state.partial.items() if pending == kind)
            kind_, dim = ReduceKind(kind), scattered_dim(axes, wanted)
            if dim is not None and dim not in state.sharded.values():
                shards = {**sharding_of_state(state), dim: axes}
                type_ = local_type(outer.type, shards, self.mesh)
                op = ReduceScatterOp(
                    local, self.mesh_name, axes, type_, kind=kind_, dim=dim
                )
            else:
                op = AllReduceOp(local, self.mesh_name, axes, kind=kind_)
            local = self.insert(op, name)
        return local

    def _gather(self, outer: SSAValue, local: SSAValue, dim: str) -> SSAValue:
        sharding = sharding_of_state(self.states[local])
        axes = sharding.pop(dim)
        type_ = local_type(outer.type, sharding, self.mesh)
        op = AllGatherOp(local, self.mesh_name, axes, type_, dim=dim)
        return self.insert(op, local.name_hint)

    def _scatter(
        self, outer: SSAValue, local: SSAValue, dim: str, axes: tuple[str, ...]
    ) -> SSAValue:
        shards = {**sharding_of_state(self.states[local]), dim: axes}
        type_ = local_type(outer.type, shards, self.mesh)
        op = ScatterOp(local, self.mesh_name, axes, type_, dim=dim, root=0)
        return self.insert(op, local.name_hint)

    def _exchange(
        self,
        outer: SSAValue,
        local: SSAValue,
        wanted: Sharding,
        swap: tuple[str, str],
    ) -> SSAValue:
        split, concat = swap
        type_, axes = local_type(outer.type, wanted, self.mesh), wanted[split]
        mesh = self.mesh_name
        op = AllToAllOp(local, mesh, axes, type_, split=split, concat=concat)
        return self.insert(op, local.name_hint)

    def local_region(self, region: Region, sharding: Sharding) -> Region:
        """Copy the region of an op, with local types for all values in it."""
        captured = dict.fromkeys(captured_by(region.block))
        values = {value: self.fetch(value, sharding) for value in captured}
        local = Region()
        region.clone_into(local, value_mapper=values)
        for value in tuple(values_in(local.block)):
            type_ = local_type(value.type, sharding, self.mesh)
            Rewriter.replace_value_with_new_type(value, type_)
        return local


def _argument_index(value: SSAValue) -> int:
    argument = argument_of(value)
    assert argument is not None
    return argument.index
