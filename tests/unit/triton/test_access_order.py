"""Copies, waits, pushes and signals in the IR, and accesses in what is emitted."""

import ast
from collections.abc import Iterator
from functools import cache
from typing import Literal

import pytest
from covering import EVERY_CASE, one_of
from paths import ROOT, SAMPLES
from rank_matrix import PATTERNS
from semantics import comet_context, parse_module, run_passes
from triton_modules import to_triton
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound import IndexOp
from comet.dialects.compound.dims import level_of
from comet.dialects.compound.rename import viewed
from comet.dialects.dataflow import KernelOp, PushOp, SignalOp, StageOp, WaitOp
from comet.dialects.schedule import CopyOp
from comet.dialects.schedule.node import outside
from comet.passes.dataflow.bsp_to_dataflow import BspToDataflowPass
from comet.passes.pipelines.triton_distributed import TritonDistributedPass

CHANNELS = "dataflow_all_gather_gemm"
"""The sample that has channels already."""
ONE_RANK = ("ssm_scan",)
NAMES = [
    path.stem
    for path in sorted(SAMPLES.glob("*.mlir"))
    if path.stem not in (CHANNELS, *ONE_RANK)
]
RANKS = 2
STRATEGIES: tuple[Literal["full", "partial", "none"], ...] = ("full", "partial", "none")
"""The samples take turns: a search among them takes longer than all else."""
HARDWARE = f'attach-hardware{{path="{ROOT}/samples/hardware/h200x8.yaml"}}'
PLACED = "lower-channels,materialize-copies,hoist-copies,place-waits,verify-sync"

CALLS = {
    "load": "load",
    "store": "store",
    "atomic_add": "store",
    "wait": "wait",
    "wait_all": "wait",
    "signal": "signal",
    "signal_all": "signal",
    "signal_add": "signal",
    "signal_add_all": "signal",
}
"""What functions of Triton and of the shim are."""


@cache
def kernels(name: str) -> ModuleOp:
    """Return a sample as kernels and collectives, before any is a channel."""
    text = (SAMPLES / f"{name}.mlir").read_text()
    module = run_passes(parse_module(text), HARDWARE)
    dim = None if "collective.shard" in text else ("N",)
    strategy = STRATEGIES[NAMES.index(name) % len(STRATEGIES)]
    context = comet_context().clone()
    pipeline = TritonDistributedPass(ranks=RANKS, dim=dim, strategy=strategy)
    for pass_ in pipeline.passes(context, module):
        if isinstance(pass_, BspToDataflowPass):
            break
        pass_.apply(context, module)
    return module


def in_ir(module: ModuleOp) -> Iterator[list[str]]:
    """Yield what the ops of each kernel do, in order."""
    for kernel in module.walk():
        if isinstance(kernel, KernelOp):
            memory = level_of(kernel.nodes[0].outs[0])
            words = (does(op, memory) for op in kernel.walk())
            yield [word for word in words if word is not None]


def does(op: Operation, memory: str | None) -> str | None:
    """Return the access that an op is, None if it is none."""
    match op:
        case CopyOp() if level_of(op.result) == memory:
            return "store"
        case CopyOp() if level_of(op.source) == memory:
            computed = isinstance(viewed(outside(op.source)).owner, IndexOp)
            return None if computed else "load"
        case PushOp() | StageOp():
            return "store"
        case WaitOp():
            return "wait"
        case SignalOp():
            return "signal"
        case _:
            return None


def in_text(source: str) -> Iterator[list[str]]:
    """
    Yield the accesses of each kernel of an emitted module, in order.

    Loads of ids are left out: nothing in the program writes them, so that they
    may stand before waits, where the slice of the ids begins.
    """
    lines = [line for line in source.splitlines() if not line.endswith("  # ids")]
    for item in ast.parse("\n".join(lines)).body:
        if isinstance(item, ast.FunctionDef) and any(
            ast.unparse(each).startswith("triton.jit") for each in item.decorator_list
        ):
            yield [word for each in item.body for word in accesses(each)]


def accesses(item: ast.AST) -> Iterator[str]:
    """Yield the accesses of Python code, arguments before their call."""
    for child in ast.iter_child_nodes(item):
        yield from accesses(child)
    if isinstance(item, ast.Call):
        name = ast.unparse(item.func).removeprefix("tl.")
        if name in CALLS:
            yield CALLS[name]


@one_of(4)
@pytest.mark.parametrize(
    ("name", "first"),
    [
        (name, first)
        for index, name in enumerate(NAMES)
        for first in range(3)
        if EVERY_CASE or (index + index // len(STRATEGIES)) % 3 == first
        if EVERY_CASE or index % 2 == 0
    ],
)
def test_the_ir_has_the_accesses_of_the_program_in_their_order(name: str, first: int):
    """
    Of every third pattern: of the first, or of the second and so on.

    Of two of these, from another on for each sample; of all by `make exhaustive`.
    """
    compared, some = 0, list(PATTERNS.values())[first::3]
    start = NAMES.index(name) % len(some)
    for options in some[start:] + some[:start]:
        if compared == 2 and not EVERY_CASE:
            break
        try:
            module = run_passes(kernels(name), f"bsp-to-dataflow{{{options}}},{PLACED}")
        except PassFailedException:  # the pattern does not apply
            continue
        assert list(in_text(to_triton(module))) == list(in_ir(module)), options
        compared += 1
    assert compared


def test_a_program_with_channels_has_them_too():
    before = parse_module((SAMPLES / f"{CHANNELS}.mlir").read_text())
    module = run_passes(before, f"{HARDWARE},{PLACED}")
    found = list(in_text(to_triton(module)))
    assert found == list(in_ir(module))
    assert {word for words in found for word in words} == set(CALLS.values())
