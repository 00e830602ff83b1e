"""
The base class of temporal and spatial nodes: loops, tiles, combiners, and checks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
    i32,
)
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    opt_attr_def,
    opt_prop_def,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import (
    element_type_of,
    extents_of,
    level_of,
    merged_extents,
)
from comet.dialects.schedule.attributes import BIND, BindingAttr, Combiner, LoopAttr
from comet.dialects.schedule.slices import Cut, cuts_along, is_tile, with_tile


class NodeOp(IRDLOperation, ABC):
    """
    A node of the tile tree: loops, operands that are sliced, results that are combined.

    Operands that are not sliced, such as flags, are operands `with`. The block
    arguments of the body are the tiles of `ins`, the iter_args, then the operands
    `with`. Plans address a node by its name.
    """

    name_attr = opt_prop_def(SymbolNameConstraint(), prop_name="node_name")
    loops = prop_def(ArrayAttr[LoopAttr])
    ins = var_operand_def()
    with_args = var_operand_def()
    outs = var_result_def()
    combine = opt_prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    bind = opt_attr_def(BindingAttr, attr_name=BIND)

    @property
    def node_name(self) -> str | None:
        """The name that a plan addresses the node by, None if it has none."""
        return None if self.name_attr is None else self.name_attr.data

    @property
    def factors(self) -> dict[str, int]:
        """The number of tiles of each looped dimension, outermost loop first."""
        factors: dict[str, int] = {}
        for loop in self.loops:
            factors[loop.dim] = factors.get(loop.dim, 1) * loop.factor
        return factors

    @property
    def trip_count(self) -> int:
        """The product of the factors: iterations, or instances of a spatial node."""
        return prod(loop.factor for loop in self.loops)

    @property
    def splitting(self) -> tuple[LoopAttr, ...]:
        """The loops that split a dimension, also those whose factor is still 1."""
        return tuple(self.loops)

    @property
    def outermost(self) -> NodeOp:
        """The outermost node around this one, or this one."""
        above = self.parent_op()
        return above.outermost if isinstance(above, NodeOp) else self

    @property
    def is_grid(self) -> bool:
        """Whether it is the grid of a kernel."""
        return False

    @property
    def in_kernel(self) -> bool:
        """Whether it is the grid of a kernel, or inside one."""
        return self.outermost.is_grid

    @property
    def on_mesh(self) -> bool:
        """Whether its loops run over the axes of a mesh."""
        return False

    def last_cut(self, dim: str, extent: int) -> Cut:
        """Return the last cut of `dim` (`extent` elements), which gives the tiles."""
        return cuts_along(self.loops.data, dim, extent, self.on_mesh)[-1]

    def cuts(self) -> tuple[Cut, ...]:
        """Return how the node cuts dimensions, in the order of its loops."""
        extents = self.extents
        tiles = merged_extents((tile for _, tile in self.sliced), self.name)

        def along(dim: str) -> tuple[Cut, ...]:
            cuts = cuts_along(self.loops.data, dim, extents[dim], self.on_mesh)
            return with_tile(cuts, tiles[dim])

        remaining = {dim: iter(along(dim)) for dim in self.factors}
        cuts = (next(remaining[loop.dim], None) for loop in self.loops)
        return tuple(cut for cut in cuts if cut is not None)

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        """One combiner for each result."""
        if self.combine is None:
            return (Combiner.NONE,) * len(self.outs)
        return tuple(Combiner(kind.data) for kind in self.combine)

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The tiles that the body yields, one for each result."""
        terminator = self.body.block.last_op
        return () if terminator is None else tuple(terminator.operands)

    @property
    def tiles(self) -> tuple[SSAValue, ...]:
        """The block arguments of the tiles of `ins`."""
        return tuple(self.body.block.args[: len(self.ins)])

    @property
    def region_iter_args(self) -> tuple[BlockArgument, ...]:
        """The block arguments of the iter_args."""
        first = len(self.ins)
        return tuple(self.body.block.args[first : first + len(self.init_args())])

    @property
    def sliced(self) -> tuple[tuple[SSAValue, SSAValue], ...]:
        """The operands that the loops slice, each with its tile in the body."""
        count = len(self.operands) - len(self.with_args)
        tiles = self.body.block.args[:count]
        return tuple(zip(self.operands[:count], tiles, strict=True))

    @property
    def extents(self) -> dict[str, int]:
        """
        The extents of the operands that the loops slice, by dimension.

        Raises VerifyException if two of them disagree.
        """
        count = len(self.operands) - len(self.with_args)
        return merged_extents(self.operands[:count], self.name)

    @property
    def region_with_args(self) -> tuple[BlockArgument, ...]:
        """The block arguments of the operands `with`."""
        return tuple(self.body.block.args[len(self.operands) - len(self.with_args) :])

    def set_operands(
        self, ins: Sequence[SSAValue], with_args: Sequence[SSAValue]
    ) -> None:
        """Replace the operands; the caller updates the block arguments."""
        old = self.properties["operandSegmentSizes"]
        assert isinstance(old, DenseArrayBase)
        _, *others, _ = old.iter_values()
        sizes = [len(ins), *map(int, others), len(with_args)]
        self.operands = (*ins, *self.init_args(), *with_args)
        self.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)

    def drop_operand(self, index: int) -> None:
        """Remove one of the operands `ins`, whose tile has no uses, and its tile."""
        ins = (*self.ins[:index], *self.ins[index + 1 :])
        self.set_operands(ins, self.with_args)
        block = self.body.block
        block.erase_arg(block.args[index])

    def add_with_arg(self, value: SSAValue) -> BlockArgument:
        """Add `value` to the operands `with`; return its block argument."""
        for outer, inner in zip(self.with_args, self.region_with_args, strict=True):
            if outer is value:
                return inner
        block = self.body.block
        inner = block.insert_arg(value.type, len(block.args))
        inner.name_hint = value.name_hint
        self.set_operands(self.ins, (*self.with_args, value))
        return inner

    def tile_fits(self, dim: str, extent: int, tile: int) -> bool:
        """Say whether `tile` is the tile of `extent` in the loops of `dim`."""
        return is_tile(self.last_cut(dim, extent), tile, self.on_mesh)

    @abstractmethod
    def init_args(self) -> Sequence[SSAValue]:
        """
        Return the init args, from which the iter_args start; empty in a spatial node.
        """


