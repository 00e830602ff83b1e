"""
Fusion on accelerators: which ops share a nest, as a plan, and its rewrite.

The nest alternates temporal and spatial nodes: root, clusters, shared buffer, cores,
one op. A strategy says how far intermediates travel: `none` gives each op a nest of its
own, so that every intermediate goes through the root; `apart` gives each contraction
one, and one to all that stands between two of them; `partial` gives each contraction
one, with what follows it, which reads its result from the shared buffer; `full` puts
all ops into one nest and keeps what it can in the cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.collective import CollectiveOp
from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    FillOp,
    FoldOp,
    IndexOp,
    RenameOp,
)
from comet.dialects.compound.dims import names_of
from comet.dialects.schedule.attributes import LoopAttr
from comet.passes.analysis.hardware_mesh import check_mesh
from comet.passes.analysis.memory_chain import MemoryChain, memory_chain
from comet.passes.schedule.fuse.accelerator.borders import (
    dissolved_collectives,
    follows_gather,
    has_place,
)
from comet.passes.schedule.fuse.accelerator.chain_levels import ChainLevels
from comet.passes.schedule.fuse.accelerator.flat_program import FlatProgram, flatten
from comet.passes.schedule.fuse.accelerator.folds import (
    Segment,
    Unit,
    check_carries,
    has_contraction,
    segments,
    with_carries,
    with_steps,
)
from comet.passes.schedule.fuse.accelerator.residents import resident_values
from comet.passes.schedule.fuse.rewrite import FusionPlan, rewrite
from comet.passes.schedule.tile_tree import (
    Aliases,
    Leaf,
    Spatial,
    Temporal,
    Tree,
    chunks_of,
)

Chunks: TypeAlias = Literal["shared", "root"]
"""The level that folds take their chunks from."""
Strategy: TypeAlias = Literal["none", "apart", "partial", "full"]


def fuse_function(
    func: FuncOp, system: SystemOp, strategy: Strategy, chunks: Chunks = "shared"
) -> None:
    """
    Turn the elementary ops of `func` into a tile tree on `system`, without factors.

    Raises PassFailedException for ops that no leaf can hold and for hardware that is
    no chain of root, clusters and cores.
    """
    rewrite(func, plan_fusion(func, system, strategy, chunks))


def plan_fusion(
    func: FuncOp, system: SystemOp, strategy: Strategy, chunks: Chunks = "shared"
) -> FusionPlan:
    """Return how the ops of `func` are nested under `strategy`; changes nothing."""
    _check_positions(func)
    _check_views(func)
    chain = memory_chain(system)
    program = with_steps(flatten(func, system.system_name))
    check_mesh(lookup_mesh(func, program.mesh), system)
    for op in program.ops:
        _check_placed(op)
    dissolved = dissolved_collectives(program, chain)
    trees = tuple(
        _tree(group, program, chain, strategy, chunks, dissolved)
        for group in _root_groups(program, strategy)
    )
    aliases = dissolved | chunks_of(program.ops)
    partial = frozenset(dissolved.values())
    spills = strategy == "partial"
    kept = set(
        resident_values(trees, chain.out, aliases, program, partial, spills=spills)
    )
    resident = frozenset(with_carries(kept, program.ops))
    if chunks == "root":
        check_carries(program, resident)
    levels = ChainLevels(chain, resident, aliases)
    return FusionPlan(
        func.body.block, trees, program.outputs, levels, aliases, program.inputs
    )


def _check_positions(func: FuncOp) -> None:
    if any(isinstance(op, IndexOp) for op in func.walk()):
        raise PassFailedException(
            f"fuse: @{func.sym_name.data} has 'compound.index', and accelerators do "
            "not tell where an element stands; causal masks and scans need a GPU"
        )


def _check_views(func: FuncOp) -> None:
    for op in func.walk():
        if not isinstance(op, RenameOp) or follows_gather(op):
            continue
        name = op.result.name_hint or "a value"
        before, after = (", ".join(names_of(v)) for v in (op.input, op.result))
        raise PassFailedException(
            f"fuse: %{name} sees the dimensions {before} as {after}, and a tensor of "
            "the COMET files has one name for each; give the function an argument with "
            "the names of the view, or compile for a GPU"
        )


def _check_placed(op: Operation) -> None:
    if isinstance(op, CollectiveOp) and op.from_level is None:
        raise PassFailedException(
            f"fuse: '{op.name}' is at no level; run place-collectives first"
        )


def _units(ops: Sequence[Operation]) -> Iterator[Unit]:
    """
    Group each op with the casts of its result, and a gather with its renaming.

    Constants are made where used.
    """
    unit: list[Operation] = []
    for op in ops:
        if isinstance(op, FillOp):
            continue
        made = unit and not isinstance(unit[-1], FoldOp)
        joins = isinstance(op, CastOp) or follows_gather(op)
        follows = joins and made and op.operands[0] in unit[-1].results
        if unit and not follows:
            yield tuple(unit)
            unit = []
        unit.append(op)
    if unit:
        yield tuple(unit)


def _exchanged_early(units: Iterator[Unit]) -> list[Unit]:
    """Put every collective right behind the op whose result it takes."""
    ordered: list[Unit] = []
    for unit in units:
        place = len(ordered)
        if isinstance(unit[0], CollectiveOp):
            taken = unit[0].operands[0].owner
            makers = [index for index, made in enumerate(ordered) if taken in made]
            place = makers[-1] + 1 if makers else place
        ordered.insert(place, unit)
    return ordered


def _root_groups(program: FlatProgram, strategy: Strategy) -> list[list[Unit]]:
    """
    Part the ops at the root: `none` gives every op a nest of its own, `apart` every
    contraction, `partial` every contraction with what follows it.

    Collectives, and what an instance does between two of them, stay with their operand.
    """
    units = _exchanged_early(_units(program.ops))
    if strategy == "full":
        return [units] if units else []
    groups: list[list[Unit]] = []
    home: dict[SSAValue, list[Unit]] = {}
    for unit in units:
        group: list[Unit] = []
        if isinstance(unit[0], CollectiveOp) or _at_root(unit, program):
            made = [home[value] for value in unit[0].operands if value in home]
            group = (made or groups or [group])[-1]
        elif strategy != "none" and groups and not has_contraction(unit[0]):
            ended = strategy == "apart" and has_contraction(groups[-1][0][0])
            group = [] if ended else groups[-1]
        if not group:
            groups.append(group)
        group.append(unit)
        home.update((result, group) for op in unit for result in op.results)
    return groups


def _at_root(unit: Unit, program: FlatProgram) -> bool:
    """Return whether `unit` runs on what a gather has left to one instance only."""
    return any(program.states[value].rooted for value in unit[0].operands)


def _is_contraction(unit: Unit) -> bool:
    return isinstance(unit[0], ContractOp)


def _tree(
    units: Sequence[Unit],
    program: FlatProgram,
    chain: MemoryChain,
    strategy: Strategy,
    chunks: Chunks,
    aliases: Aliases,
) -> Temporal:
    """Return the nest of `units`; its clusters turn folds over, or it does itself."""
    groups: list[tuple[Segment, tuple[Tree, ...]]] = []
    for segment in segments(units):
        items = list(_items(segment, program, chain, aliases))
        # Row statistics are looped over the row where nothing is fused, so that their
        # collectives wait for the whole loop.
        tail = len(items)
        while strategy == "none" and tail > 1 and isinstance(items[tail - 1], Leaf):
            tail -= 1
        inner = segment.fold if chunks == "shared" else None
        node = _fold_loop(chain.shared, tuple(items[:tail]), inner)
        groups.append((segment, (node, *items[tail:])))
    if chunks == "shared":
        inside = tuple(tree for _, trees in groups for tree in trees)
        return Temporal(chain.root, (_cluster(units, inside, program, chain),))
    children: list[Tree] = []
    for segment, trees in groups:
        cluster = _cluster(_work(segment), trees, program, chain)
        fold = segment.fold
        children.append(
            cluster if fold is None else _fold_loop(chain.root, (cluster,), fold)
        )
    return Temporal(chain.root, tuple(children))


def _fold_loop(place: str, children: tuple[Tree, ...], fold: FoldOp | None) -> Temporal:
    """Return the node of `children`, the loop of `fold` if there is one."""
    if fold is None:
        return Temporal(place, children)
    return Temporal(place, children, fold.dim.data, (fold,), outs=tuple(fold.outs))


def _cluster(
    units: Sequence[Unit],
    inside: tuple[Tree, ...],
    program: FlatProgram,
    chain: MemoryChain,
) -> Spatial:
    """Return the node that spreads `units`, nested as `inside`, over the clusters."""
    ops = [op for unit in units for op in unit]
    rows = _rows(ops, chain.cluster_axes, program)
    return Spatial(chain.shared, program.mesh, rows, inside)


def _work(segment: Segment) -> tuple[Unit, ...]:
    """Return the units of a segment, those of one step of its fold among them."""
    if segment.fold is None:
        return segment.units
    return (*segment.units, *_units(list(segment.fold.step.block.ops)[:-1]))


def _items(
    segment: Segment,
    program: FlatProgram,
    chain: MemoryChain,
    aliases: Aliases,
) -> Iterator[Tree]:
    """
    Yield the nodes over the cores of one segment, and collectives between them.

    In the step of a fold they are as few as can be: a node without a transfer, which
    only turns carries over, is none that the COMET files could count.
    """
    closed = segment.fold is None
    return _stages(_work(segment), program, chain, aliases, closed=closed)


def _stages(
    units: Sequence[Unit],
    program: FlatProgram,
    chain: MemoryChain,
    aliases: Aliases,
    *,
    closed: bool = True,
) -> Iterator[Tree]:
    """
    Part `units` into nodes over the cores, and collectives between them.

    A node ends before a contraction, after one and the collective that completes it if
    `closed`, before a collective of the shared level, and where an op needs what only
    the node's end completes.
    """
    stage: list[Unit] = []

    def finished() -> Iterator[Tree]:
        if stage:
            yield _stage(stage, program, chain)
            stage.clear()

    for unit in units:
        if unit[0].results and unit[0].results[0] in aliases:
            continue
        made = {result for u in stage for op in u for result in op.results}
        waits = any(aliases.get(v) in made for op in unit for v in op.operands)
        at_shared = _is_shared_collective(unit, chain)
        after = closed and stage and _is_contraction(stage[0])
        contraction = _is_contraction(unit) or after
        exchanges = isinstance(unit[0], CollectiveOp) and unit[0].operands[0] in made
        if waits or at_shared or (contraction and not exchanges):
            yield from finished()
        if at_shared:
            yield Leaf(unit)
        else:
            stage.append(unit)
    yield from finished()


def _is_shared_collective(unit: Unit, chain: MemoryChain) -> bool:
    op = unit[0]
    return isinstance(op, CollectiveOp) and not set(op.axis_names) <= set(
        chain.core_axes
    )


def _stage(units: Sequence[Unit], program: FlatProgram, chain: MemoryChain) -> Spatial:
    """Return the node that spreads `units` over the cores of a cluster."""
    leaves = [
        Leaf(unit)
        if isinstance(unit[0], CollectiveOp)
        else Temporal(chain.out, (Leaf(unit),))
        for unit in units
    ]
    ops = [op for unit in units for op in unit]
    rows = _rows(ops, chain.core_axes, program)
    return Spatial(chain.out, program.mesh, rows, tuple(leaves))


def _rows(
    ops: Sequence[Operation], axes: Sequence[str], program: FlatProgram
) -> tuple[LoopAttr, ...]:
    """
    Return one row per axis: the dimension it splits, or factor 1 where it idles.

    Raises PassFailedException if an axis splits two dimensions, or splits one that is
    whole elsewhere, and if no value has a dimension: the rows of a node name one.
    """
    values = [
        value for op in ops for value in (*op.operands, *op.results) if has_place(value)
    ]
    idle = next((names_of(v)[0] for v in values if names_of(v)), None)
    if idle is None:
        made = next(result for op in reversed(ops) for result in op.results)
        raise PassFailedException(
            f"fuse: %{made.name_hint or 'a number'} is computed from numbers alone, "
            "and the rows of an accelerator's nodes name a dimension; compute it on a "
            "tensor that has one, of extent 1 if need be"
        )
    rows: list[LoopAttr] = []
    for axis in axes:
        dim = _split_dim(axis, values, program)
        size = program.axis_extents.get(axis, 1)
        own = LoopAttr(idle, 1, axis) if dim is None else LoopAttr(dim, size, axis)
        rows.append(own)
    return tuple(rows)


def _split_dim(
    axis: str, values: Sequence[SSAValue], program: FlatProgram
) -> str | None:
    """Return the dimension that `axis` splits in all `values` that have it."""
    dims = {program.states[v].sharded.get(axis) for v in values} - {None}
    whole = {
        dim
        for value in values
        for dim in names_of(value)
        if axis not in program.states[value].sharded
    }
    if len(dims) > 1 or dims & whole:
        split = " and ".join(sorted(map(str, dims)))
        raise PassFailedException(
            f"fuse: axis '{axis}' splits {split} in some of the ops that share a nest; "
            "distribute one dimension per axis, in all ops that have it"
        )
    return next(iter(dims), None)
