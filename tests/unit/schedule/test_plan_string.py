"""Plan strings where there are several nests: which entry is for which node."""

import pytest
from named_ops import NAMED_OPS
from semantics import parse_module, run_passes
from triton_modules import hardware
from xdsl.dialects.builtin import ModuleOp

from comet.dialects.compound import ContractOp
from comet.dialects.schedule import TemporalOp
from comet.passes.schedule.plan_string import (
    entry_for,
    nest_number,
    node_level,
    parse_plan,
)

ATTENTION = next(op for op in NAMED_OPS if op.title == "attention")


def fused(strategy: str) -> ModuleOp:
    """Return attention on the edge sample, fused by a strategy."""
    text = ATTENTION.text(ATTENTION.even)
    passes = f"decompose{{accumulator=input}},fuse{{strategy={strategy}}}"
    return run_passes(parse_module(text), f"{hardware('edge.yaml')},{passes}")


def nodes(module: ModuleOp) -> list[TemporalOp]:
    return [op for op in module.walk() if isinstance(op, TemporalOp)]


@pytest.mark.parametrize(("strategy", "nests"), [("full", 1), ("partial", 2)])
def test_partial_gives_every_contraction_a_nest(strategy: str, nests: int):
    numbers = [nest_number(node) for node in nodes(fused(strategy))]
    assert sorted(set(numbers)) == [str(1 + index) for index in range(nests)]


def test_numbers_choose_a_nest():
    plan = parse_plan("OB: M=2; OB/contract: M=3; OB/2: M=4; OB/2/contract: M=5")
    found: dict[tuple[str, bool], object] = {}
    for node in nodes(fused("partial")):
        if node_level(node) == "OB":
            contracts = any(isinstance(op, ContractOp) for op in node.body.walk())
            entry = entry_for(node, plan)
            found[nest_number(node), contracts] = None if entry is None else entry.rows
    assert found == {
        ("1", True): (("M", 3),),
        ("1", False): (("M", 2),),
        ("2", True): (("M", 5),),
    }


def test_the_plan_of_several_nests_is_obeyed():
    module = run_passes(fused("partial"), "tile")
    plan = "DRAM/1: M=4 H=4; DRAM/2: M=8 H=4; OB/2/contract: E=2"
    again = run_passes(fused("partial"), f'tile{{factors="{plan}"}}')
    roots = [node for node in nodes(again) if node_level(node) == "DRAM"]
    assert [dict(node.factors) for node in roots] == [
        {"M": 4, "H": 4},
        {"M": 8, "H": 4},
    ]
    assert len(nodes(module)) == len(nodes(again))
