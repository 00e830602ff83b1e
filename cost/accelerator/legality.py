"""
The rules for mappings that can be priced.

The COMET tool does not check most of its rules and then crashes, hangs or counts
wrongly; here each is an error of one sentence. `check` has the rules of every model;
`check_tool` adds the tool's capacity rule, `check_sizes` that of liveness.
"""

from __future__ import annotations

from collections.abc import Iterator

from comet.cost.accelerator.bindings import (
    binding_kinds,
    charged_level,
    group_children,
    is_pipeline,
    stages_of,
    stalls_read,
    tags_of,
)
from comet.cost.accelerator.capacity import (
    Occupancy,
    limited,
    live_occupancy,
    summed_occupancy,
)
from comet.cost.accelerator.compute import leaf_cycles
from comet.cost.accelerator.flow import TileExtents, tile_extents
from comet.cost.accelerator.hardware import Hardware, check_positive
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.problem import (
    Collective,
    Entry,
    Problem,
    Tile,
    walk_tiles,
)
from comet.cost.accelerator.tool.nest import build_nests
from comet.cost.accelerator.volume import elements_of
from comet.cost.collectives.formulas import link_network
from comet.cost.estimate import CostError, at_node
from comet.cost.reals import Products, Real, Truth, longest
from comet.kinds import BindingKind, CollectiveKind

LIMIT = 2**32
"""The COMET tool's counts must be below this."""


def check(problem: Problem, hardware: Hardware) -> TileExtents:
    """
    Check the structure, and that factors multiply to the extents.

    Returns the extents of every tile. Raises `CostError` for the first broken rule.
    """
    check_structure(problem, hardware)
    extents = tile_extents(Mappings(problem), hardware)
    check_extents(problem, extents)
    return extents


def check_structure(problem: Problem, hardware: Hardware) -> None:
    """
    Check names, links, units and collectives; raises `CostError` for the first mistake.
    """
    for tile in walk_tiles(problem.root):
        with at_node(tile.index):
            for entry in tile.entries:
                _check_entry(problem, hardware, tile, entry)
            if tile.is_leaf:
                _check_leaf(problem, hardware, tile)
        for child in tile.children:
            if isinstance(child, Collective):
                with at_node(child.index):
                    _check_collective(problem, hardware, tile, child)


def check_tool(problem: Problem, hardware: Hardware) -> None:
    """Check all rules of the COMET tool; raises `CostError` for a broken one."""
    check_structure(problem, hardware)
    check_bindings(problem)
    check_factors(problem, hardware)


def check_factors(
    problem: Problem, hardware: Hardware, *, counts: bool = True
) -> TileExtents:
    """
    Check the rules of `check_tool` that depend on factors, not those of the structure.

    With `counts`, also those of its 32-bit integers. Returns the extents of every tile.
    Raises `CostError` for the first broken rule.
    """
    mappings = Mappings(problem)
    extents = tile_extents(mappings, hardware)
    check_extents(problem, extents)
    if counts:
        _check_counts(mappings, extents)
    _check_stages(problem, hardware)
    _check_capacity(problem, hardware, summed_occupancy(problem, extents))
    return extents


def check_bindings(problem: Problem) -> None:
    """Raise `CostError` for bindings with which the COMET tool hangs or crashes."""
    for tile in walk_tiles(problem.root):
        with at_node(tile.index):
            _check_bindings(tile)
            _check_charged(tile)


def check_summed(problem: Problem, hardware: Hardware) -> None:
    """Check the rules of every model, and the COMET tool's capacity rule."""
    _check_capacity(
        problem, hardware, summed_occupancy(problem, check(problem, hardware))
    )


def check_sizes(problem: Problem, hardware: Hardware, extents: TileExtents) -> None:
    """Check that factors multiply to the extents, and that live tiles fit."""
    check_extents(problem, extents)
    _check_capacity(problem, hardware, live_occupancy(problem, extents))


def _check_entry(
    problem: Problem, hardware: Hardware, tile: Tile, entry: Entry
) -> None:
    source = hardware.level(entry.source)
    hardware.level(entry.destination)
    if source.is_unit:
        raise CostError(
            f"{tile.name} moves tensor {entry.tensor} from {source.name}, a compute "
            "unit; name a memory level"
        )
    if tile.spatial or tile.is_leaf:
        _check_link(problem, hardware, entry)
    op = problem.operation.get(entry.tag)
    if op is not None and entry.tensor not in op.access:
        raise CostError(
            f"{tile.name} lists tensor {entry.tensor} for operation {entry.tag}, which "
            "does not touch it; correct the tag"
        )
    _check_tensor(problem, tile.name, "lists", entry.tensor)


