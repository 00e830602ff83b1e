"""The SPMD region: one body, run by every instance of a mesh on its local shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FlatSymbolRefAttr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    irdl_to_attr_constraint,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from comet.dialects.collective.analysis import missing_op, reject_rooted, states_after
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.mesh import MeshOp, lookup_mesh, verify_axes
from comet.dialects.collective.roots import Roots
from comet.dialects.collective.state import State, States
from comet.dialects.compound.dims import ceil_div, element_type_of, extents_of, names_of
from comet.dialects.parents import enclosing

NAMES = irdl_to_attr_constraint(ArrayAttr[StringAttr])

Sharding = dict[str, tuple[str, ...]]
"""The mesh axes that split each sharded dimension, major first."""


def sharding_attr(sharding: Mapping[str, Sequence[str]]) -> DictionaryAttr:
    """Return the attribute `{N = ["cx", "cy"]}` of a sharding."""
    return DictionaryAttr(
        {
            dim: ArrayAttr(StringAttr(axis) for axis in axes)
            for dim, axes in sharding.items()
        }
    )


def sharding_of(attribute: Attribute) -> Sharding:
    """
    Return the sharding of an attribute `{N = ["cx", "cy"]}`.

    Raises VerifyException if it is not a dictionary of lists of strings.
    """
    if not isinstance(attribute, DictionaryAttr):
        raise VerifyException(f"expected a sharding {{N = [..]}}, got {attribute}")
    sharding: Sharding = {}
    for dim, axes in attribute.data.items():
        if not NAMES.verifies(axes) or not axes.data:
            raise VerifyException(
                f'sharding of {dim} is a list of mesh axis names, as in ["rank"]'
            )
        sharding[dim] = tuple(axis.data for axis in axes)
    return sharding


class SpmdShardings(SymbolUserOpInterface):
    """Checks the shardings of an SPMD region against its mesh and its types."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, SpmdOp)
        op.verify_counts()
        mesh = lookup_mesh(op, op.mesh)
        for outer, inner, sharding in op.boundary():
            verify_sharding(op, mesh, outer, inner, sharding)
        verify_spmd(op, mesh)


def verify_sharding(
    op: Operation, mesh: MeshOp, outer: SSAValue, inner: SSAValue, sharding: Sharding
) -> None:
    """Check that `inner` is one instance's shard of `outer` under `sharding`."""
    if names_of(outer) != names_of(inner):
        raise VerifyException(
            f"'{op.name}' op {outer.type} and its local {inner.type} name the same "
            "dimensions"
        )
    if element_type_of(outer) != element_type_of(inner):
        raise VerifyException(f"'{op.name}' op keeps the element type of {outer.type}")
    if axes := [axis for names in sharding.values() for axis in names]:
        verify_axes(op, mesh, axes)
    extents, local = extents_of(outer), extents_of(inner)
    for dim in sharding:
        if dim not in extents:
            raise VerifyException(
                f"'{op.name}' op shards {dim}, which {outer.type} does not have"
            )
    for dim, extent in extents.items():
        size = mesh.size(sharding.get(dim, ()))
        if local[dim] != ceil_div(extent, size):
            raise VerifyException(
                f"'{op.name}' op {dim} = {extent} over {size} instances is "
                f"{ceil_div(extent, size)} each, got {local[dim]}"
            )


@irdl_op_definition
class YieldOp(IRDLOperation):
    """
    Ends the region of `collective.spmd`.

    ```mlir
    collective.yield %h : tensor<8x4xf16, #compound.dims<M, N>>
    ```
    """

    name = "collective.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


