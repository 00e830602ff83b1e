"""Formulas by hand: units, networks, collectives, transfers, bindings, capacity."""

from dataclasses import replace

import numpy as np
import pytest

from comet.cost.accelerator.bindings import binding_of, group_children, lanes_of
from comet.cost.accelerator.capacity import Occupancy
from comet.cost.accelerator.compute import (
    leaf_cycles,
    systolic_cycles,
    throughput,
    vector_cycles,
    vector_energy,
)
from comet.cost.accelerator.hardware import Hardware, Level, Memory, Network, Unit
from comet.cost.accelerator.noc import (
    Crossing,
    hops_to,
    mesh_bits_energy,
    network_cycles,
)
from comet.cost.accelerator.problem import (
    Binding,
    Entry,
    Leaf,
    Tile,
)
from comet.cost.accelerator.router import mesh_energy
from comet.cost.accelerator.tool.network import (
    mesh_used,
    network_energy,
    tabled_hops,
    tool_cost,
)
from comet.cost.accelerator.volume import (
    Route,
    Transfer,
    elements_of,
    relevant,
    reuse,
    transfer_kind,
)
from comet.cost.accelerator.volume import memory_cycles as transfer_cycles
from comet.cost.collectives.formulas import (
    CollectiveTraffic,
    access_tiles,
    exchange_cycles,
    memory_cycles,
    memory_energy,
)
from comet.cost.estimate import CostError
from comet.cost.reals import longest, product, total
from comet.kinds import BindingKind, CollectiveKind

ARRAY = Unit("SystolicArray", 1, row_arrays=8, column_arrays=8)
VECTOR = Unit("VSIMD", 16, width=16)
MESH = Network(64, (2, 2), hop_latency=5, queuing_delay=2, channel_width=512)
BUFFER = Memory(
    "GBuffer",
    width=2048,
    depth=1024,
    child_read_bandwidth=2048,
    child_write_bandwidth=2048,
    link_read_bandwidth=64,
    link_write_bandwidth=64,
    child_read_energy=474,
    child_write_energy=532,
)


def leaf(kind: str, primitive: dict[str, int], **reduction: int) -> Leaf:
    """A leaf without steps."""
    return Leaf(
        0, "OP", kind, ("A",), tuple(primitive.items()), {}, tuple(reduction.items())
    )


# Units.


def test_systolic_array_streams_the_reduction_factor() -> None:
    assert systolic_cycles(ARRAY, (64, 8, 16), 16) == 2 * 32 + 32 + 16 - 2
    assert systolic_cycles(ARRAY, (512, 8, 16), 16) == 2 * 110


def test_systolic_array_needs_the_streamed_extent() -> None:
    with pytest.raises(CostError, match="no extent 7"):
        systolic_cycles(ARRAY, (64, 8, 16), 7)
    with pytest.raises(CostError, match="needs compute_attributes"):
        leaf_cycles(ARRAY, leaf("gemm", {"M": 16, "N": 8, "K": 64}))


@pytest.mark.parametrize(
    ("kind", "elements", "reduced", "cycles"),
    [("exp", 17, 1, 6), ("add", 16, 1, 1), ("rowsum", 32, 1, 8), ("div", 256, 16, 1)],
)
def test_vector_unit(kind: str, elements: int, reduced: int, cycles: int) -> None:
    assert vector_cycles(VECTOR, kind, elements, reduced) == cycles


def test_unknown_operation_and_unit() -> None:
    with pytest.raises(CostError, match="no operation 'gemm'; it has exp"):
        vector_cycles(VECTOR, "gemm", 1, 1)
    with pytest.raises(CostError, match="no model of compute tile 'TPU'"):
        leaf_cycles(Unit("TPU", 1), leaf("gemm", {"M": 1}))


def test_other_units() -> None:
    cube = leaf("gemm", {"M": 16, "N": 16, "K": 16}, K=2048)
    assert leaf_cycles(Unit("GEMM", 4, startup=3), cube) == 3 + 8 * 4
    special = replace(cube, accumulates=True, special=True)
    assert leaf_cycles(Unit("GEMM", 4, startup=3), special) == 3 + 12 + 8 * 4
    assert leaf_cycles(Unit("GEMM", 4), leaf("gemm", {"M": 16, "N": 16})) == 4
    assert leaf_cycles(Unit("MAC", 7), cube) == 7
    assert leaf_cycles(Unit("intmac", 2), cube) == 2 * 4096
    assert throughput(Unit("MAC", 2), cube) == 2048
    assert throughput(ARRAY, cube) == 65536
    assert throughput(VECTOR, leaf("exp", {"M": 4})) == pytest.approx(16 / 3)
    one_lane = replace(VECTOR, width=1)  # whose reductions take no step
    assert throughput(one_lane, leaf("rowsum", {"M": 4})) == float("inf")