def _check_tensor(problem: Problem, node: str, does: str, tensor: str) -> None:
    if all(tensor not in op.access for op in problem.operations):
        raise CostError(
            f"{node} {does} tensor {tensor}, which no operation of the problem has; "
            "correct the name"
        )


def _check_link(problem: Problem, hardware: Hardware, entry: Entry) -> None:
    writes = problem.writes(entry.tensor, entry.tag)
    ends = entry.source, entry.destination
    check_rates(f"tensor {entry.tensor} moves", hardware, ends, writes=writes)


def check_rates(
    what: str, hardware: Hardware, ends: tuple[str, str], *, writes: bool
) -> None:
    """
    Check that no rate between two levels, the outer one first, is 0.

    Raises CostError that says `what` needs the field that the hardware file lacks.
    """
    network, (near, far) = hardware.network(*ends), map(hardware.level, ends)
    memory = near.memory
    wanted = {
        f"child_{'write' if writes else 'read'}_bw of {near.name}": (
            memory.child_write_bandwidth if writes else memory.child_read_bandwidth
        ),
        f"bw of the link to {far.name}": network.bandwidth,
        f"channel_width of the link to {far.name}": network.channel_width,
    }
    if not far.is_unit:
        child = far.memory
        wanted[f"parent_{'read' if writes else 'write'}_bw of {far.name}"] = (
            child.parent_read_bandwidth if writes else child.parent_write_bandwidth
        )
    check_positive(what, wanted)


def _check_leaf(problem: Problem, hardware: Hardware, tile: Tile) -> None:
    leaf = tile.leaf
    if leaf.operation not in problem.operation:
        raise CostError(
            f"{leaf.name} runs operation {leaf.operation}, which the problem does not "
            "declare; correct the name"
        )
    for entry in tile.entries:
        unit = hardware.level(entry.destination)
        if not unit.is_unit:
            raise CostError(
                f"{tile.name} feeds operation {leaf.operation} from {entry.source} to "
                f"{unit.name}, which is no compute unit"
            )
        leaf_cycles(unit.unit, leaf)


def _check_collective(
    problem: Problem, hardware: Hardware, tile: Tile, node: Collective
) -> None:
    _check_exchange(hardware, node)
    _check_tensor(problem, node.name, "makes", node.output)
    if node.input not in problem.produced:
        raise CostError(
            f"{node.name} exchanges tensor {node.input}, which no operation produces; "
            "name one that is produced before it"
        )
    earlier = tile.children[: tile.children.index(node)]
    if not any(
        e.tensor == node.input
        for t in earlier
        if isinstance(t, Tile)
        for e in t.entries
    ):
        raise CostError(
            f"{node.name} exchanges tensor {node.input}, but no tile to its left lists "
            "it; place it after the producer"
        )


def _check_exchange(hardware: Hardware, node: Collective) -> None:
    """Check the levels of a collective, and the links at its own."""
    for name in (node.level, *node.sources, *node.destinations):
        hardware.level(name)
    link_network(hardware.level(node.level))
    if (
        node.kind is CollectiveKind.SCATTER
        and hardware.instances(node.destinations) < 2
    ):
        raise CostError(
            f"{node.name} scatters to one instance; drop it or name a level with more "
            "instances"
        )


def _check_bindings(tile: Tile) -> None:
    """Check that a spatial node has a stage, and that no collective is skipped."""
    kinds = binding_kinds(tile)
    if not kinds:
        return
    grouped = {node.index for g in group_children(tile) for node in g.members}
    if tile.spatial and not grouped:
        raise CostError(
            f"{tile.name} binds its children by {kinds[0].value} only, which the COMET "
            "tool never finishes; make one binding sequential or pipeline"
        )
    for node in tile.children:
        skipped = isinstance(node, Collective) and node.index not in grouped
        if not tile.spatial and BindingKind.SEQUENTIAL in kinds and skipped:
            raise CostError(
                f"{node.name} is bound by parallel or sharing beside sequential "
                "siblings, where the COMET tool crashes; bind it sequentially"
            )


