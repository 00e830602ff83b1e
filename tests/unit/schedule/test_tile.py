"""`tile` on accelerators: rows, types, the plan in the IR, and what it rejects."""

from itertools import product

import pytest
from covering import covering, one_of
from semantics import assert_same_meaning, parse_module, run_passes
from tile_trees import fused, only_function, ops_of, tiled
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import extents_of
from comet.dialects.schedule import TemporalOp
from comet.passes.schedule.plan_string import PLAN

PLANS = (
    {"DRAM": "M=3"},
    {"DRAM": "M=6", "contract": "K=4 N=2"},
    {"GB": "M=2", "map": "N=2 M=3", "reduce": "N=2", "contract": "N=2 M=3 K=2"},
    {"DRAM": "M=2", "GB": "M=3", "OB": "N=2"},
)


@one_of(4)
@pytest.mark.parametrize(
    ("op", "strategy", "plan"),
    covering(
        product(("gemm_softmax", "gemm_layernorm"), ("none", "partial", "full"), PLANS)
    ),
)
def test_meaning(op: str, strategy: str, plan: dict[str, str]):
    before = fused(strategy, op=op)
    assert_same_meaning(before, tiled(before, **plan), "main")


def test_the_types_follow_from_the_factors():
    module = run_passes(fused(), 'tile{factors="y_dram: M=3; c_ob: K=2 N=2"}')
    (contract,) = ops_of(module, ContractOp)
    assert extents_of(contract.lhs) == {"M": 2, "K": 2}
    assert extents_of(contract.rhs) == {"K": 2, "N": 1}
    assert extents_of(contract.result) == {"M": 2, "N": 1}


def test_a_plan_replaces_the_one_before():
    once = run_passes(fused(), 'tile{factors="y_dram: M=3"}')
    twice = run_passes(once, 'tile{factors="y_gb: M=2"}')
    assert str(twice) == str(run_passes(fused(), 'tile{factors="y_gb: M=2"}'))


def test_the_plan_is_in_the_ir_and_obeyed():
    module = run_passes(fused(), 'tile{factors="y_dram: M=3"}')
    func = only_function(module)
    assert str(func.attributes[PLAN]) == '"y_dram: M=3"'
    assert str(run_passes(module, "tile")) == str(module)


def test_a_search_leaves_its_plan():
    module = run_passes(fused(), "tile")
    plan = str(only_function(module).attributes[PLAN])
    explicit = run_passes(fused(), f"tile{{factors={plan}}}")
    assert str(explicit) == str(module)


def test_each_node_has_loops_of_its_own():
    module = run_passes(fused(), 'tile{factors="c_ob: K=2 M=3; m_ob: M=6"}')
    found = {node.node_name: node.factors for node in ops_of(module, TemporalOp)}
    assert {name: factors for name, factors in found.items() if factors} == {
        "c_ob": {"K": 2, "M": 3},
        "m_ob": {"M": 6},
    }


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            "y_dram: M=3; y_gb: M=3",
            "factor 3 of M does not divide its extent 2 in @y_gb",
        ),
        ("DRAM: M=2", "no node of this name; DRAM is now written y_dram"),
        ("OB/reduce: M=2", "this name; OB/reduce is now written m_ob, l_ob"),
        ("OB/1/exp: M=2", "this name; OB/1/exp is now written e_ob"),
        ("c_ob: M=2; c_ob: M=3", "has two entries for c_ob; write one"),
        ("c_ob: M=2 warps=4", "launch numbers, and @c_ob is not launched"),
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
        run_passes(large, 'tile{factors="s_ob: M=2; e_ob: M=2; y_ob: M=2"}')


def test_rejects_what_no_factors_make_fit():
    with pytest.raises(
        PassFailedException,
        match="no valid mapping; with the finest tiles, level GB needs",
    ):
        run_passes(fused(sizes=(1, 1, 2**22)), "tile")


def test_a_result_at_another_level_than_its_body_is_rejected():
    """A mapping would need two nodes for it."""
    text = str(fused())
    node = text.index("schedule.temporal @s_ob")
    end = text.index("{", text.index("outs(", node))
    head = text[node:end]
    moved = head[: head.rindex("@OB")] + "@GB" + head[head.rindex("@OB") + 3 :]
    used = text.index("ins(%s : ", end)
    before, after = text[:used].replace(head, moved), text[used:]
    module = parse_module(before + after.replace("@OB", "@GB", 1))
    with pytest.raises(PassFailedException, match="several nodes of a mapping"):
        run_passes(module, "tile")