def test_row_reductions_spend_a_tree() -> None:
    assert vector_energy(VECTOR, "rowsum") == pytest.approx(4 * 0.11)
    assert vector_energy(VECTOR, "exp") == 3.86


# Networks.


@pytest.mark.parametrize(
    ("mesh", "instances", "used"),
    [
        ((2, 2), 4, (2, 2)),
        ((4, 4), 4, (2, 2)),
        ((4, 2), 8, (4, 2)),
        ((2, 4), 8, (4, 2)),
        ((2, 2), 16, (2, 2)),
        (None, 10, (4, 4)),
        (None, 1, (1, 1)),
        (None, 10**60, (10**30, 10**30)),
    ],
)
def test_mesh_used(
    mesh: tuple[int, int] | None, instances: int, used: tuple[int, int]
) -> None:
    assert mesh_used(mesh, instances) == used


def test_hops_on_any_mesh() -> None:
    assert [hops_to(Network(1, (16, 16)), n) for n in (1, 4, 9, 256)] == [0, 2, 4, 30]
    assert hops_to(Network(1, (8, 2)), 16) == 2 + 8 - 2
    assert hops_to(MESH, 256) == 30
    assert tabled_hops((4, 4)) == 6
    with pytest.raises(CostError, match="3x3 mesh"):
        tabled_hops((3, 3))


def test_broadcast_takes_router_and_queueing_time() -> None:
    cycles = network_cycles(MESH, Crossing(CollectiveKind.BROADCAST, 2, 4096, 4, 1))
    assert cycles == 2 * 5 + 4096 * 2 * 8 / 512 * 2


def test_all_reduce_crosses_twice_and_combines() -> None:
    kind = CollectiveKind.ALL_REDUCE
    crossing = Crossing(kind, 2, 32, 4, 2, explicit=True, reduces=True)
    cycles = network_cycles(MESH, crossing)
    assert cycles == 2 * (2 * 5 + 64 * 16 / 512 * 2) + 64 * 4 / 16


def test_explicit_scatter_splits_its_tile() -> None:
    whole = Crossing(CollectiveKind.SCATTER, 2, 1024, 4, 1)
    split = replace(whole, explicit=True)
    assert network_cycles(MESH, split) < network_cycles(MESH, whole)


def test_network_energy_grows_with_bits_and_adds_combining() -> None:
    one, two = (mesh_energy(512, 2, 2, bits, 2) for bits in (1024, 2048))
    assert 0 < one < two
    crossing = Crossing(CollectiveKind.REDUCTION, 2, 64, 4, 1)
    plain = network_energy(MESH, (2, 2), crossing)
    summed = network_energy(MESH, (2, 2), crossing, "add")
    assert summed - plain == pytest.approx(64 * 2 * 4 * 0.11, rel=1e-3)
    assert mesh_bits_energy(MESH, 512.0, 1, 1) == 0
    both = mesh_bits_energy(MESH, np.array([512.0, 1024.0]), 4, 1)
    assert np.shape(both) == (2,)


# Collectives: 32 elements of 16 bits on 4 instances.


def exchange(kind: CollectiveKind, instances: int = 4) -> CollectiveTraffic:
    """64 bytes per instance, 256 in all where the kind gathers."""
    gathers = kind in (CollectiveKind.GATHER, CollectiveKind.ALL_GATHER)
    return CollectiveTraffic(
        kind, 64.0, 256.0 if gathers else 64.0, instances, instances, instances
    )


