"""Capacity: what is alive at each level while each op runs."""

import numpy as np
import pytest
from semantics import run_passes
from tile_trees import fused, only_function, ops_of, tiled
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.capacity import (
    Demand,
    Layout,
    Sizes,
    demands,
    describe_overflow,
    overflow,
)
from comet.dialects.arch import attached_system
from comet.dialects.compound import ContractOp, MapOp
from comet.dialects.compound.dims import bytes_of
from comet.dialects.schedule import TemporalOp
from comet.passes.analysis.levels import compute_block


def only_block(module: ModuleOp) -> Block:
    return compute_block(only_function(module))


def during(
    plan: dict[str, str], op: type[ContractOp | MapOp], level: str
) -> dict[str, int]:
    """Return the bytes alive at a level while the first op of a class runs."""
    module = tiled(fused(), **plan)
    first = ops_of(module, op)[0]
    found = demands(only_block(module), Sizes())
    (demand,) = [d for d in found if d.op is first and d.level == level]
    return {name: int(np.max(size)) for name, size in demand.values.items()}


def test_without_loops_each_tile_is_there_once():
    # N = 32 is spread over 16 cores, so that each has two columns.
    assert during({}, ContractOp, "IB") == {"a": 6 * 4 * 2}
    assert during({}, ContractOp, "WB") == {"b": 4 * 2 * 2}


def test_tiles_that_a_repeated_loop_brings_in_are_there_twice():
    inner = during({"DRAM": "M=3"}, ContractOp, "GB")
    assert inner["a"] == 2 * (2 * 4) * 2
    assert inner["b"] == 2 * (4 * 8) * 2


def test_part_of_a_resident_tile_takes_no_room_of_its_own():
    whole = during({}, ContractOp, "IB")
    assert during({"contract": "K=2"}, ContractOp, "IB") == whole


def test_a_value_dies_with_its_last_use():
    module = fused()
    block = only_block(module)
    maps = ops_of(module, MapOp)
    alive = {
        op.kind.data: {name.partition("_")[0] for name in demand.values}
        for op in maps
        for demand in demands(block, Sizes())
        if demand.op is op and demand.level == "OB"
    }
    first, *_, last = alive.values()
    assert {"c", "s"} <= first
    assert "c" not in last
    assert "e" in last


def test_spare_bytes_are_those_of_the_fullest_level():
    module = fused()
    block, system = only_block(module), attached_system(module)
    limited = [
        (system.level(d.level).capacity or 0) - int(np.max(d.total))
        for d in demands(block, Sizes())
        if d.level != "DRAM"
    ]
    assert Layout.of(block, system).spare_bytes(Sizes()) == min(limited)
    assert overflow(block, system, Sizes()) is None


def test_sizes_may_be_those_of_many_candidates():
    module = fused()
    block, system = only_block(module), attached_system(module)
    scale = np.asarray([1, 10**9])
    sizes = Sizes(bytes_of=lambda value: bytes_of(value) * scale)
    spare = Layout.of(block, system).spare_bytes(sizes)
    assert [bool(room >= 0) for room in np.asarray(spare)] == [True, False]


def test_an_overflow_names_level_tensor_and_bytes():
    module = fused(sizes=(2**14, 4, 32))
    block, system = only_block(module), attached_system(module)
    found = overflow(block, system, Sizes())
    assert isinstance(found, Demand)
    assert describe_overflow(found, system) == (
        "level IB needs 131072 bytes and has 32768; the largest tile is that of %a "
        "with 131072 bytes"
    )
    with pytest.raises(PassFailedException, match="tile: level IB needs 131072 bytes"):
        run_passes(module, 'tile{factors=""}')


def test_the_outermost_level_has_no_limit():
    module = tiled(fused(sizes=(6, 4, 32)), DRAM="M=6")
    block, system = only_block(module), attached_system(module)
    sizes = Sizes(
        bytes_of=lambda value: 10**15 if "DRAM" in str(value.type) else bytes_of(value)
    )
    assert overflow(block, system, sizes) is None


def test_iterations_count_in_temporal_nodes_only():
    sizes = Sizes()
    module = tiled(fused(), DRAM="M=3", contract="K=2 N=2")
    counts = [sizes.iterations(node) for node in ops_of(module, TemporalOp)]
    assert counts == [3, 1, 4, 1, 1, 1, 1, 1]
