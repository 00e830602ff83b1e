"""
The tile tree of one GPU kernel, and the level of its values.

Kernel inputs are in device memory. They enter the nodes as views and are loaded at the
border of the innermost node that splits them: into shared memory for a contraction,
into registers for anything else. Results of ops stay in registers; tiles that a loop
concatenates are stored to device memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial

from xdsl.ir import Block, Operation, SSAValue

from comet.dialects.arch.gpu_levels import GpuLevels
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import ContractOp, Elementwise, FoldOp
from comet.dialects.compound.dims import names_of
from comet.passes.analysis.op_groups import defining_ops
from comet.passes.analysis.reduction_loops import (
    ReductionLoop,
    ReductionLoopPlan,
    plan_reduction_loops,
)
from comet.passes.schedule.tile_tree import (
    Leaf,
    Levels,
    Node,
    Spatial,
    Temporal,
    Tree,
    loop_of,
)

REGISTERS = "registers"
"""The level of values in the trees of kernels."""


def kernel_tree(
    ops: tuple[Operation, ...],
    outs: tuple[SSAValue, ...],
    grid: Sequence[str],
    loops: Sequence[str],
    spilled: AbstractSet[SSAValue] = frozenset(),
) -> Spatial:
    """
    Return the tree of a kernel that computes `outs` by `ops`, without constants.

    Programs split the dimensions of `grid`; each program loops over `loops`, outermost
    first. `spilled` are tiles that one reduction loop stores to device memory for a
    later one.
    """
    return grid_node(grid, tuple(loop_trees(ops, loops, set(outs), spilled)), ops, outs)


def grid_node(
    grid: Sequence[str],
    children: tuple[Tree, ...],
    ops: tuple[Operation, ...],
    outs: tuple[SSAValue, ...],
) -> Spatial:
    """Return the node of a launch grid, with a loop `g0`, `g1` .. per dimension."""
    loops = tuple(loop_of(dim, 1, f"g{index}") for index, dim in enumerate(grid))
    return Spatial(REGISTERS, None, loops, children, ops, outs)


def loop_trees(
    ops: tuple[Operation, ...],
    loops: Sequence[str],
    wanted: set[SSAValue],
    spilled: AbstractSet[SSAValue] = frozenset(),
    *,
    inside: bool = False,
) -> Iterator[Tree]:
    """
    Yield the trees of a program that compute `wanted` by `ops`.

    They have `loops`, outermost first. Elementwise ops are as late as possible, see
    `_segments`, unless the trees are `inside` of a loop or between loops.
    """
    if not loops:
        yield Leaf(ops)
        return
    outer, *inner = loops
    plan = plan_reduction_loops(ops, outer, wanted, spilled)
    plan = _with_tiles_inside(ops, plan, set(inner), wanted)
    if not inside:
        plan = replace(plan, between=tuple(_segments(ops, plan)))
    yield from _trees_of(ops, plan, inner, wanted, spilled)


def _trees_of(
    ops: tuple[Operation, ...],
    plan: ReductionLoopPlan,
    loops: Sequence[str],
    wanted: set[SSAValue],
    spilled: AbstractSet[SSAValue],
) -> Iterator[Tree]:
    """Yield the reduction loops of a plan and the trees between; `loops` are inside."""
    trees = partial(loop_trees, loops=loops, spilled=spilled, inside=True)
    for index, segment in enumerate(plan.between):
        apart = set(segment)
        used = wanted.union(*(op.operands for op in ops if op not in apart))
        yield from trees(segment, wanted=used)
        if index < len(plan.reduction_loops):
            loop = plan.reduction_loops[index]
            children = trees(loop.ops, wanted=set(loop.outputs))
            folds = (op for op in loop.ops if isinstance(op, FoldOp))
            own = tuple(fold for fold in folds if fold.dim.data == plan.dim)
            yield Temporal(
                REGISTERS, tuple(children), plan.dim, own, loop.ops, loop.outputs
            )


def _with_tiles_inside(
    ops: Sequence[Operation],
    plan: ReductionLoopPlan,
    inner: set[str],
    wanted: AbstractSet[SSAValue],
) -> ReductionLoopPlan:
    """
    Move elementwise ops with a dimension of `inner` into the loops that read them.

    Before these loops, they would need another loop, which stores their tiles to device
    memory. Ops whose results are stored anyway stay, with those that read them.
    """
    before = [op for segment in plan.between for op in segment]
    stored, tiled = set(wanted), set[Operation]()
    for op in before:
        if not any(inner.intersection(names_of(result)) for result in op.results):
            continue
        cheap = isinstance(op, Elementwise) and op.result not in stored
        if cheap and stored.isdisjoint(op.operands):
            tiled.add(op)
        else:
            stored.update(op.results)
    loops: list[ReductionLoop] = []
    for loop in plan.reduction_loops:
        read = defining_ops((v for op in loop.ops for v in op.operands), tiled)
        inside = read.union(loop.ops)
        loops.append(replace(loop, ops=tuple(op for op in ops if op in inside)))
    kept = {op for op in before if op not in tiled}
    used = {value for op in kept for value in op.operands} | wanted
    kept |= defining_ops(used, tiled)
    between = tuple(tuple(op for op in part if op in kept) for part in plan.between)
    return replace(plan, reduction_loops=tuple(loops), between=between)


def _segments(
    ops: Sequence[Operation], plan: ReductionLoopPlan
) -> Iterator[tuple[Operation, ...]]:
    """
    Yield the ops before each reduction loop, then those after the last loop.

    An elementwise op that reads no loop's result comes right before the first loop that
    reads its own: registers do not hold it during earlier loops. One that nothing
    reads comes where what it is computed from is needed, too.
    """
    needed: dict[SSAValue, int] = {}
    for index, loop in enumerate(plan.reduction_loops):
        for value in (value for op in loop.ops for value in op.operands):
            needed.setdefault(value, index)
    last = len(plan.reduction_loops)
    first, *others = plan.between
    place = {op: index for index, ops in enumerate(others, 1) for op in ops}
    for op, index in place.items():
        for value in op.operands:
            needed[value] = min(index, needed.get(value, last))
    beside = _needed_beside(first, needed)
    for op in reversed(first):
        used = [needed[result] for result in op.results if result in needed]
        place[op] = min(used, default=beside[op]) if op in beside else 0
        for value in op.operands:
            needed[value] = min(place[op], needed.get(value, last))
    for index in range(last + 1):
        yield tuple(op for op in ops if place.get(op) == index)


def _needed_beside(
    ops: Sequence[Operation], needed: Mapping[SSAValue, int]
) -> Mapping[Operation | Block, int]:
    """
    Return the last place at which the sources of elementwise ops are needed.

    `needed` are the places of values after `ops`.
    """
    found: dict[Operation | Block, int] = {}
    for op in ops:
        if isinstance(op, Elementwise):
            above = (found[v.owner] for v in op.operands if v.owner in found)
            own = (needed.get(value, 0) for value in op.operands)
            found[op] = max((*above, *own), default=0)
    return found


@dataclass(frozen=True)
class KernelLevels(Levels):
    """The levels of a kernel: registers inside, device memory between kernels."""

    gpu: GpuLevels

    def at(self, value: SSAValue, node: Node | None) -> str:
        received = node is not None and _is_received(value, node)
        return self.gpu.memory if node is None or received else self.gpu.registers

    def operand(self, value: SSAValue, op: Operation, node: Node | None) -> str:
        contracted = node is not None and _is_contracted(value, op)
        return self.gpu.shared if contracted else self.at(value, node)

    def entering(
        self, value: SSAValue, op: Operation, node: Node, loops: AbstractSet[str]
    ) -> str:
        later = loops & set(names_of(value))
        group = isinstance(node, Spatial) and node.mesh is not None
        return self.gpu.memory if later or group else self.operand(value, op, node)

    def stays(self, level: str) -> bool:
        return level != self.gpu.memory

    def leaving(self, value: SSAValue, tree: Node, node: Node | None) -> str:
        split = tree.loop in names_of(value) if isinstance(tree, Temporal) else False
        apart = isinstance(tree, Spatial) and tree.mesh is not None
        return self.gpu.memory if split or apart else self.at(value, node)


def _is_received(value: SSAValue, node: Node) -> bool:
    """Return whether `value` is the result of a collective in the body of `node`."""
    leaves = (child for child in node.children if isinstance(child, Leaf))
    return isinstance(value.owner, CollectiveOp) and any(
        value.owner in leaf.ops for leaf in leaves
    )


def _is_contracted(value: SSAValue, op: Operation) -> bool:
    """Return whether `op` reads `value` only as an operand of contractions."""
    if not isinstance(op, FoldOp):
        return isinstance(op, ContractOp)
    chunks = zip(op.ins, op.step.block.args, strict=False)
    uses = [use.operation for of, chunk in chunks if of is value for use in chunk.uses]
    return bool(uses) and all(isinstance(use, ContractOp) for use in uses)
