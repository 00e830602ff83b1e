"""`tile` on accelerators: rows, types, the plan in the IR, and what it rejects."""

import pytest
from semantics import assert_same_meaning, run_passes
from tile_trees import fused, only_function, ops_of
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import extents_of
from comet.dialects.schedule import TemporalOp
from comet.passes.schedule.plan_string import PLAN

PLANS = (
    "DRAM: M=3",
    "DRAM: M=6; OB/contract: K=4 N=2",
    "GB: M=2; OB/contract: N=2 M=3 K=2; OB/reduce: N=2; OB/map: N=2 M=3",
    "DRAM: M=2; GB: M=3; OB: N=2",
)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("strategy", ["none", "partial", "full"])
@pytest.mark.parametrize("op", ["gemm_softmax", "gemm_layernorm"])
def test_meaning(op: str, strategy: str, plan: str):
    before = fused(strategy, op=op)
    assert_same_meaning(before, run_passes(before, f'tile{{factors="{plan}"}}'), "main")


def test_the_types_follow_from_the_factors():
    module = run_passes(fused(), 'tile{factors="DRAM: M=3; OB/contract: K=2 N=2"}')
    (contract,) = ops_of(module, ContractOp)
    assert extents_of(contract.lhs) == {"M": 2, "K": 2}
    assert extents_of(contract.rhs) == {"K": 2, "N": 1}
    assert extents_of(contract.result) == {"M": 2, "N": 1}


def test_a_plan_replaces_the_one_before():
    once = run_passes(fused(), 'tile{factors="DRAM: M=3"}')
    twice = run_passes(once, 'tile{factors="GB: M=2"}')
    assert str(twice) == str(run_passes(fused(), 'tile{factors="GB: M=2"}'))


def test_the_plan_is_in_the_ir_and_obeyed():
    module = run_passes(fused(), 'tile{factors="DRAM: M=3"}')
    func = only_function(module)
    assert str(func.attributes[PLAN]) == '"DRAM: M=3"'
    assert str(run_passes(module, "tile")) == str(module)


def test_a_search_leaves_its_plan():
    module = run_passes(fused(), "tile")
    plan = str(only_function(module).attributes[PLAN])
    explicit = run_passes(fused(), f"tile{{factors={plan}}}")
    assert str(explicit) == str(module)


def test_dimensions_that_a_node_lacks_are_left_out():
    module = run_passes(fused(), 'tile{factors="OB: K=2 M=3"}')
    rows = [node.factors for node in ops_of(module, TemporalOp)[2:]]
    assert rows == [{"K": 2, "M": 3}, *({"M": 3},) * 5]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("DRAM: M=4", "factor 4 of M does not divide its extent 6 in the node at DRAM"),
        ("DRAM: M=3; GB: M=3", "factor 3 of M does not divide its extent 2 .* at GB"),
        ("HBM: M=2", "'HBM: M=2' fits no node; there are nodes at DRAM, GB, OB"),
        ("OB/fold: M=2", "'OB/fold: M=2' fits no node"),
        ("OB/map: K=2", "unknown dimension K; the nodes it fits have M, N"),
        ("DRAM: N=2", "tile: 'compound.map' op operand 1 is partial"),
    ],
)
def test_rejects(plan: str, message: str):
    with pytest.raises(PassFailedException, match=message):
        run_passes(fused(), f'tile{{factors="{plan}"}}')


def test_rejects_tiles_that_do_not_fit():
    large = fused(sizes=(1024, 64, 512))
    with pytest.raises(
        PassFailedException,
        match=r"tile: level IB needs \d+ bytes and has 32768; the largest tile is that "
        r"of %a with 131072 bytes: raise the factors above IB, or fuse less",
    ):
        run_passes(large, 'tile{factors="OB/map: M=2"}')


def test_rejects_what_no_factors_make_fit():
    with pytest.raises(
        PassFailedException,
        match="no valid mapping; with the finest tiles, level GB needs",
    ):
        run_passes(fused(sizes=(1, 1, 2**22)), "tile")