def nodes_around(op: Operation) -> Iterator[NodeOp]:
    """Yield the nodes around an op, the innermost first."""
    above = op.parent_op()
    while isinstance(above, NodeOp):
        yield above
        above = above.parent_op()


def group_around(op: Operation) -> NodeOp | None:
    """Return the node of the group of programs around an op, None if there is none."""
    return next((node for node in nodes_around(op) if node.on_mesh), None)


def repeats_programs(op: NodeOp) -> bool:
    """
    Whether the loops of a node run over the tiles of a group of programs.

    Such a node is directly in the node of a group, in a kernel: each program computes
    several tiles of the grid, one after another.
    """
    above = op.parent_op()
    inside = isinstance(above, NodeOp) and above.on_mesh and above.in_kernel
    return inside and set(op.factors) <= set(op.outermost.factors) != set()


def outside(value: SSAValue) -> SSAValue:
    """Return the value outside all nodes that `value` is a tile of, or `value`."""
    while isinstance(value, BlockArgument) and isinstance(
        node := value.block.parent_op(), NodeOp
    ):
        value = node.operands[value.index]
    return value


def combine_attr(combiners: Sequence[Combiner]) -> ArrayAttr[StringAttr] | None:
    """Return the `combine` property of a node, None when nothing is combined."""
    if all(combiner is Combiner.NONE for combiner in combiners):
        return None
    return ArrayAttr(StringAttr(str(combiner)) for combiner in combiners)


def verify_node(op: NodeOp) -> None:
    """Check loops, block arguments, combiners and bindings of a node."""
    _verify_counts(op)
    extents = op.extents
    for dim in op.factors:
        if dim not in extents:
            raise VerifyException(
                f"'{op.name}' op loops over {dim}, which no operand has"
            )
    for outer, inner in op.sliced:
        _verify_tile(op, outer, inner, extents)
    for outer, inner in zip(op.outs, op.yielded, strict=True):
        _verify_tile(op, outer, inner, extents)
    for outer, combiner in zip(op.outs, op.combiners, strict=True):
        _verify_combiner(op, outer, combiner)
    _verify_iter_args(op)
    _verify_with_args(op)


