"""
The schedule dialect: the tile tree.

A node runs its body once per tile: one after another (`temporal`), or on the instances
of a mesh or of a launch grid (`spatial`). It has factors; slices follow from dimension
names. Every value is at a memory level. If the level of a value changes at the border
of a node, the node transfers it.

`node`, `copy`, `attributes`, `launch` define the IR; `slices`, `transfers`, `liveness`,
`iter_args`, `loop_bounds`, `loop_forms` and `analysis` what it means. About kernels:
`late_loads`, `accumulators`, `masked_loops`, `epilogue`, `clusters`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    FlatSymbolRefAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_attr_def,
    opt_prop_def,
    opt_region_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    RecursiveMemoryEffect,
    SymbolUserOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from comet.dialects.collective import CollectiveOp
from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.collective.spmd import SpmdOp
from comet.dialects.compound import YieldOp as MergeYieldOp
from comet.dialects.compound.dims import names_of
from comet.dialects.errors import about
from comet.dialects.schedule.analysis import verify_combiners
from comet.dialects.schedule.attributes import (
    BindingAttr,
    BlocksAttr,
    Combiner,
    LoopAttr,
    LoopList,
    ProgramsAttr,
)
from comet.dialects.schedule.copy import CopyOp
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.loop_bounds import BOUNDS, verify_bound, verify_ends
from comet.dialects.schedule.loop_forms import (
    verify_coalesce,
    verify_unmask,
    verify_unroll,
)
from comet.dialects.schedule.node import (
    NodeOp,
    combine_attr,
    verify_names,
    verify_node,
)
from comet.dialects.schedule.transfers import verify_copies


@irdl_op_definition
class YieldOp(IRDLOperation):
    """
    Ends the body of a node.

    ```mlir
    schedule.yield %c : tensor<8x16xf16, #compound.dims<M, N @OB>>
    ```
    """

    name = "schedule.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


@irdl_op_definition
class TemporalOp(NodeOp):
    """
    Run the body once per tile, one after another; loops are outermost first.

    A loop's factor is ceil(extent / tile), so the last tile may be short. Of two loops
    over one dimension, the first makes even parts, which the second cuts into tiles. A
    result without a looped dimension names its combiner. A `fold` result starts from an
    `iter_args` operand; its block argument is what the previous iteration yielded.

    ```mlir
    %c = schedule.temporal @c_ob [N = 2, K = 8] ins(%a, %b :
        tensor<8x128xf16, #compound.dims<M, K @IB>>,
        tensor<128x32xf16, #compound.dims<K, N @WB>>)
        outs(tensor<8x32xf16, #compound.dims<M, N @OB>>) combine ["add"] {
    ^bb0(%a1 : tensor<8x16xf16, #compound.dims<M, K @IB>>,
         %b1 : tensor<16x16xf16, #compound.dims<K, N @WB>>):
      %c1 = compound.contract %a1, %b1 : ...
      schedule.yield %c1 : tensor<8x16xf16, #compound.dims<M, N @OB>>
    }
    ```
    """

    name = "schedule.temporal"
    # Named again, because fields of a subclass come before those of its base.
    ins = var_operand_def()
    iter_args = var_operand_def()
    with_args = var_operand_def()
    partial = opt_prop_def(UnitAttr)
    """Its results are those of partial folds, see `compound.fold`."""
    until = opt_prop_def(IntegerAttr[I64])
    """
    The index of the operand with the last visible position along the loop, for each of
    its elements: iterations after all of these have no effect, and are left out.
    """
    start = opt_prop_def(IntegerAttr[I64])
    """
    The operand whose first element is the position, of those of `until`, at which the
    loop begins; it may be the `compound.index` along the loop.
    """
    since = opt_prop_def(IntegerAttr[I64])
    """The same for the first visible position: iterations before it are left out."""
    first = opt_prop_def(IntegerAttr[I64])
    """
    The operand with the number of the first iteration that runs, one element; without
    it that is 0. Others leave the iter_args as they are.
    """
    end = opt_prop_def(IntegerAttr[I64])
    """The same for the iteration before which the loop ends."""
    unmask = opt_prop_def(UnitAttr)
    """
    Whether the iterations whose positions are visible for all elements of that operand
    are a separate loop without the mask, see `unmask-loops`.
    """
    specialize = opt_prop_def(UnitAttr)
    """Whether producer warps load tiles for the others, see `specialize-warps`."""
    unroll = opt_prop_def(UnitAttr)
    """Whether its iterations are written one after another, see `split-epilogues`."""
    coalesce = opt_prop_def(UnitAttr)
    """Whether a kernel has one loop over all its iterations, see `coalesce-loops`."""
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(RecursiveMemoryEffect(), IsolatedFromAbove())
    custom_directives = (LoopList,)
    assembly_format = (
        "($node_name^)? custom<LoopList>($loops) (`partial` $partial^)? "
        "(`until` $until^)? (`from` $start^)? (`since` $since^)? "
        "(`first` $first^)? (`end` $end^)? (`unmask` $unmask^)? "
        "(`specialize` $specialize^)? (`unroll` $unroll^)? "
        "(`coalesce` $coalesce^)? `ins` `(` $ins `:` type($ins) `)` "
        "(`iter_args` `(` $iter_args^ `:` type($iter_args) `)`)? "
        "(`with` `(` $with_args^ `:` type($with_args) `)`)? `outs` `(` "
        "type($outs) `)` (`combine` $combine^)? attr-dict-with-keyword $body"
    )

    def __init__(
        self,
        loops: Sequence[LoopAttr],
        ins: Sequence[SSAValue],
        iter_args: Sequence[SSAValue],
        out_types: Sequence[Attribute],
        combiners: Sequence[Combiner],
        body: Region,
        with_args: Sequence[SSAValue] = (),
    ):
        super().__init__(
            operands=[ins, iter_args, with_args],
            result_types=[out_types],
            properties={"loops": ArrayAttr(loops), "combine": combine_attr(combiners)},
            regions=[body],
        )

    def init_args(self) -> Sequence[SSAValue]:
        return tuple(self.iter_args)

    def drop_operand(self, index: int) -> None:
        super().drop_operand(index)
        for name in BOUNDS:
            operand = self.properties.get(name)
            if isinstance(operand, IntegerAttr) and operand.value.data > index:
                self.properties[name] = IntegerAttr(operand.value.data - 1, i64)

    def verify_(self) -> None:
        for loop in self.loops:
            if loop.axis is not None:
                raise VerifyException(
                    f"'{self.name}' op loops have no axis, got {loop.axis}: {loop.dim}"
                )
        dims = [loop.dim for loop in self.loops]
        for dim in self.factors:
            if dims.count(dim) > 2:
                raise VerifyException(
                    f"'{self.name}' op has more than two loops over {dim}: one for "
                    "even parts, one for their tiles"
                )
        verify_bound(self, "until", self.until)
        verify_bound(self, "from", self.start)
        verify_bound(self, "since", self.since)
        verify_ends(self, self.first, self.end)
        if self.start is not None and self.until is None:
            raise VerifyException(
                f"'{self.name}' op from: the node has no until, whose positions the "
                "loop begins with"
            )
        verify_unmask(self, self.unmask)
        verify_unroll(self, self.unroll)
        verify_coalesce(self, self.coalesce)
        verify_node(self)
        if Combiner.FOLD in self.combiners and not self.iter_args:
            raise VerifyException(
                f"'{self.name}' op result combined by fold starts from an iter_arg"
            )
        if Combiner.ROOT in self.combiners:
            raise VerifyException(
                f"'{self.name}' op has iterations, not instances: no combiner 'root'"
            )
        _verify_tree(self)


def _verify_tree(op: NodeOp) -> None:
    """Check the combiners, names and copies of a whole tree, once, at its root."""
    if not isinstance(op.parent_op(), NodeOp):
        verify_combiners(op)
        verify_names(op)
        verify_copies(op)


class SpatialAxes(SymbolUserOpInterface):
    """Checks the axes of a spatial node, and those of collectives in its body."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, SpatialOp)
        op.verify_axes()
        for inner in op.body.walk():
            if isinstance(inner, CollectiveOp):
                with about(inner):
                    _verify_enclosed(inner)


