"""Every rule a mapping can break before it is priced, and capacity by liveness."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hardware import system_of
from recorded_runs import recorded
from xdsl.dialects.builtin import ModuleOp

from comet.cost.accelerator.capacity import live_occupancy, summed_occupancy
from comet.cost.accelerator.flow import tile_extents
from comet.cost.accelerator.hardware import Hardware, Level, Memory
from comet.cost.accelerator.legality import check, check_tool
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.model import price
from comet.cost.accelerator.problem import (
    Binding,
    Collective,
    Entry,
    Problem,
    Tile,
    walk_tiles,
)
from comet.cost.estimate import CostError
from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.mapping import (
    estimate_module,
)
from comet.kinds import BindingKind, CollectiveKind


def with_tiles(problem: Problem, change: Callable[[Tile], Tile]) -> Problem:
    """The problem with `change` applied to every tile, children first."""

    def rebuilt(tile: Tile) -> Tile:
        children = (rebuilt(c) if isinstance(c, Tile) else c for c in tile.children)
        return change(replace(tile, children=tuple(children)))

    return replace(problem, root=rebuilt(problem.root))


def with_entries(problem: Problem, change: Callable[[Entry], Entry]) -> Problem:
    """The problem with `change` applied to every entry."""
    return with_tiles(
        problem, lambda t: replace(t, entries=tuple(change(e) for e in t.entries))
    )


def with_memories(hardware: Hardware, **fields: int) -> Hardware:
    """The machine with other fields in all memories."""

    def change(level: Level) -> Level:
        if not isinstance(level.kind, Memory):
            return level
        return replace(level, kind=replace(level.kind, **fields))

    return replace(hardware, levels=tuple(change(lv) for lv in hardware.levels))


def fails(problem: Problem, hardware: Hardware, reason: str) -> None:
    """The check raises one sentence that holds `reason`."""
    with pytest.raises(CostError, match=reason) as raised:
        check(problem, hardware)
    assert "\n" not in str(raised.value)


def test_a_legal_mapping() -> None:
    price(*recorded("softmax-fused"), "paper")


def test_a_source_that_computes() -> None:
    problem, hardware = recorded("gemm")
    broken = with_entries(
        problem, lambda e: replace(e, source="GEMMEngine", destination="IB")
    )
    fails(broken, hardware, "from GEMMEngine, a compute unit")


def test_levels_without_a_link() -> None:
    problem, hardware = recorded("gemm")
    broken = with_entries(
        problem,
        lambda e: replace(e, destination="OB") if e.source == "DRAM" else e,
    )
    fails(broken, hardware, "no link joins level DRAM to OB")


def test_a_tag_whose_operation_lacks_the_tensor() -> None:
    problem, hardware = recorded("softmax-fused")
    broken = with_entries(
        problem, lambda e: replace(e, tag="DIV") if e.tensor == "A" else e
    )
    fails(broken, hardware, "tensor A for operation DIV, which does not touch it")


def test_a_tensor_that_nobody_has() -> None:
    problem, hardware = recorded("gemm")
    broken = with_entries(problem, lambda e: replace(e, tensor="Q", tag="none"))
    fails(broken, hardware, "tensor Q, which no operation")


def test_an_operation_that_nobody_declares() -> None:
    problem, hardware = recorded("gemm")

    def rename(tile: Tile) -> Tile:
        if not tile.is_leaf:
            return tile
        return replace(tile, children=(replace(tile.leaf, operation="SOFTMAX"),))

    fails(with_tiles(problem, rename), hardware, "operation SOFTMAX, which the problem")


def test_a_leaf_without_a_unit() -> None:
    problem, hardware = recorded("gemm")

    def stop(tile: Tile) -> Tile:
        if not tile.is_leaf:
            return tile
        entries = (replace(e, source="GB", destination="OB") for e in tile.entries)
        return replace(tile, entries=tuple(entries))

    fails(with_tiles(problem, stop), hardware, "to OB, which is no compute unit")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"child_read_bandwidth": 0}, "lacks child_read_bw of DRAM"),
        ({"child_write_bandwidth": 0}, "lacks child_write_bw of DRAM"),
        ({"parent_write_bandwidth": 0}, "lacks parent_write_bw of GB"),
        ({"link_read_bandwidth": 0}, "lacks link_read_bw of GB"),
    ],
)
def test_a_bandwidth_that_is_missing(fields: dict[str, int], reason: str) -> None:
    problem, hardware = recorded("softmax-fused")
    fails(problem, with_memories(hardware, **fields), reason)


def test_ports_without_bandwidth_have_no_price_by_the_tool() -> None:
    problem, hardware = recorded("softmax-fused")
    narrow = with_memories(hardware, ports=8, child_write_bandwidth=7)
    with pytest.raises(CostError, match="has more ports than bytes per cycle"):
        price(problem, narrow, "tool")


def test_cycles_of_a_transfer_are_counted_in_63_bits() -> None:
    problem, hardware = recorded("softmax-fused")
    networks = {
        ends: replace(network, hop_latency=10**30)
        for ends, network in hardware.networks.items()
    }
    with pytest.raises(CostError, match="cycles, more than 63 bits hold"):
        price(problem, replace(hardware, networks=networks), "tool")


def with_collectives(problem: Problem, **fields: Any) -> Problem:
    """The problem with other fields in all collectives."""

    def change(tile: Tile) -> Tile:
        children = (
            replace(c, **fields) if isinstance(c, Collective) else c
            for c in tile.children
        )
        return replace(tile, children=tuple(children))

    return with_tiles(problem, change)


def test_collectives_of_what_is_not_there() -> None:
    problem, hardware = recorded("softmax-fused")
    fails(with_collectives(problem, input="A"), hardware, "which no operation produces")
    fails(with_collectives(problem, input="H"), hardware, "no tile to its left")
    fails(with_collectives(problem, level="XX"), hardware, "no level 'XX'")
    fails(with_collectives(problem, level="IB"), hardware, "whose instances no link")


def test_a_scatter_to_one_instance() -> None:
    problem, hardware = recorded("softmax-fused")
    broken = with_collectives(
        problem, kind=CollectiveKind.SCATTER, destinations=("DRAM",)
    )
    fails(broken, hardware, "scatters to one instance")


def test_factors_that_do_not_multiply_up() -> None:
    problem, hardware = recorded("gemm")
    dims = {**problem.dims, "K": problem.dims["K"] + 1}
    fails(replace(problem, dims=dims), hardware, "of dimension K, whose extent is")


def test_a_collective_that_the_tool_skips() -> None:
    problem, hardware = recorded("softmax-fused")

    def bind(tile: Tile) -> Tile:
        if tile.spatial or len(tile.bindings) < 3:
            return tile
        bindings = list(tile.bindings)
        place = next(
            i for i, node in enumerate(tile.children) if isinstance(node, Collective)
        )
        for near in (place - 1, place):
            bindings[near] = Binding(90 + near, BindingKind.PARALLEL)
        return replace(tile, bindings=tuple(bindings))

    with pytest.raises(CostError, match="where the COMET tool crashes"):
        check_tool(with_tiles(problem, bind), hardware)


def with_other_iterations(problem: Problem) -> Problem:
    """A product whose leaf keeps A for 3 iterations of 6, beside 8 of B and C."""
    sizes = {"A": ({"N": 3, "K": 2}, {"N": 4, "K": 16})}
    others = {"N": 1, "K": 8}, {"N": 12, "K": 4}

    def change(tile: Tile) -> Tile:
        if not tile.is_leaf:
            return tile
        entries = tuple(
            replace(e, factors=({"M": 1, **sizes.get(e.tensor, others)[0]},))
            for e in tile.entries
        )
        steps = {t: {"M": 1, **sizes.get(t, others)[1]} for t in tile.leaf.tensors}
        leaf = replace(tile.leaf, steps=steps)
        return replace(tile, entries=entries, children=(leaf,))

    dims = {**problem.dims, "N": 3 * problem.dims["N"]}
    return replace(with_tiles(problem, change), dims=dims)


def test_reuse_that_does_not_divide_the_iterations() -> None:
    problem, hardware = recorded("gemm")
    uneven = with_other_iterations(problem)
    check_tool(uneven, hardware)
    with pytest.raises(CostError, match=r"A at IB stays for 3 iterations, .* the 8 of"):
        price(uneven, hardware, "tool")
    assert price(uneven, hardware, "paper").latency > 0


# Capacity.


def peak(problem: Problem, hardware: Hardware, level: str) -> float:
    """The most bytes a level holds at a time."""
    extents = tile_extents(Mappings(problem), hardware)
    places = live_occupancy(problem, extents)
    return max(float(p.total) for p in places if p.level == level)


def test_liveness_counts_what_the_tool_forgets() -> None:
    problem, hardware = recorded("softmax-fused")
    extents = tile_extents(Mappings(problem), hardware)
    summed = {o.level: float(o.total) for o in summed_occupancy(problem, extents)}
    assert peak(problem, hardware, "OB") >= summed["OB"]
    assert peak(problem, hardware, "GB") == summed["GB"]


def test_siblings_that_overlap_are_alive_together() -> None:
    problem, hardware = recorded("pipeline-inner")

    def in_turn(tile: Tile) -> Tile:
        bindings = tuple(
            None if b is None else Binding(b.index, BindingKind.SEQUENTIAL)
            for b in tile.bindings
        )
        return replace(tile, bindings=bindings)

    alone = with_tiles(problem, in_turn)
    assert peak(problem, hardware, "OB") >= peak(alone, hardware, "OB")


def test_what_does_not_fit_is_named() -> None:
    problem, hardware = recorded("gemm")
    small = with_memories(hardware, depth=0)
    with pytest.raises(CostError, match=r"the tiles do not fit \w+: .* it holds 0"):
        price(problem, small, "paper")


def test_the_root_memory_holds_everything() -> None:
    problem, hardware = recorded("gemm")
    root = replace(hardware.levels[0], kind=replace(hardware.levels[0].memory, depth=0))
    price(problem, replace(hardware, levels=(root, *hardware.levels[1:])), "paper")


# From IR.


def test_a_module_without_a_machine() -> None:
    with pytest.raises(CostError, match=r"0 ops .* where one is needed"):
        estimate_module(ModuleOp([]))


def test_devices_come_from_gpu_hardware_only() -> None:
    device = device_of(system_of("h200x1"))
    assert device.multiprocessors == 132
    assert device.units.tensor["f16"] == pytest.approx(989.4e12)
    assert device.times.launch == pytest.approx(4e-6)
    with pytest.raises(CostError, match="is no GPU"):
        device_of(system_of("edge"))


def test_bindings_count_as_nodes_of_the_document() -> None:
    problem, _ = recorded("pipeline-inner")
    indices = [node.index for node in problem.nodes]
    bindings = [
        b.index for t in walk_tiles(problem.root) for b in t.bindings if b is not None
    ]
    assert sorted(indices + bindings) == list(range(len(indices) + len(bindings)))