def verify_names(root: NodeOp) -> None:
    """
    Check that the names of the nodes in a block are unique; runs at its first tree.

    Directly nested nodes may have one name: they are parts of one node.
    """
    before = root.prev_op
    while before is not None and not isinstance(before, NodeOp):
        before = before.prev_op
    if before is not None:
        return
    scope = root if root.parent is None else root.parent
    seen: set[str] = set()
    for op in scope.walk():
        if not isinstance(op, NodeOp) or (name := op.node_name) is None:
            continue
        above = op.parent_op()
        if isinstance(above, NodeOp) and above.node_name == name:
            continue
        if name in seen:
            raise VerifyException(
                f"'{op.name}' op is named @{name}, as another node is: a plan could "
                "not tell them apart; give it another name"
            )
        seen.add(name)


def _verify_counts(op: NodeOp) -> None:
    expected = len(op.operands)
    if len(op.body.block.args) != expected:
        raise VerifyException(
            f"'{op.name}' op has {expected} operands and "
            f"{len(op.body.block.args)} block arguments"
        )
    if len(op.yielded) != len(op.outs):
        raise VerifyException(
            f"'{op.name}' op has {len(op.outs)} results and yields {len(op.yielded)}"
        )
    if op.combine is not None:
        _verify_combine_list(op, [kind.data for kind in op.combine])


def _verify_combine_list(op: NodeOp, kinds: Sequence[str]) -> None:
    known = [str(kind) for kind in Combiner]
    if len(kinds) != len(op.outs):
        raise VerifyException(
            f"'{op.name}' op has {len(op.outs)} results and {len(kinds)} combiners"
        )
    for kind in kinds:
        if kind not in known:
            raise VerifyException(
                f"'{op.name}' op has no combiner '{kind}'; there are {', '.join(known)}"
            )


def _verify_tile(
    op: NodeOp, outer: SSAValue, inner: SSAValue, extents: dict[str, int]
) -> None:
    """Check that `inner` is a tile of `outer`; levels may differ."""
    full, tile = extents_of(outer), extents_of(inner)
    if tuple(full) != tuple(tile) or element_type_of(outer) != element_type_of(inner):
        raise VerifyException(
            f"'{op.name}' op {inner.type} is not a tile of {outer.type}: names and "
            "element type stay"
        )
    if level_of(outer) is None or level_of(inner) is None:
        raise VerifyException(
            f"'{op.name}' op values of a schedule live at a memory level; "
            f"{outer.type} over {inner.type} lacks one"
        )
    for dim, extent in full.items():
        if dim in extents and extents[dim] != extent:
            raise VerifyException(
                f"'{op.name}' op result has {dim} = {extent}, the operands have "
                f"{extents[dim]}"
            )
        if not op.tile_fits(dim, extent, tile[dim]):
            raise VerifyException(
                f"'{op.name}' op factor {op.factors.get(dim, 1)} of {dim} = {extent} "
                f"does not give tiles of {tile[dim]}"
            )


def _verify_combiner(op: NodeOp, result: SSAValue, combiner: Combiner) -> None:
    dims = dict.fromkeys(loop.dim for loop in op.splitting)
    lost = [dim for dim in dims if dim not in extents_of(result)]
    if lost and combiner is Combiner.NONE:
        raise VerifyException(
            f"'{op.name}' op result {result.type} does not have the looped "
            f"dimension {lost[0]} "
            "and names no combiner (add, max, fold, same or root)"
        )
    if not lost and combiner is not Combiner.NONE:
        raise VerifyException(
            f"'{op.name}' op result {result.type} has every looped dimension; there is "
            f"nothing to combine by {combiner}"
        )


def _verify_iter_args(op: NodeOp) -> None:
    """Check that iter_args and `fold` results of a temporal node pair up."""
    iter_args = op.init_args()
    folds = [
        value
        for value, combiner in zip(op.yielded, op.combiners, strict=True)
        if combiner is Combiner.FOLD
    ]
    if not iter_args:
        return
    if [value.type for value in folds] != [arg.type for arg in op.region_iter_args]:
        raise VerifyException(
            f"'{op.name}' op has one iter_arg for each `fold` result, of its type"
        )


def _verify_with_args(op: NodeOp) -> None:
    """Check that operands `with` are no tensors, and keep their type in the body."""
    for outer, inner in zip(op.with_args, op.region_with_args, strict=True):
        if outer.type != inner.type:
            raise VerifyException(
                f"'{op.name}' op operand `with` of type {outer.type} has the type "
                f"{inner.type} in the body"
            )
        if isinstance(outer.type, TensorType):
            raise VerifyException(
                f"'{op.name}' op operand `with` is a tensor, {inner.type}; make it an "
                "operand `ins`, which is sliced"
            )
