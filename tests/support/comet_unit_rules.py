"""The rules about leaves, compute units, bindings, collectives and capacities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import ceil, prod

from comet_files import Files, leaf_of, parent_tile, place
from comet_hardware import MESHES, UNITS, Level
from xdsl.ir import Operation

from comet.dialects.comet import BindingOp, CollectiveOp, OperationOp, TileOp
from comet.kinds import BindingKind, CollectiveKind, OperationKind

SIMD_KINDS = frozenset(OperationKind) - {OperationKind.GEMM, OperationKind.CONVOLUTION}
"""What the vector unit can price."""


def _check_leaf(files: Files) -> Iterator[str]:
    for tile in files.tiles:
        leaf = leaf_of(tile)
        if leaf is None or leaf.operation.data not in files.operations:
            continue
        tag = leaf.operation.data
        declared = {access.tensor for access in files.operations[tag].accesses}
        listed = Counter(entry.tensor for entry in tile.entries)
        if set(listed) != declared or max(listed.values()) > 1:
            yield f"the leaf of {tag} does not list exactly the tensors of {tag}"
        if {step.tensor for step in leaf.steps.data} != declared:
            yield f"TileSteps of {tag} do not list exactly the tensors of {tag}"
        yield from _check_primitive(files, leaf)


def _check_primitive(files: Files, leaf: OperationOp) -> Iterator[str]:
    tag = leaf.operation.data
    accesses = files.operations[tag].accesses
    relevant = {
        dim for access in accesses for axis in access.projection for dim in axis
    }
    primitive = dict(leaf.primitive.data)
    if not primitive:
        yield f"TilePrimitive of {tag} names no dimension, and the tool stops"
    if any(size > 1 for dim, size in primitive.items() if dim not in relevant):
        yield f"TilePrimitive of {tag} counts a dimension that {tag} lacks"
    for step in leaf.steps.data:
        for dim, size in step.sizes:
            if size % primitive.get(dim, 1):
                yield f"TilePrimitive of {tag} does not divide TileSteps along {dim}"


def _check_unit(files: Files) -> Iterator[str]:
    for tile in files.tiles:
        leaf = leaf_of(tile)
        if leaf is None:
            continue
        for name in {entry.child for entry in tile.entries}:
            unit = files.levels.get(name)
            if unit is None:
                continue
            if unit.kind not in UNITS:
                yield f"the tool has no model of the unit {unit.kind}"
            if not unit.attributes.get("computeOpC"):
                yield f"{unit.kind} has no computeOpC"
            if unit.kind == "VSIMD" and leaf.kind.data not in SIMD_KINDS:
                yield f"{unit.kind} cannot compute {leaf.kind.data}"
            if unit.kind == "SystolicArray":
                yield from _check_systolic(leaf, unit)


def _check_systolic(leaf: OperationOp, unit: Level) -> Iterator[str]:
    """The array takes out the extent that *equals* the streamed one, if it finds it."""
    tag = leaf.operation.data
    if leaf.compute is None or not leaf.compute.data.reduction:
        yield f"{tag} on {unit.kind} needs compute_attributes with a reduction"
        return
    dim, streamed = leaf.compute.data.reduction[-1]
    extents = list(reversed(leaf.primitive.data))
    sizes = [size for _, size in extents]
    if streamed not in sizes or dict(extents).get(dim) != streamed:
        yield f"the reduction factor {streamed} of {tag} is not its primitive {dim}"
        return
    wanted = [size for name, size in extents if name != dim]
    sizes.remove(streamed)
    shape = (
        unit.attributes.get("array_rows", 32) * unit.attributes.get("num_sa_rows", 1),
        unit.attributes.get("array_cols", 32) * unit.attributes.get("num_sa_cols", 1),
    )
    if _passes(sizes, shape) != _passes(wanted, shape):
        yield f"equal extents in TilePrimitive of {tag} make the array swap its axes"


def _passes(sizes: list[int], shape: tuple[int, int]) -> int:
    return prod(ceil(size / edge) for size, edge in zip(sizes, shape, strict=False))


def _check_binding(files: Files) -> Iterator[str]:
    for tile in files.tiles:
        kinds = _bindings(tile)
        if len(tile.children) > 1 and not kinds:
            yield f"the {place(tile)} has unbound children: all but one are lost"
        if {BindingKind.PARALLEL, BindingKind.SHARING} & set(kinds):
            yield f"the {place(tile)} binds in parallel: nodes are lost, or no end"


def _check_stages(files: Files) -> Iterator[str]:
    """What stages of a pipeline need, whichever of them is the longest."""
    for tile in files.tiles:
        kinds = _bindings(tile)
        if not tile.is_temporal:
            yield from _check_stage_levels(tile, kinds)
        if not tile.is_temporal or not kinds or BindingKind.SEQUENTIAL in kinds:
            continue
        nodes = [node for node in tile.children for _ in range(_stages(node))]
        wanted = max(_iterations(tile).values())
        for index, node in enumerate(nodes):
            if not isinstance(node, TileOp):
                continue
            needed = wanted if index else min(wanted, len(nodes) - 1)
            if max(_iterations(node).values()) < needed:
                yield f"the {place(node)} makes too few iterations for its pipeline"


def _check_stage_levels(tile: TileOp, kinds: list[BindingKind]) -> Iterator[str]:
    """A stage of its own, for which no tensor moves, needs one moved to its levels."""
    nodes = list(tile.children)
    reached = {entry.child for entry in tile.entries}
    moved = {entry.tag for entry in tile.entries}
    for index, node in enumerate(nodes):
        near = kinds[max(index - 1, 0) : index + 1]
        if BindingKind.SEQUENTIAL in near:
            continue
        if isinstance(node, TileOp):
            tags = {entry.tag for entry in node.entries}
            levels = {entry.target for entry in node.entries}
        elif isinstance(node, CollectiveOp):
            tags, levels = {node.tag.data}, {node.target.data}
        else:
            continue
        if not tags & moved and not levels & reached:
            yield f"the {place(tile)} reaches no level of its stage {index}"


def _stages(node: Operation) -> int:
    """How many stages a child adds to a pipeline."""
    if not isinstance(node, TileOp) or node.is_temporal:
        return 1
    kinds = _bindings(node)
    joined = sum(kind is BindingKind.SEQUENTIAL for kind in kinds)
    return len(kinds) + 1 - joined


def _bindings(tile: TileOp) -> list[BindingKind]:
    return [op.kind.data for op in tile.body.block.ops if isinstance(op, BindingOp)]


def _iterations(tile: TileOp) -> dict[tuple[str, str], int]:
    """The iterations of every entry; those of a spatial node are its parent's."""
    if tile.is_temporal:
        return {
            (e.tensor, e.tag): prod(n for row in e.factors for _, n in row)
            for e in tile.entries
        }
    above = parent_tile(tile)
    counts = _iterations(above) if above is not None else {}
    return {(e.tensor, e.tag): counts.get((e.tensor, e.tag), 1) for e in tile.entries}