@pytest.mark.parametrize(
    ("kind", "tool", "linear"),
    [
        (CollectiveKind.BROADCAST, 4, 4),
        (CollectiveKind.REDUCTION, 4, 4),
        (CollectiveKind.ALL_GATHER, 16, 4),
        (CollectiveKind.ALL_REDUCE, 52, 13),
        (CollectiveKind.SCATTER, 2, 2),
        (CollectiveKind.GATHER, 3, 3),
    ],
)
def test_memory_time_of_collectives(
    kind: CollectiveKind, tool: int, linear: int
) -> None:
    assert memory_cycles(exchange(kind), BUFFER, MESH) == tool
    assert memory_cycles(exchange(kind), BUFFER, MESH, linear=True) == linear


def test_network_support_speeds_collectives_up() -> None:
    kind = CollectiveKind.ALL_REDUCE
    times = [
        memory_cycles(
            exchange(kind),
            BUFFER,
            replace(MESH, broadcast=broadcast, reduction=reduction),
            linear=True,
        )
        for broadcast, reduction in ((False, False), (True, False), (True, True))
    ]
    assert times == [13, 9, 3]
    lonely = replace(MESH, reduction=True)
    assert memory_cycles(exchange(kind), BUFFER, lonely) == 0
    assert memory_cycles(exchange(kind), BUFFER, lonely, linear=True) == 7
    helped = replace(MESH, broadcast=True, reduction=True)
    reduction = exchange(CollectiveKind.REDUCTION)
    assert memory_cycles(reduction, BUFFER, helped) == 3
    assert memory_cycles(exchange(CollectiveKind.BROADCAST), BUFFER, helped) == 1


@pytest.mark.parametrize("kind", [CollectiveKind.GATHER, CollectiveKind.SCATTER])
def test_collectives_of_one_are_errors(kind: CollectiveKind) -> None:
    with pytest.raises(CostError, match="needs more than one"):
        memory_cycles(exchange(kind, 1), BUFFER, MESH)


def test_the_root_of_a_gather_needs_the_port_to_the_levels_below() -> None:
    level = Level("GB", replace(BUFFER, child_write_bandwidth=0), "DRAM", 4, 4, MESH)
    wanted = "a collective runs at GB, but the hardware file lacks child_write_bw of GB"
    with pytest.raises(CostError, match=wanted):
        exchange_cycles(exchange(CollectiveKind.GATHER), level, 2, reduces=False)
    with pytest.raises(CostError, match=wanted):
        tool_cost(exchange(CollectiveKind.GATHER), level, 2, None)
    exchange_cycles(exchange(CollectiveKind.SCATTER), level, 2, reduces=False)


def test_accesses_of_collectives() -> None:
    counts = {kind: access_tiles(exchange(kind), MESH) for kind in CollectiveKind}
    assert counts[CollectiveKind.GATHER] == (1, 3)
    assert counts[CollectiveKind.BROADCAST] == (4, 3)
    assert counts[CollectiveKind.REDUCTION] == (12, 3)
    assert counts[CollectiveKind.ALL_GATHER] == (16, 16)
    assert counts[CollectiveKind.ALL_REDUCE] == (32, 16)
    assert counts[CollectiveKind.SCATTER] == (0.75, 1)
    spent = memory_energy(exchange(CollectiveKind.GATHER), BUFFER, MESH)
    assert spent == 64 / 2048 * (474 + 3 * 532)


# Transfers.


def test_tile_sizes_and_reuse() -> None:
    projection = (("M",), ("P", "R"))
    assert elements_of(projection, {"M": 4, "P": 8, "R": 3}) == 44
    dims = relevant((("M",), ("K",)))
    assert reuse(("N", "K", "M"), {"M": 2, "N": 4, "K": 3}, dims) == 4
    assert reuse(("N", "K", "M"), {"M": 1, "N": 4, "K": 1}, dims) == 4
    periods = reuse(("N", "K"), {"N": np.array([1.0, 4.0]), "K": 2.0}, dims)
    assert np.array_equal(periods, [1, 4])


def route(memory: Memory, network: Network) -> Route:
    """A route to a child with 128 bytes per cycle each way."""
    return Route(memory, network, 128, 128)


def test_transfer_runs_at_the_slowest_of_memory_network_and_child() -> None:
    tile = Transfer(4096, 1, 4, 1, False, False)
    helped = replace(MESH, broadcast=True)
    assert transfer_cycles(route(BUFFER, helped), tile, ported=True) == 64
    assert transfer_cycles(route(BUFFER, MESH), tile, ported=True) == 256
    wide = replace(helped, bandwidth=4096)
    assert transfer_cycles(route(BUFFER, wide), tile, ported=True) == 32


