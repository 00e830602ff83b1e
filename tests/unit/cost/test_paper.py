"""The model `paper`: every mend of the model `tool`, on a recorded run."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from recorded_runs import REJECTED, numbered, parsed, recorded

from comet.cost.accelerator.hardware import Hardware, Memory, Unit
from comet.cost.accelerator.model import price
from comet.cost.accelerator.problem import (
    Binding,
    Collective,
    Entry,
    Leaf,
    Node,
    Problem,
    Tile,
    walk_tiles,
)
from comet.cost.estimate import CostError, Estimate
from comet.kinds import BindingKind


def both(problem: Problem, hardware: Hardware) -> tuple[Estimate, Estimate]:
    """Before and after the mends."""
    return price(problem, hardware, "tool"), price(problem, hardware, "paper")


def node_cycles(estimate: Estimate, prefix: str) -> dict[str, float]:
    """Cycles of the nodes whose names begin with a prefix."""
    return {n.name: n.cycles for n in estimate.nodes if n.name.startswith(prefix)}


def rebuilt(tile: Tile, change: Callable[[Tile], Tile]) -> Tile:
    """A tree with `change` applied to every tile, children first."""
    children = tuple(
        rebuilt(child, change) if isinstance(child, Tile) else child
        for child in tile.children
    )
    return change(replace(tile, children=children))


# What has no defect prices the same.


@pytest.mark.parametrize(
    "family",
    [
        "gemm",
        "softmax-unfused2",
        "softmax-fusedlocal",
        "attention-one",
        "archvariant-bw",
    ],
)
def test_without_a_defect_both_models_agree(family: str) -> None:
    tool, paper = both(*recorded(family))
    assert paper.latency == pytest.approx(tool.latency, rel=0.005)


# The mends, before and after.


def test_mend_read_stalls_do_not_vanish_beside_writes() -> None:
    problem, hardware = recorded("roofline-violation")
    tool, paper = both(problem, hardware)
    weights = problem.dims["N"] * problem.dims["K"]
    roofline = weights / hardware.levels[0].memory.child_read_bandwidth
    assert tool.latency == 17734 < roofline
    assert paper.latency > roofline


def without_spatial(tile: Tile) -> Tile:
    """Drops the spatial node between a temporal node and its only child."""
    (child,) = tile.children if len(tile.children) == 1 else (None,)
    if isinstance(child, Tile) and child.spatial and len(child.children) == 1:
        ones = all(
            f == 1 for e in child.entries for row in e.factors for f in row.values()
        )
        if ones and child.entries[0].source != "DRAM":
            return replace(tile, children=child.children)
    return tile


def unspread(tile: Tile) -> Tile:
    """Runs a spatial node on one instance; a temporal loop takes its factors."""
    if not tile.spatial:
        return tile

    def one(entry: Entry) -> Entry:
        rows = tuple(dict.fromkeys(row, 1) for row in entry.factors)
        return replace(entry, factors=rows)

    return replace(tile, entries=tuple(one(e) for e in tile.entries))


def test_mend_iterations_count_without_a_spatial_node() -> None:
    problem, hardware = recorded("gemm")
    spread = problem.root
    narrow = replace(problem, root=rebuilt(spread, unspread))
    bare = replace(problem, root=rebuilt(narrow.root, without_spatial))
    assert len(bare.nodes) < len(narrow.nodes)
    dims = {
        dim: size
        // int(
            np.prod(
                [
                    row[dim]
                    for t in walk_tiles(spread)
                    if t.spatial
                    for row in t.entries[0].factors
                ]
            )
        )
        for dim, size in problem.dims.items()
    }
    narrow, bare = replace(narrow, dims=dims), replace(bare, dims=dims)
    tool, paper = both(bare, hardware)
    assert tool.latency < 0.5 * price(narrow, hardware, "tool").latency
    assert paper.latency == pytest.approx(price(narrow, hardware).latency, rel=0.01)


def test_mend_missing_parent_entry_is_an_error() -> None:
    problem, hardware = recorded("softmax-fused")

    def forget(tile: Tile) -> Tile:
        kept = tuple(e for e in tile.entries if e.tag != "EXP" or e.source != "GB")
        return tile if tile.spatial or not kept else replace(tile, entries=kept)

    broken = replace(problem, root=rebuilt(problem.root, forget))
    with pytest.raises(CostError, match="X for EXP, but the temporal node above"):
        price(broken, hardware)
    assert price(broken, hardware, "tool").roofline == 0


def test_mend_forced_stalls_are_charged_once() -> None:
    problem, hardware = recorded("layernorm-fused", 1)
    tool, paper = both(problem, hardware)
    before = node_cycles(tool, "DataMovement")
    after = node_cycles(paper, "DataMovement")
    assert any(after[name] < before[name] for name in after)
    assert paper.latency <= tool.latency * 1.001


def test_mend_all_reduce_is_linear_in_the_instances() -> None:
    problem, hardware = recorded("collective-allreduce")
    tool, paper = both(problem, hardware)
    before, after = (node_cycles(e, "CollectiveOp") for e in (tool, paper))
    assert before.keys() == after.keys()
    assert all(after[name] < before[name] for name in before)


def test_mend_all_reduce_with_reduction_support_takes_memory_time() -> None:
    problem, hardware = recorded("collective-allreduce")
    other = replace_links(hardware, reduction=True, broadcast=False)
    assert slowest_exchange(tool_free := price(problem, other, "tool")) < (
        slowest_exchange(price(problem, hardware, "tool"))
    )
    helped = replace_links(hardware, reduction=True, broadcast=True)
    assert tool_free.latency < price(problem, helped, "tool").latency
    assert price(problem, other).latency >= price(problem, helped).latency


def slowest_exchange(estimate: Estimate) -> float:
    """Cycles of the longest collective."""
    return max(node_cycles(estimate, "CollectiveOp").values())


def replace_links(hardware: Hardware, **fields: Any) -> Hardware:
    """The machine with other fields in all links among instances."""
    levels = tuple(
        lv if lv.link is None else replace(lv, link=replace(lv.link, **fields))
        for lv in hardware.levels
    )
    return Hardware(levels, hardware.networks)


@pytest.mark.parametrize("kind", [BindingKind.PARALLEL, BindingKind.SHARING])
def test_mend_parallel_and_sharing_bindings_have_a_price(kind: BindingKind) -> None:
    problem, hardware = recorded("pipeline-inner")

    def bind(tile: Tile) -> Tile:
        bindings = tuple(
            Binding(b.index, kind) if b is not None and tile.spatial else b
            for b in tile.bindings
        )
        return replace(tile, bindings=bindings)

    parallel = replace(problem, root=rebuilt(problem.root, bind))
    with pytest.raises(CostError, match="never finishes"):
        price(parallel, hardware, "tool")
    together = price(parallel, hardware).latency
    in_turn = replace(problem, root=rebuilt(problem.root, bound))
    assert 0 < together <= price(in_turn, hardware).latency


def bound(tile: Tile) -> Tile:
    """All bindings sequential."""
    bindings = tuple(
        None if b is None else Binding(b.index, BindingKind.SEQUENTIAL)
        for b in tile.bindings
    )
    return replace(tile, bindings=bindings)


def test_mend_any_mesh_has_a_price() -> None:
    run = next(r for r in REJECTED if r["family"] == "reject-mesh3x3")
    problem, hardware = parsed(run)
    with pytest.raises(CostError, match="3x3"):
        price(problem, hardware, "tool")
    assert price(problem, hardware).latency > 0


@pytest.mark.parametrize(
    ("run", "before", "after"),
    [
        ("0429", 17734, 53268),
        ("0379", 400747, 404779),
        ("0322", 434411, 253859),
        ("0181", 4533, 4654),
        ("0309", 48928, 795108),
        ("0297", 107206, 102749),
        ("0406", 535407, 637552),
        ("0269", 218515, 215034),
    ],
)
def test_mends_on_recorded_runs(run: str, before: int, after: int) -> None:
    tool, paper = both(*numbered(run))
    assert tool.latency == before
    assert round(paper.latency) == after


def test_mend_forced_stalls_of_one_node() -> None:
    tool, paper = both(*numbered("0203"))
    name = "DataMovementTileNode::8"
    assert node_cycles(tool, name)[name] == 1613
    assert round(node_cycles(paper, name)[name]) == 1339


def test_mend_a_memory_with_one_bandwidth_has_one_bus() -> None:
    problem, hardware = numbered("0203")
    two = with_memories(hardware, one_bus=False)
    assert round(price(problem, two).latency) == 24791
    assert round(price(problem, hardware).latency) == 25729


def with_memories(hardware: Hardware, **fields: Any) -> Hardware:
    """The machine with other fields in all memories."""
    levels = tuple(
        replace(lv, kind=replace(lv.kind, **fields))
        if isinstance(lv.kind, Memory)
        else lv
        for lv in hardware.levels
    )
    return replace(hardware, levels=levels)


def with_leaves(problem: Problem, change: Callable[[Leaf], Leaf]) -> Problem:
    """The problem with `change` applied to every leaf."""

    def rewritten(tile: Tile) -> Tile:
        return replace(tile, children=(change(tile.leaf),)) if tile.is_leaf else tile

    return replace(problem, root=rebuilt(problem.root, rewritten))


def test_mend_a_tile_larger_than_its_primitive_is_computed_in_steps() -> None:
    problem, hardware = recorded("softmax-fused")

    def halve(leaf: Leaf) -> Leaf:
        if leaf.kind == "gemm":
            return leaf
        sizes = tuple((d, max(1, n // 2) if d == "N" else n) for d, n in leaf.primitive)
        return replace(leaf, primitive=sizes)

    halved = with_leaves(problem, halve)
    wide = Unit("VSIMD", 16, width=1)
    slow = replace(
        hardware,
        levels=tuple(
            replace(lv, kind=wide) if lv.name == "SE" else lv for lv in hardware.levels
        ),
    )
    whole, half = (price(p, slow).memory_window for p in (problem, halved))
    assert half == whole
    tool_whole, tool_half = (
        price(p, slow, "tool").memory_window for p in (problem, halved)
    )
    assert tool_half < tool_whole


def test_mend_vector_work_does_not_depend_on_the_reduction_factor() -> None:
    problem, hardware = recorded("softmax-fused")

    def divide(leaf: Leaf) -> Leaf:
        return leaf if leaf.kind == "gemm" else replace(leaf, reduction=(("K", 1000),))

    divided = with_leaves(problem, divide)
    before = price(problem, hardware, "tool").memory_window
    assert price(divided, hardware, "tool").memory_window <= before
    assert price(divided, hardware).latency == price(problem, hardware).latency


def test_mend_one_port_may_use_the_whole_bandwidth() -> None:
    problem, hardware = recorded("gemm")
    ported = with_memories(hardware, ports=16)
    tool, paper = both(problem, ported)
    assert tool.latency > price(problem, hardware, "tool").latency
    assert paper.latency <= price(problem, hardware).latency


def test_mend_collectives_of_some_instances() -> None:
    problem, hardware = numbered("0322")

    def halved(node: Node) -> Node:
        if isinstance(node, Collective):
            return replace(node, spatial_factor=2)
        if isinstance(node, Tile):
            return replace(node, children=tuple(map(halved, node.children)))
        return node

    root = halved(problem.root)
    assert isinstance(root, Tile)
    tool, paper = both(replace(problem, root=root), hardware)
    assert tool.latency == 239339
    assert round(paper.latency) == 235059