def _check_collective(files: Files) -> Iterator[str]:
    outputs = {op.out.data for op in files.operations.values()}
    tags = Counter(op.tag.data for op in files.collectives)
    for op in files.collectives:
        tag = op.tag.data
        if tags[tag] > 1 or tag in files.operations:
            yield f"the tag of the collective {tag} is not its own"
        if op.in_tensor.data not in outputs:
            yield f"{tag} collects {op.in_tensor.data}, which no operation produces"
        yield from _check_collective_place(files, op)
        yield from _check_collective_level(files, op)
        if op.kind.data in _REDUCING and op.reduction_op is None:
            yield f"{tag} is a reduction without an operator"
        if op.kind.data in _CUTTING and op.dimension is None:
            yield f"{tag} needs a dimension"


_REDUCING = (CollectiveKind.REDUCTION, CollectiveKind.ALL_REDUCE)
_CUTTING = (CollectiveKind.GATHER, CollectiveKind.ALL_GATHER, CollectiveKind.SCATTER)


def _check_collective_place(files: Files, op: CollectiveOp) -> Iterator[str]:
    tag, tensor = op.tag.data, op.in_tensor.data
    above = parent_tile(op)
    left: list[TileOp] = []
    for sibling in above.children if above else ():
        if sibling is op:
            break
        if isinstance(sibling, TileOp):
            left.append(sibling)
    if not any(tensor in {e.tensor for e in tile.entries} for tile in left):
        yield f"{tag}: no node to its left lists {tensor}"
    earlier = [
        tile
        for tile in _finished_before(files, op)
        if any(e.tensor == tensor and e.target == op.target.data for e in tile.entries)
    ]
    if not earlier:
        yield f"{tag}: no earlier node lists {tensor} at {op.target.data}"
    elif set(earlier[-1].permutation.data) != set(files.sizes):
        yield f"{tag}: the node that lists {tensor} does not permute every dimension"


