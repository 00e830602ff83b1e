"""
Blocks of transformers as kernels of one GPU: how many, how fast, how long to compile.

    python benchmarks/graphs.py [--blocks llama gpt2_backward] [--tokens 128 2048]
        [--machine h200x1]

Each block of `samples/blocks` at its published width is compiled by `comet-opt`, in a
process of its own. Prints a table of predictions: the time of our kernels, of the same
graph with one kernel for each op, and of a library; ratios without launches are behind
the bar. A library has products at the rates that cuBLAS reached, with results in the
type of their operands, and one pass over memory for each chain of other ops between
two products. Every launch costs the same.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from graph_programs import BLOCKS, blocks
from ladder_programs import Case, after_passes, predicted_times
from markdown import markdown
from xdsl.ir import Operation, SSAValue

from comet.cost.gpu.device import Device
from comet.dialects.arch import attached_system
from comet.dialects.compound import CastOp, ContractOp, FillOp, IndexOp, View
from comet.dialects.compound.dims import (
    bytes_of,
    element_type_of,
    extents_of,
    iteration_dims,
    joined_extents,
)
from comet.dialects.dataflow import KernelOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.graph.decompose import DecomposePass
from comet.passes.graph.lower_views import LowerViewsPass
from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.groups import elementary_ops
from comet.passes.schedule.fuse.gpu.simplify import simplify
from comet.passes.schedule.fuse.gpu.trial import Trials
from comet.passes.schedule.fuse.strategy import Strategy

ROOT = Path(__file__).parents[1]
HARDWARE = ROOT / "samples" / "hardware"

CUBLAS_FLOPS = 790e12
"""What torch's products in bf16 reached on one H200."""
CUBLAS_BYTES = 4.3e12
"""The bytes a second of device memory that they reached."""
FORMS = (Strategy("full", full_rows=True), Strategy("partial"))


@dataclass(frozen=True)
class Time:
    """A prediction."""

    launches: int
    seconds: float
    """With launches."""

    def body(self, launch: float) -> float:
        """Return the seconds without launches."""
        return self.seconds - self.launches * launch


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", nargs="+", default=BLOCKS, choices=BLOCKS)
    parser.add_argument("--tokens", nargs="+", type=int, default=(128, 2048))
    parser.add_argument("--machine", default="h200x1")
    options = parser.parse_args()
    heads = (
        "block",
        "ops",
        "kernels",
        "compile",
        "predicted",
        "one kernel an op",
        "library",
    )
    cases = blocks(options.blocks, options.tokens)
    print(markdown(heads, (row(case, options.machine) for case in cases)))


def row(case: Case, machine: str) -> list[str]:
    """Return the cells of a block."""
    plan = after_passes(case, machine, (TritonDistributedPass(to="dataflow"),))
    kernels = sum(isinstance(op, KernelOp) for op in plan.walk())
    ours = Time(kernels, predicted_times(plan).eager)
    ops = elementary(case, machine)
    trials = Trials(attached_system(plan))
    alone, library = one_by_one(ops, trials), by_library(ops, trials.gpu)
    launch = trials.gpu.times.launch
    return [
        case.name,
        str(len(ops)),
        str(kernels),
        f"{compile_seconds(case.text, machine):.1f} s",
        f"{ours.seconds * 1e6:,.1f} us",
        compared(alone, ours, launch),
        compared(library, ours, launch),
    ]


def elementary(case: Case, machine: str) -> Sequence[Operation]:
    """Return the ops of a program that kernels execute."""
    graph = after_passes(case, machine, (DecomposePass("f32"), LowerViewsPass()))
    (function,) = compute_functions(graph)
    simplify(function)
    return elementary_ops(function)


def compared(other: Time, ours: Time, launch: float) -> str:
    """Return the launches of another form, and how many times longer it takes."""
    bodies = other.body(launch) / ours.body(launch)
    return f"{other.launches}: {other.seconds / ours.seconds:.2f} \\| {bodies:.2f}"