def test_ports_share_the_memory_or_not() -> None:
    ported = replace(BUFFER, ports=64)
    wide = replace(MESH, broadcast=True, bandwidth=4096)
    tile = Transfer(4096, 1, 4, 1, False, False)
    assert transfer_cycles(route(ported, wide), tile, ported=True) == 128
    assert transfer_cycles(route(ported, wide), tile, ported=False) == 32


def test_accumulating_write_reads_first() -> None:
    wide = replace(MESH, reduction=True, bandwidth=4096)
    plain = Transfer(8192, 1, 1, 1, True, False)
    assert transfer_cycles(route(BUFFER, wide), plain, ported=True) == 64
    several = replace(plain, unique=32, spatial=32)
    again = replace(several, accumulates=True)
    once = transfer_cycles(route(BUFFER, wide), several, ported=True)
    assert transfer_cycles(route(BUFFER, wide), again, ported=True) == 2 * once


def test_kind_of_an_implicit_transfer() -> None:
    assert transfer_kind(True, 4) is CollectiveKind.GATHER
    assert transfer_kind(False, 1) is CollectiveKind.BROADCAST
    assert transfer_kind(False, 4) is CollectiveKind.SCATTER


def test_numbers_and_arrays() -> None:
    assert product([]) == 1
    assert total([]) == 0
    assert longest([]) == 0
    assert np.array_equal(longest([1.0, np.array([0.5, 2.0])]), [1, 2])


# Bindings.


def siblings(*kinds: BindingKind) -> Tile:
    """A tile whose children, numbered from 1, are bound in turn."""
    children = tuple(Tile(n + 1, False, (), (), ()) for n in range(len(kinds) + 1))
    bindings = tuple(Binding(90 + n, kind) for n, kind in enumerate(kinds))
    return Tile(0, True, (), (), children, bindings)


SEQUENTIAL, PIPELINE, PARALLEL = (
    BindingKind.SEQUENTIAL,
    BindingKind.PIPELINE,
    BindingKind.PARALLEL,
)


def test_sequential_neighbours_are_one_group() -> None:
    tile = siblings(SEQUENTIAL, SEQUENTIAL, PIPELINE)
    groups = [[n.index for n in g.members] for g in group_children(tile)]
    assert groups == [[4], [1, 2, 3]]
    lanes = [[[n.index for n in g.members] for g in lane] for lane in lanes_of(tile)]
    assert lanes == [[[1, 2, 3], [4]]]


def test_parallel_neighbours_are_lanes_of_their_own() -> None:
    tile = siblings(PARALLEL, PIPELINE)
    assert [[n.index for n in g.members] for g in group_children(tile)] == [[2], [3]]
    lanes = [[[n.index for n in g.members] for g in lane] for lane in lanes_of(tile)]
    assert lanes == [[[1]], [[2], [3]]]


def test_a_binding_is_before_its_left_node() -> None:
    tile = siblings(SEQUENTIAL, PIPELINE)
    kinds = [binding_of(tile, child) for child in tile.children]
    assert kinds == [SEQUENTIAL, PIPELINE, PIPELINE]
    assert binding_of(None, tile) is None


# Data.


def test_names_that_are_not_there() -> None:
    level = Level("GB", BUFFER, None, 1, 1)
    unit = Level("SE", VECTOR, "GB", 1, 1)
    hardware = Hardware((level, unit), {("GB", "SE"): MESH})
    with pytest.raises(CostError, match="no level 'OB'; it has GB, SE"):
        hardware.level("OB")
    with pytest.raises(CostError, match="no link joins level SE to GB"):
        hardware.network("SE", "GB")
    with pytest.raises(CostError, match="SE is a compute unit"):
        _ = unit.memory
    with pytest.raises(CostError, match="GB is a memory"):
        _ = level.unit


def test_an_occupancy_names_its_tensors() -> None:
    occupancy = Occupancy("GB", "here", {"A": 2.0, "B": 8.0})
    assert occupancy.total == 10
    assert occupancy.tensors() == "B (8 bytes), A (2 bytes)"


def test_an_entry_is_known_by_tensor_and_tag() -> None:
    assert Entry("A", "GEMM", "DRAM", "GB", 8, False, ()).key == ("A", "GEMM")