def _check_charged(tile: Tile) -> None:
    """
    Check that each stage has a level at which the COMET tool counts it.

    A stage for which a spatial node moves nothing is counted at the level from which
    the node fills one of the stage's levels; the tool crashes if there is none.
    """
    if not tile.spatial:
        return
    moved = {entry.tag for entry in tile.entries}
    for group in group_children(tile):
        child = group.members[0]
        if group.fused or moved & tags_of(child):
            continue
        if charged_level(tile, child) is None:
            raise CostError(
                f"{tile.name} moves no tensor of {child.name}, nor any to a level that "
                "this reads from or writes to, and the COMET tool crashes on such a "
                "stage; bind the children sequentially (bind=sequential)"
            )


def _check_stages(problem: Problem, hardware: Hardware) -> None:
    """
    Check that stages have as many iterations as the pipelined node reads.

    The COMET tool reads stalls of a stage for the iterations of the node, but a stage
    has only as many as its own tensors have iterations.
    """
    pipelines = [tile for tile in walk_tiles(problem.root) if is_pipeline(tile)]
    if not pipelines:
        return
    nests = build_nests(problem, hardware)
    for tile in pipelines:
        wanted, stages = nests.iterations(tile), stages_of(tile)
        for position, stage in enumerate(stages):
            if not isinstance(stage, Tile):
                continue
            found = nests.iterations(stage)
            if found < stalls_read(position, len(stages), wanted):
                raise CostError(
                    f"{stage.name} makes {found} of the {wanted} iterations of "
                    f"{tile.name}, which overlaps its children, and the COMET tool "
                    "reads past the end of its stalls; bind them sequentially "
                    "(bind=sequential)",
                    stage.index,
                )


def _check_counts(mappings: Mappings, extents: TileExtents) -> None:
    """Check that iterations and bytes fit the 32 bits of the COMET tool's counts."""
    for tile, what, count in _counts(mappings, extents):
        if count >= LIMIT:
            raise CostError(
                f"{tile.name} has {int(count)} {what}, which overflows the 32 bits in "
                "which the COMET tool counts; make the problem smaller",
                tile.index,
            )


def counts_fit(mappings: Mappings, extents: TileExtents) -> Truth:
    """Return where iterations and bytes fit the 32 bits of the COMET tool's counts."""
    fit: Truth = True
    for _, _, count in _counts(mappings, extents):
        fit = fit & (count < LIMIT)
    return fit


def _counts(
    mappings: Mappings, extents: TileExtents
) -> Iterator[tuple[Tile, str, Real]]:
    """Yield what the COMET tool counts in 32 bits: iterations, and bytes of tiles."""
    problem, products = mappings.template, Products()
    iterations: dict[int, Real] = {}
    for tile in walk_tiles(problem.root):
        above = problem.parent.get(tile.index)
        count: Real = 1.0 if above is None else iterations[above.index]
        if not tile.spatial:
            trips = (
                products.of(mappings.row(tile, position, 0).values())
                for position in range(len(tile.entries))
            )
            count = products.times(count, longest(trips))
        iterations[tile.index] = count
        yield tile, "iterations", count
        if above is None:  # tiles of the root are split before any of them moves
            continue
        for entry, reached in zip(tile.entries, extents[tile.index], strict=True):
            projection = problem.projection(entry.tensor, entry.tag)
            size = elements_of(projection, reached, products.of) * (entry.bits / 8)
            yield tile, f"bytes of tensor {entry.tensor}", size


def check_extents(problem: Problem, extents: TileExtents) -> None:
    """
    Raise `CostError` if the factors of a root entry do not multiply to the extents.
    """
    root = problem.root
    for entry, reached in zip(root.entries, extents[root.index], strict=True):
        for dim, size in reached.items():
            if size != problem.dims.get(dim, 0):
                raise CostError(
                    f"the factors of tensor {entry.tensor} for {entry.tag} cover "
                    f"{int(size)} of dimension {dim}, whose extent is "
                    f"{problem.dims.get(dim, 0)}; make the TileSteps times all factors "
                    "equal it",
                    root.index,
                )


def _index_of(problem: Problem, name: str) -> int | None:
    return next((n.index for n in problem.nodes if n.name == name), None)


def _check_capacity(
    problem: Problem, hardware: Hardware, occupancies: Iterator[Occupancy]
) -> None:
    for occupancy, capacity in limited(occupancies, hardware):
        if (needed := int(occupancy.total)) > capacity:
            raise CostError(
                f"the tiles do not fit {occupancy.level}: {occupancy.tensors()} need "
                f"{needed} bytes together at {occupancy.where}, it holds "
                f"{capacity}; choose smaller factors below {occupancy.level}",
                _index_of(problem, occupancy.where),
            )