def compile_seconds(text: str, machine: str) -> float:
    """
    Return the processor time of `comet-opt`, from IR to a module of Triton.

    It is that of one process: several take less time, but more of processors.
    """
    passes = f'attach-hardware{{path="{HARDWARE / machine}.yaml"}},triton-distributed'
    tool = str(Path(sys.executable).with_name("comet-opt"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.mlir"
        path.write_text(text)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [tool, str(path), "-p", passes, "-t", "triton", "--jobs", "1"]
        subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def computes(op: Operation) -> bool:
    """Return whether an op is more than a view of what is in memory."""
    return not isinstance(op, View | IndexOp | FillOp)


def one_by_one(ops: Sequence[Operation], trials: Trials) -> Time:
    """Return the time of one kernel for each op, each with its best tiles."""
    forms = Forms(trials, FORMS)
    alone = [op for op in ops if computes(op)]
    return Time(
        len(alone), sum(forms.seconds((op,), tuple(op.results)) for op in alone)
    )


def by_library(ops: Sequence[Operation], gpu: Device) -> Time:
    """Return the time of products by cuBLAS, and of one pass for each chain."""
    products = [op for op in ops if isinstance(op, ContractOp)]
    times = [product_seconds(op) for op in products]
    times += [moved / gpu.memory.hbm_bandwidth for moved in chain_bytes(ops)]
    return Time(len(times), sum(times) + len(times) * gpu.times.launch)


def product_seconds(op: ContractOp) -> float:
    """Return how long cuBLAS takes, whose result has the type of the operands."""
    extents = joined_extents((*op.operands, op.result))
    flops = 2 * prod(extents[dim] for dim in iteration_dims(op))
    moved = sum(map(bytes_of, op.operands)) + narrow_bytes(op.result)
    return max(flops / CUBLAS_FLOPS, moved / CUBLAS_BYTES)


def narrow_bytes(value: SSAValue) -> int:
    """Return the bytes of a value; of a product in the type of its operands."""
    op, size = value.owner, bytes_of(value)
    if isinstance(op, ContractOp):
        return prod(extents_of(value).values()) * _width(op.lhs)
    if isinstance(op, CastOp):
        return min(size, narrow_bytes(op.operands[0]))
    return size


def _width(value: SSAValue) -> int:
    return element_type_of(value).bitwidth // 8


def chain_bytes(ops: Sequence[Operation]) -> Iterator[int]:
    """
    Yield the bytes that each chain of ops between products loads and stores.

    A chain is connected ops with equally many products before them.
    """
    depth: dict[Operation, int] = {}
    chain_of: dict[Operation, list[Operation]] = {}
    for op in ops:
        makers = [v.owner for v in op.operands if isinstance(v.owner, Operation)]
        known = [maker for maker in makers if maker in depth]
        depth[op] = max(
            (depth[maker] + isinstance(maker, ContractOp) for maker in known), default=0
        )
        if isinstance(op, ContractOp) or not computes(op):
            continue
        chain = [op]
        for maker in known:
            if depth[maker] == depth[op] and maker in chain_of:
                if (other := chain_of[maker]) is not chain:
                    other += chain
                    chain_of |= dict.fromkeys(chain, other)
                    chain = other
        chain_of |= dict.fromkeys(chain, chain)
    for chain in {id(chain): chain for chain in chain_of.values()}.values():
        yield moved_by(chain)


def moved_by(chain: Sequence[Operation]) -> int:
    """Return the bytes of what ops load, and of what others read of them."""
    inside = set(chain)
    read = dict.fromkeys(v for op in chain for v in op.operands)
    loaded = [v for v in read if v.owner not in inside and not _is_constant(v)]
    stored = [
        result
        for op in chain
        for result in op.results
        if any(use.operation not in inside for use in result.uses)
    ]
    return sum(map(narrow_bytes, (*loaded, *stored)))


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, FillOp | IndexOp)


if __name__ == "__main__":
    main()