@irdl_op_definition
class SpmdOp(IRDLOperation):
    """
    Run the body on every instance of the mesh, each on its shard of the operands.

    Outside, shapes are global; inside they are local: ceil(extent / instances). A
    dimension without mesh axes is replicated; programs of one GPU may split it again,
    by a node over axes inside the GPU. The verifier derives the state of every
    value in the body: replicated, sharded, or partial along each mesh axis; a partial
    value needs an all-reduce before it is mapped or yielded.

    ```mlir
    %h = collective.spmd on @gpus ins(%a : tensor<8x8xf16, #compound.dims<M, N>>)
        sharded [{N = ["rank"]}] outs(tensor<8xf16, #compound.dims<M>>) sharded [{}] {
    ^bb0(%l : tensor<8x4xf16, #compound.dims<M, N>>):
      %m = compound.reduce max %l : ...
      %r = collective.all_reduce max %m on @gpus ["rank"] : ...
      collective.yield %r : tensor<8xf16, #compound.dims<M>>
    }
    ```
    """

    name = "collective.spmd"
    mesh = prop_def(FlatSymbolRefAttr)
    ins = var_operand_def()
    in_shardings = prop_def(ArrayAttr[DictionaryAttr])
    outs = var_result_def()
    out_shardings = prop_def(ArrayAttr[DictionaryAttr])
    body = region_def("single_block")
    traits = traits_def(Pure(), RecursiveMemoryEffect(), SpmdShardings())
    assembly_format = (
        "`on` $mesh `ins` `(` $ins `:` type($ins) `)` `sharded` $in_shardings `outs` "
        "`(` type($outs) `)` `sharded` $out_shardings attr-dict-with-keyword $body"
    )

    def __init__(
        self,
        mesh: str,
        ins: Sequence[SSAValue],
        in_shardings: Sequence[Mapping[str, Sequence[str]]],
        out_types: Sequence[Attribute],
        out_shardings: Sequence[Mapping[str, Sequence[str]]],
        body: Region,
    ):
        super().__init__(
            operands=[ins],
            result_types=[out_types],
            properties={
                "mesh": SymbolRefAttr(mesh),
                "in_shardings": ArrayAttr(map(sharding_attr, in_shardings)),
                "out_shardings": ArrayAttr(map(sharding_attr, out_shardings)),
            },
            regions=[body],
        )

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The local values that the body yields."""
        terminator = self.body.block.last_op
        assert isinstance(terminator, YieldOp)
        return tuple(terminator.values)

    def boundary(self) -> list[tuple[SSAValue, SSAValue, Sharding]]:
        """Return (global value, local value, sharding) of operands, then of results."""
        args = self.body.block.args
        inputs = zip(self.ins, args, map(sharding_of, self.in_shardings), strict=True)
        outputs = zip(
            self.outs, self.yielded, map(sharding_of, self.out_shardings), strict=True
        )
        return [*inputs, *outputs]

    def verify_counts(self) -> None:
        """Check that operands, arguments, results and shardings pair up."""
        counts = (len(self.ins), len(self.in_shardings), len(self.body.block.args))
        if len(set(counts)) > 1:
            raise VerifyException(
                f"'{self.name}' op has {counts[0]} operands, {counts[1]} shardings and "
                f"{counts[2]} block arguments"
            )
        last = self.body.block.last_op
        values = len(last.values) if isinstance(last, YieldOp) else -1
        if not len(self.outs) == len(self.out_shardings) == values:
            raise VerifyException(
                f"'{self.name}' op yields one value, with one sharding, per result "
                "in a final collective.yield"
            )


def state_of_sharding(sharding: Sharding) -> State:
    """Return the state of a value that enters with `sharding`."""
    return State({axis: dim for dim, axes in sharding.items() for axis in axes}, {})


def verify_spmd(op: SpmdOp, mesh: MeshOp) -> None:
    """
    Check that the body of the `spmd` op computes the same as one device.

    Raises VerifyException for a map of a partial value, a wrong reduction kind or axis,
    operands that are sharded differently, or a yield that does not match.
    """
    for inner in op.body.block.ops:
        if isinstance(inner, CollectiveOp) and inner.mesh != op.mesh:
            raise VerifyException(
                f"'{inner.name}' op is on mesh {inner.mesh}, the region on {op.mesh}"
            )
    verify_results(op, mesh, region_states(op))


def verify_results(op: SpmdOp, mesh: MeshOp, states: States) -> None:
    """
    Check that what `op` yields matches the shardings of its results.

    Raises VerifyException if it does not.
    """
    for _, value, sharding in op.boundary()[len(op.ins) :]:
        if value not in states:
            raise VerifyException(
                f"'{op.name}' op yields a value from outside of its region; hand it in "
                "as an operand"
            )
        _verify_yield(op, mesh, states[value], sharding)


def region_states(op: SpmdOp, roots: Mapping[SSAValue, Roots] | None = None) -> States:
    """
    Return the state of every value in the body of `op`; only roots have those of
    `roots`.

    Raises VerifyException for a body that does not compute the same as one device.
    """
    states: States = {}
    for _, argument, sharding in op.boundary()[: len(op.ins)]:
        states[argument] = state_of_sharding(sharding)
    for inner in op.body.block.ops:
        if not isinstance(inner, YieldOp):
            states |= states_after(inner, states)
        for result in (roots or {}).keys() & set(inner.results):
            rooted = {**states[result].rooted, **(roots or {})[result]}
            states[result] = replace(states[result], rooted=rooted)
    return states


def _verify_yield(op: SpmdOp, mesh: MeshOp, state: State, sharding: Sharding) -> None:
    _verify_roots(op, state)
    for dim, axes in sharding.items():
        if set(state.splits(dim)) == set(axes) and state.splits(dim) != axes:
            raise VerifyException(
                f"'{op.name}' op yields {dim} split over {', '.join(state.splits(dim))}"
                f" where its sharding says {', '.join(axes)}; the order counts"
            )
    expected = state_of_sharding(sharding)
    for axis in mesh.axis_extents:
        if state.uniform and axis not in state.partial:
            continue
        if state.describe(axis) != expected.describe(axis):
            raise VerifyException(
                f"'{op.name}' op yields a value that is {state.describe(axis)} over "
                f"axis '{axis}' where its sharding says {expected.describe(axis)}"
                + (missing_op(state.partial[axis]) if axis in state.partial else "")
            )


def _verify_roots(op: SpmdOp, state: State) -> None:
    """Check that instance 0 is the root of a value, and has it full and complete."""
    for group, root in state.rooted.items():
        for axis in group:
            if root != 0 or axis in state.sharded or axis in state.partial:
                reject_rooted(op, state, [axis])


def rank_count(op: Operation) -> int:
    """Return how many ranks run `op`: those of its SPMD region, or one."""
    region = op if isinstance(op, SpmdOp) else enclosing(op, SpmdOp)
    if region is None:
        return 1
    mesh = lookup_mesh(region, region.mesh)
    return mesh.size(mesh.rank_axes)
