"""Inputs that the caller writes to symmetric memory: `inputs=symmetric`."""

import pytest
from covering import one_of
from gpu_ranks import SHARED_TEXTS, on_ranks
from ladder_programs import ag_gemm, launch_plan, predicted
from paths import ROOT
from semantics import assert_close, parse_module, random_inputs, run_passes
from xdsl.dialects.builtin import ModuleOp

from comet.cost.from_ir.program import launch_plan_of, machine_for
from comet.cost.gpu.launch_plan import Launch, Plan, in_place
from comet.cost.gpu.taxes import price_plan
from comet.dialects.arch import attached_system
from comet.dialects.dataflow import (
    ChannelOp,
    KernelOp,
    ProgramOp,
    ReceiveBufferOp,
    StageOp,
)
from comet.interpreter import run
from comet.passes.dataflow.bsp_to_dataflow.choose_pattern import choose_pattern
from comet.passes.dataflow.bsp_to_dataflow.connect import ConnectPass

PAGE = ROOT / "docs/multi-gpu-model.md"
KERNELS = "fuse{strategy=auto},tile,outline-kernels"
SYMMETRIC = "bsp-to-dataflow{pattern=pull inputs=symmetric}"


def kernels_of(name: str, ranks: int, **extents: int) -> ModuleOp:
    """Return a function as kernels, collectives and barriers."""
    text = SHARED_TEXTS[name].format(**extents)
    return run_passes(parse_module(text), f"{on_ranks(ranks)},{KERNELS}")


def planned(module: ModuleOp) -> Plan:
    """Return the launch plan of the only program of a module, as numbers."""
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    system = attached_system(module)
    return launch_plan_of(program, system)


@one_of(4)
@pytest.mark.parametrize("name", ["ag_gemm", "ag_gemm_rows", "expert_gemm"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_programs_mean_the_same(name: str, ranks: int):
    before = kernels_of(name, ranks, M=5, N=7, K=7, E=3)
    after = run_passes(before, SYMMETRIC)
    made = [op for op in after.walk() if isinstance(op, ChannelOp | KernelOp | StageOp)]
    assert [op.name for op in made] == ["dataflow.channel", "dataflow.kernel"]
    lowered = run_passes(after, "lower-channels,verify-sync")
    inputs = random_inputs(before, "f")
    expected = run(before, "f", inputs)
    assert_close(run(after, "f", inputs), expected)
    assert_close(run(lowered, "f", inputs), expected)


def test_what_a_kernel_makes_is_staged_as_before():
    before = kernels_of("ring_attention", 2, M=4, N=6, K=4)
    after = run_passes(before, SYMMETRIC)
    channels = [op for op in after.walk() if isinstance(op, ChannelOp)]
    assert [op.input is not None for op in channels] == [True, True]
    made = kernels_of("gemm_all_reduce", 2, M=4, N=6, K=4)
    auto = run_passes(made, "bsp-to-dataflow{pattern=auto inputs=symmetric}")
    assert not any(isinstance(op, ChannelOp) and op.input for op in auto.walk())


def test_the_taxes_are_those_of_no_copy_and_of_the_flags():
    """Without flags, the program is what the model calls in place, to the second."""
    before = kernels_of("ag_gemm", 4, M=16, N=3584, K=8192)
    copied = planned(run_passes(before, "bsp-to-dataflow{pattern=pull}"))
    module = run_passes(before, SYMMETRIC)
    symmetric = planned(module)
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    machine = machine_for(program, attached_system(module))
    best = price_plan(in_place(copied), machine)
    found = price_plan(symmetric, machine)
    (launch,) = symmetric
    assert isinstance(launch, Launch)
    assert len(launch.signalled_inputs) == 1
    assert price_plan(in_place(symmetric), machine) == best
    assert found.launch == best.launch
    assert found.busy == pytest.approx(best.busy)
    assert found.locality == best.locality
    flags = found.synchronization - best.synchronization
    looks = 5 * machine.device.times.flag_latency
    assert flags > looks
    assert flags < 2 * looks + machine.net.signal
    assert found.total < price_plan(copied, machine).total
    lowered = run_passes(module, "lower-channels")
    assert price_plan(planned(lowered), machine) == found


def test_what_the_page_on_the_model_says_of_sixteen_rows():
    found: list[str] = []
    for options in ("inputs=symmetric", ""):
        for ranks in (8, 4, 2):
            whole = launch_plan(ag_gemm(16, ranks), "mi300x8")
            pattern = "pull" if options else "push"
            passes = f"bsp-to-dataflow{{{pattern=!s} {options}}}"
            found.append(f"{predicted(run_passes(whole, passes)).total * 1e6:.1f}")
    symmetric, pushed = (
        f"{eight}, {four} and {two}" for eight, four, two in (found[:3], found[3:])
    )
    page = " ".join(PAGE.read_text().split())
    assert f"With M = 16 that makes {symmetric} us; pushing takes {pushed}" in page


def test_auto_pulls_inputs_in_place_if_they_are_symmetric():
    before = kernels_of("ag_gemm", 2, M=4, N=64, K=128)
    asked = ConnectPass(inputs="symmetric")
    pulled = choose_pattern(before, ("pull",), asked)
    assert pulled.best.options(asked).inputs == "symmetric"
    pushed = choose_pattern(before, ("push",), asked)
    assert pushed.best.options(asked).inputs == "copied"
    assert pulled.costs[pulled.best].total < min(
        taxes.total for taxes in choose_pattern(before, ("pull",)).costs.values()
    )
    chosen = run_passes(before, "bsp-to-dataflow{pattern=auto inputs=symmetric}")
    lowered = run_passes(chosen, "lower-channels,verify-sync")
    boxes = [op for op in lowered.walk() if isinstance(op, ReceiveBufferOp)]
    assert [op.input is not None for op in boxes] == [True]
