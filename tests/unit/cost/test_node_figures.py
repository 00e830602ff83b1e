"""The figures of kernels: read once for equal ones, and for no others."""

from collections.abc import Hashable
from dataclasses import replace
from functools import partial

import pytest
from rank_plans import hardware_pass, program_text
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp

from comet.cost.from_ir import node_figures
from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.node_figures import (
    KnownFigures,
    NodeFigures,
    figures_of,
    kernel_description,
)
from comet.cost.from_ir.program import launch_plan_of, read_plan
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.dataflow import KernelOp, ProgramOp
from comet.passes.dataflow.bsp_to_dataflow.choose_pattern import (
    PATTERNS,
    PatternName,
    PatternOptions,
    with_pattern,
)
from comet.recent import Recent


def bsp() -> ModuleOp:
    return run_passes(parse_module(program_text("bsp")), hardware_pass())


def kernels(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.walk() if isinstance(op, KernelOp)]


def consumer(options: PatternOptions) -> KernelOp:
    """Return the last kernel of a program with a pattern."""
    return kernels(with_pattern(bsp(), options))[-1]


def test_plans_of_copies_are_those_without_a_memory(monkeypatch: pytest.MonkeyPatch):
    """Each pattern twice, with equal kernels and others."""
    module = bsp()
    system = attached_system(module)
    gpu, levels, read = device_of(system), gpu_levels(system), list[KernelOp]()
    empty = Recent[Hashable, tuple[NodeFigures, ...]](node_figures.MOST_KNOWN)
    monkeypatch.setattr(node_figures, "_KNOWN", empty)
    options = [PatternOptions(pattern) for pattern in PATTERNS]
    options += [PatternOptions(pattern, blocks=(("M", 4),)) for pattern in PATTERNS]
    copies = [with_pattern(module, each) for each in 2 * options]
    alone = partial(figures_of, gpu=gpu, levels=levels)
    expected = [read_plan(program, gpu, alone) for program in programs(copies)]

    def noting(kernel: KernelOp, *_: object) -> tuple[NodeFigures, ...]:
        read.append(kernel)
        return figures_of(kernel, gpu, levels)

    monkeypatch.setattr(node_figures, "figures_of", noting)
    found = [launch_plan_of(program, system) for program in programs(copies)]
    assert found == expected
    assert 0 < len(read) <= sum(len(kernels(copy)) for copy in copies) / 2


def test_equal_kernels_of_two_gpus_have_their_own_figures():
    system, kernel = attached_system(bsp()), consumer(PatternOptions("push"))
    gpu, levels = device_of(system), gpu_levels(system)
    narrow = replace(gpu, memory=replace(gpu.memory, load_bytes=4))
    first, second = (figures_of(kernel, each, levels) for each in (gpu, narrow))
    assert first != second
    assert KnownFigures(gpu, levels).of(kernel) == first
    assert KnownFigures(narrow, levels).of(kernel) == second


def programs(modules: list[ModuleOp]) -> list[ProgramOp]:
    found = (op for module in modules for op in module.walk())
    return [op for op in found if isinstance(op, ProgramOp)]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_kernels_of_copies_are_equal(pattern: PatternName):
    copies = (with_pattern(bsp(), PatternOptions(pattern)) for _ in range(2))
    first, again = (list(map(kernel_description, kernels(copy))) for copy in copies)
    assert first == again


@pytest.mark.parametrize(
    "other",
    [
        PatternOptions("pull"),
        PatternOptions("push", sources="all"),
        PatternOptions("push", blocks=(("M", 2),)),
    ],
    ids=lambda options: options.label,
)
def test_kernels_that_read_other_memory_or_other_tiles_differ(other: PatternOptions):
    """Cuts of messages are said by the channel, which is outside of the kernel."""
    pushed = kernel_description(consumer(PatternOptions("push")))
    assert kernel_description(consumer(other)) != pushed
