"""The choice of pattern and communication tiles: the cheapest of what applies."""

import pytest
from rank_plans import hardware_pass, program_text
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import attached_system
from comet.dialects.dataflow import ProgramOp
from comet.passes.choose_pattern import (
    PATTERNS,
    Candidate,
    candidates,
    choose_pattern,
    program_cost,
    with_pattern,
)


def bsp() -> ModuleOp:
    return run_passes(parse_module(program_text("bsp")), hardware_pass())


def test_the_cheapest_of_all_is_chosen():
    module = bsp()
    before = str(module)
    choice = choose_pattern(module)
    assert str(module) == before
    cheapest = min(choice.costs.values(), key=lambda taxes: taxes.total)
    assert choice.costs[choice.best].total == cheapest.total
    assert {candidate.pattern for candidate in choice.costs} >= {"push", "pull", "bsp"}
    found = choice.of_pattern(choice.best.pattern)
    assert found is not None
    assert found[1] == cheapest


def test_a_cost_is_that_of_the_program_that_would_be_launched():
    choice = choose_pattern(bsp(), ("pull",), resident=True)
    for candidate, taxes in choice.costs.items():
        changed = with_pattern(bsp(), candidate)
        (program,) = (op for op in changed.walk() if isinstance(op, ProgramOp))
        system = attached_system(changed)
        again = program_cost(program, system, resident=True)
        assert taxes.total == pytest.approx(again.total)
        assert program_cost(program, system).total > again.total


def test_tiles_of_the_messages_are_part_of_the_space():
    tried = list(candidates(bsp(), "push"))
    blocks = [None, "M=1 K=1", "M=1 K=4", "M=4 K=1", "M=4 K=4"]
    assert tried == [Candidate("push", each) for each in blocks]
    choice = choose_pattern(bsp(), ("push",))
    assert set(choice.costs) == set(tried)


def test_what_does_not_apply_says_why():
    choice = choose_pattern(bsp())
    assert set(choice.refused) == {"fused"}
    assert "does not apply" in choice.refused["fused"]
    assert choice.of_pattern("fused") is None
    assert {c.pattern for c in choice.costs} == set(PATTERNS) - {"fused"}


def test_rejects_a_program_that_no_pattern_fits():
    with pytest.raises(PassFailedException, match=r"no pattern does: .*does not apply"):
        choose_pattern(bsp(), ("fused",))


def test_a_graph_makes_launches_cheap():
    eager, graph = (choose_pattern(bsp(), graph=graph) for graph in (False, True))
    for candidate, taxes in graph.costs.items():
        assert taxes.launch < eager.costs[candidate].launch


def test_one_kernel_that_sends_and_reads_is_tried_where_asked_for():
    without, tried = (
        choose_pattern(bsp(), ("push", "fused"), persistent=persistent)
        for persistent in (False, True)
    )
    assert {candidate.pattern for candidate in without.costs} == {"push"}
    assert tried.best.pattern == "fused"
    assert tried.best.persistent
    assert tried.costs[tried.best].launch == pytest.approx(6e-6)