def _finished_before(files: Files, op: Operation) -> Iterator[TileOp]:
    """Yield the data-movement nodes that come before `op` in post-order."""

    def visit(tile: TileOp) -> Iterator[Operation]:
        for child in tile.children:
            if isinstance(child, TileOp):
                yield from visit(child)
            yield child

    for node in visit(files.mapping.root):
        if node is op:
            return
        if isinstance(node, TileOp):
            yield node


def _check_collective_level(files: Files, op: CollectiveOp) -> Iterator[str]:
    tag, level = op.tag.data, files.levels.get(op.target.data)
    if level is None:
        yield f"{tag} is at a level that the hardware lacks"
        return
    if not level.link.get("link_transfers"):
        yield f"{tag}: {level.name} has no network between its instances"
    if level.link.get("reduction_support") and not level.link.get("broadcast_support"):
        yield f"{tag}: reduction without broadcast support costs no memory time"
    names = [name.data for name in (*op.src, *op.dest)]
    if unknown := [name for name in names if name not in files.levels]:
        yield f"{tag} names the unknown levels {unknown}"
        return
    copies = prod(files.levels[name.data].instances for name in op.src)
    if copies > 1 and level.mesh_for(copies) not in MESHES:
        yield f"{tag}: {copies} instances are no mesh that the tool knows"
    receivers = prod(files.levels[name.data].instances for name in op.dest)
    if op.kind.data is CollectiveKind.SCATTER and receivers < 2:
        yield f"{tag} scatters to one instance only"


def _check_capacity(files: Files) -> Iterator[str]:
    used: dict[str, int] = {}
    _occupy(files, files.mapping.root, {}, used)
    for name, size in used.items():
        level = files.levels.get(name)
        if level is not None and name != "DRAM" and size > level.capacity:
            yield f"{name} would hold {size} of {level.capacity} bytes"


Extents = dict[tuple[str, str], dict[str, int]]


def _occupy(files: Files, tile: TileOp, extents: Extents, used: dict[str, int]) -> None:
    """Add up occupancies as the tool does: in post-order, at temporal nodes."""
    for child in tile.children:
        if isinstance(child, OperationOp):
            for step in child.steps.data:
                extents[step.tensor, child.operation.data] = dict(step.sizes)
        elif isinstance(child, TileOp):
            _occupy(files, child, extents, used)
    for entry in tile.entries:
        sizes = extents.setdefault((entry.tensor, entry.tag), {})
        for dim in tile.permutation.data:
            sizes[dim] = sizes.get(dim, 1) * entry.factor(dim)
    if not tile.is_temporal or parent_tile(tile) is None:
        return
    binding = _binding_of(tile)
    for level, size in _bytes_at(files, tile, extents).items():
        if level not in used or binding is None:
            used[level] = used.get(level, 0) + size
        elif binding is BindingKind.SEQUENTIAL:
            used[level] = max(used[level], size)
        elif binding is BindingKind.PIPELINE:
            used[level] += size


def _bytes_at(files: Files, tile: TileOp, extents: Extents) -> dict[str, int]:
    by_tensor: dict[tuple[str, str], int] = {}
    for entry in tile.entries:
        if entry.tag not in files.operations:
            continue
        sizes = extents[entry.tensor, entry.tag]
        elements = prod(
            sizes.get(dim, 1) for dim in files.relevant(entry.tag, entry.tensor)
        )
        key = (entry.tensor, entry.target)
        size = elements * entry.precision // 8
        by_tensor[key] = max(by_tensor.get(key, 0), size)
    total: dict[str, int] = {}
    for (_, level), size in by_tensor.items():
        total[level] = total.get(level, 0) + size
    return total


def _binding_of(tile: TileOp) -> BindingKind | None:
    """Return the binding that the tool uses for a node: its own or its parent's."""
    own = _own_binding(tile)
    above = parent_tile(tile)
    return own if own is not None or above is None else _own_binding(above)


def _own_binding(tile: TileOp) -> BindingKind | None:
    above = parent_tile(tile)
    if above is None:
        return None
    bindings = _bindings(above)
    if not bindings:
        return None
    nodes = list(above.children)
    return bindings[min(nodes.index(tile), len(bindings) - 1)]


UNIT_RULES: dict[str, Callable[[Files], Iterator[str]]] = {
    "leaf": _check_leaf,
    "unit": _check_unit,
    "binding": _check_binding,
    "stages": _check_stages,
    "collective": _check_collective,
    "capacity": _check_capacity,
}