def _verify_enclosed(op: CollectiveOp) -> None:
    """
    Check that every axis of a collective is one of an enclosing node or SPMD region.
    """
    enclosing: set[str] = set()
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, SpatialOp):
            enclosing |= {loop.axis for loop in parent.loops if loop.axis is not None}
        if isinstance(parent, SpmdOp) and parent.mesh == op.mesh:
            enclosing |= set(lookup_mesh(parent, parent.mesh).rank_axes)
        parent = parent.parent_op()
    for axis in op.axis_names:
        if axis not in enclosing:
            raise VerifyException(
                f"'{op.name}' op axis '{axis}' is not one of an enclosing spatial node"
            )


@irdl_op_definition
class SpatialOp(NodeOp):
    """
    Run the body on the instances of mesh axes, or of a launch grid.

    Each loop names its axis; the first loop is major. On a mesh a factor is the extent
    of the axis, or 1 (idle), and instances get tiles of ceil(extent / factors), of
    which the last ones may be short or empty. On a grid the factor is the number of
    programs, ceil(extent / tile); of two loops over one dimension, the first makes even
    parts. `merge` merges the `fold` results of two instances. In a kernel, tiles are
    padded to `blocks`, and `programs` maps loops to the launch grid. Along the
    dimensions of `reversed` the first program of the grid has the last tile.

    ```mlir
    %d = schedule.spatial @d_kx_ky on @edge [kx: N = 2, ky: N = 2]
        ins(%c : tensor<8x32xf16, #compound.dims<M, N @OB>>)
        outs(tensor<8xf16, #compound.dims<M @GB>>) combine ["max"] {
    ^bb0(%c1 : tensor<8x8xf16, #compound.dims<M, N @OB>>):
      %d1 = compound.reduce max %c1 : ...
      schedule.yield %d1 : tensor<8xf16, #compound.dims<M @OB>>
    }
    %h = schedule.spatial @h on grid [g0: M = 8] blocks <M: 3 -> 4> ins(..) {..}
    ```
    """

    name = "schedule.spatial"
    # Named again, because fields of a subclass come before those of its base.
    ins = var_operand_def()
    with_args = var_operand_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    mesh = opt_prop_def(FlatSymbolRefAttr)
    body = region_def("single_block")
    merge = opt_region_def("single_block")
    blocks = opt_prop_def(BlocksAttr)
    programs = opt_prop_def(ProgramsAttr)
    reversed_ = opt_prop_def(ArrayAttr[StringAttr], prop_name="reversed")
    launch = opt_attr_def(LaunchAttr, attr_name="schedule.launch")
    traits = traits_def(RecursiveMemoryEffect(), IsolatedFromAbove(), SpatialAxes())
    custom_directives = (LoopList,)
    assembly_format = (
        "($node_name^)? `on` ($mesh^) : (`grid`)? custom<LoopList>($loops) "
        "(`blocks` $blocks^)? (`programs` $programs^)? (`reversed` $reversed^)? "
        "`ins` `(` $ins `:` type($ins) `)` "
        "(`with` `(` $with_args^ `:` type($with_args) `)`)? "
        "`outs` `(` type($outs) `)` (`combine` $combine^)? attr-dict-with-keyword "
        "$body (`merge` $merge^)?"
    )

    def __init__(
        self,
        mesh: str | None,
        loops: Sequence[LoopAttr],
        ins: Sequence[SSAValue],
        out_types: Sequence[Attribute],
        combiners: Sequence[Combiner],
        body: Region,
        merge: Region | None = None,
        launch: LaunchAttr | None = None,
        with_args: Sequence[SSAValue] = (),
    ):
        super().__init__(
            operands=[ins, with_args],
            result_types=[out_types],
            properties={
                "mesh": None if mesh is None else SymbolRefAttr(mesh),
                "loops": ArrayAttr(loops),
                "combine": combine_attr(combiners),
            },
            attributes={"schedule.launch": launch},
            regions=[body, [] if merge is None else [merge]],
        )

    @property
    def mesh_name(self) -> str | None:
        """The symbol of the mesh, None on a launch grid."""
        return None if self.mesh is None else self.mesh.string_value()

    @property
    def splitting(self) -> tuple[LoopAttr, ...]:
        """All loops on a grid; on a mesh those whose axis is not idle."""
        loops = super().splitting  # a factor above 1 is the extent of its axis
        if self.mesh_name is None or all(loop.factor > 1 for loop in loops):
            return loops
        extents = lookup_mesh(self, self.mesh_name).axis_extents
        return tuple(
            loop for loop in loops if loop.factor == extents.get(loop.axis or "")
        )

    @property
    def reversed_dims(self) -> frozenset[str]:
        """The dimensions whose last tiles are launched first."""
        names = self.reversed_.data if self.reversed_ is not None else ()
        return frozenset(name.data for name in names)

    @property
    def on_mesh(self) -> bool:
        return self.mesh is not None

    @property
    def is_grid(self) -> bool:
        return self.mesh is None

    def init_args(self) -> Sequence[SSAValue]:
        return ()

    def verify_axes(self) -> None:
        """Check that loops name distinct axes, at their extent or idle."""
        axes = [loop.axis for loop in self.loops]
        for loop in self.loops:
            if loop.axis is None:
                raise VerifyException(
                    f"'{self.name}' op loop over {loop.dim} has no axis"
                )
            if axes.count(loop.axis) > 1:
                raise VerifyException(f"'{self.name}' op names axis {loop.axis} twice")
        if self.mesh_name is None:
            return
        extents = lookup_mesh(self, self.mesh_name).axis_extents
        for loop in self.loops:
            if loop.axis not in extents:
                raise VerifyException(
                    f"'{self.name}' op mesh @{self.mesh_name} has no axis {loop.axis}; "
                    f"its axes are {', '.join(extents)}"
                )
            if loop.factor not in (1, extents[loop.axis]):
                raise VerifyException(
                    f"'{self.name}' op factor {loop.factor} on axis {loop.axis} is "
                    f"neither 1 nor its extent, {extents[loop.axis]}"
                )

    def verify_(self) -> None:
        verify_node(self)
        self._verify_merge()
        self._verify_reversed()
        self._verify_programs()
        _verify_tree(self)

    def _verify_reversed(self) -> None:
        """Check that dimensions in reverse order are those of loops on a grid."""
        if self.on_mesh and self.reversed_ is not None:
            raise VerifyException(
                f"'{self.name}' op on a mesh has no order of programs: these are of a "
                "launch grid"
            )
        dims = {loop.dim for loop in self.loops}
        for dim in sorted(self.reversed_dims - dims):
            raise VerifyException(
                f"'{self.name}' op reverses {dim}, and its loops are over "
                f"{', '.join(sorted(dims)) or 'nothing'}"
            )

    def _verify_programs(self) -> None:
        """Check that blocks and programs are of a launch grid, and of all loops."""
        if self.on_mesh and (self.blocks or self.programs):
            raise VerifyException(
                f"'{self.name}' op on a mesh has no blocks and programs: these are of "
                "a launch grid"
            )
        if self.programs is None:
            return
        programs, blocks = self.programs, self.blocks or BlocksAttr({})
        if len(programs.counts) != len(self.loops):
            raise VerifyException(
                f"'{self.name}' op has {len(self.loops)} loops, and programs for "
                f"{len(programs.counts)}"
            )
        cuts = self.cuts()
        if programs.swizzle > 1 and [c.factor > 1 for c in cuts].count(True) < 2:
            raise VerifyException(
                f"'{self.name}' op has a swizzle, which needs two loops of several "
                "tiles"
            )
        rows = zip(cuts, programs.counts, programs.slices, strict=True)
        for cut, count, extent in rows:
            block = blocks.size(cut.dim, cut.tile)
            fits = count <= cut.factor and count * extent >= cut.extent
            if not fits or extent not in (cut.tile, block):
                raise VerifyException(
                    f"'{self.name}' op has {count} programs of {extent} elements for "
                    f"{cut.factor} tiles of {cut.dim} = {cut.tile} in blocks of {block}"
                )

    def _verify_merge(self) -> None:
        """Check that `merge` takes two sets of `fold` results and gives one."""
        folds = [
            value
            for value, combiner in zip(self.yielded, self.combiners, strict=True)
            if combiner is Combiner.FOLD
        ]
        if bool(folds) != (self.merge is not None):
            raise VerifyException(
                f"'{self.name}' op has a merge region if, and only if, it has results "
                "combined by fold"
            )
        if self.merge is None:
            return
        if len({frozenset(self.factors.keys() - names_of(v)) for v in folds}) > 1:
            raise VerifyException(
                f"'{self.name}' op results combined by fold lack different looped "
                "dimensions; let all lack the same"
            )
        types = [value.type for value in folds]
        block, last = self.merge.block, self.merge.block.last_op
        if [arg.type for arg in block.args] != types * 2:
            raise VerifyException(
                f"'{self.name}' op region merge takes the fold results of two instances"
            )
        if not isinstance(last, MergeYieldOp) or [v.type for v in last.values] != types:
            raise VerifyException(
                f"'{self.name}' op region merge ends in a compound.yield of the fold "
                "results of one instance"
            )


Schedule = Dialect(
    "schedule",
    [CopyOp, SpatialOp, TemporalOp, YieldOp],
    [LoopAttr, BindingAttr, BlocksAttr, LaunchAttr, ProgramsAttr],
)
