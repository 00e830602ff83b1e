"""What is read from launch plans: kernels, messages, and who waits."""

import pytest
from rank_plans import hardware_pass, program_cost, program_text
from semantics import parse_module, run_passes

from comet.cost.from_ir.program import launch_plan_of
from comet.cost.gpu.launch_plan import (
    Barrier,
    Launch,
    LibraryCollective,
    Plan,
    Receive,
    Send,
    in_place,
)
from comet.cost.gpu.taxes import Taxes
from comet.dialects.arch import attached_system
from comet.dialects.collective.spmd import rank_count
from comet.dialects.dataflow import ProgramOp

SHARE, WHOLE, RIGHT, RESULT = 64 * 64 * 2, 64 * 128 * 2, 128 * 96 * 2, 64 * 96 * 4


def plan(pattern: str) -> Plan:
    return plan_of(program_text(pattern))


def plan_of(text: str) -> Plan:
    module = run_passes(parse_module(text), hardware_pass())
    system = attached_system(module)
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    assert rank_count(program) == 2
    return launch_plan_of(program, system)


def kernel(plan: Plan, name: str) -> Launch:
    (found,) = (step for step in plan if step.name == name)
    assert isinstance(found, Launch)
    return found


def test_bsp_is_kernels_a_collective_and_barriers():
    first, gather, second, gemm = plan("bsp")
    assert first == Barrier("barrier 1")
    assert gather == LibraryCollective("gather", "all_gather", WHOLE, WHOLE + SHARE)
    assert second == Barrier("barrier 2")
    assert isinstance(gemm, Launch)
    (node,) = gemm.nodes
    assert node.intermediates == WHOLE
    assert node.work.moved.device == WHOLE + RIGHT + RESULT
    assert node.work.programs == 12
    assert not node.copies
    assert node.sends == node.receives == ()


def test_the_size_of_a_gather_to_one_root_is_that_of_the_whole_value():
    gathered = '"K" %x1 on'
    text = program_text("bsp").replace(f"all_gather {gathered}", f"gather {gathered}")
    steps = plan_of(text.replace(gathered, '"K" %x1 root 0 on'))
    assert LibraryCollective("gather", "gather", WHOLE, WHOLE + SHARE) in steps


@pytest.mark.parametrize("pattern", ["push", "pull"])
def test_channels_are_messages(pattern: str):
    copy, gemm = (step for step in plan(pattern) if isinstance(step, Launch))
    (sender,), (receiver,) = copy.nodes, gemm.nodes
    pushes = pattern == "push"
    channel = sender.sends[0].channel
    assert sender.sends == (Send(channel, SHARE, pushes, True, 4, of_input=True),)
    assert sender.copies
    assert sender.counts
    assert receiver.counts
    assert sender.intermediates == sender.work.moved.device == 2 * SHARE
    expected = Receive(channel, SHARE, not pushes, True, True, 3, by_block=True)
    assert receiver.receives == (expected,)
    assert receiver.intermediates == (WHOLE if pushes else 0)


def test_a_persistent_kernel_has_several_parts():
    (fused,) = plan("fused")
    assert isinstance(fused, Launch)
    copy, gemm = fused.nodes
    assert [copy.name, gemm.name] == ["both 1", "both 2"]
    assert copy.sends[0].channel == gemm.receives[0].channel
    assert copy.sends[0].blocks == 4
    assert gemm.receives[0].waits


def test_inputs_in_symmetric_memory_need_no_copy():
    pulled = in_place(plan("pull"))
    assert [step.name for step in pulled] == ["gemm"]
    (node,) = kernel(pulled, "gemm").nodes
    assert not node.receives[0].waits
    assert not node.counts
    assert node.receives[0].remote
    assert in_place(plan("push")) == plan("push")


@pytest.mark.parametrize("pattern", ["bsp", "wait", "pull", "push"])
def test_lowered_channels_cost_the_same(pattern: str):
    text = program_text("bsp")
    connect = f"{hardware_pass()},bsp-to-dataflow{{pattern={pattern}}}"
    before = run_passes(parse_module(text), connect)
    after = run_passes(before, "lower-channels")
    prices: list[Taxes] = []
    for module in (before, after):
        (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
        prices.append(program_cost(program, attached_system(module)))
    assert prices[0] == prices[1]
