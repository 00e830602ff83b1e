"""Programs of several ranks that benchmarks share: samples at other sizes, compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpu_run.case import Predicted
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass, PassPipeline

from comet.cost.from_ir.program import launch_plan_of, machine_for
from comet.cost.gpu.launch_plan import Machine, in_place
from comet.cost.gpu.taxes import Taxes, price_plan
from comet.dialects.arch import attached_system
from comet.dialects.dataflow import ProgramOp
from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.dataflow.outline_kernels import OutlineKernelsPass
from comet.passes.graph.decompose import DecomposePass
from comet.passes.graph.split import SplitPass
from comet.passes.graph.stream import StreamPass
from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.tile import TilePass
from comet.passes.sharding.insert_collectives import InsertCollectivesPass
from comet.passes.sharding.lower_reductions import LowerReductionsPass
from comet.passes.sharding.place_collectives import PlaceCollectivesPass
from comet.passes.sharding.select_ranks import SelectRanksPass
from comet.universe import installed

SAMPLES = Path(__file__).parents[1] / "samples"

PATTERNS: Mapping[str, TritonDistributedPass] = {
    "bsp": TritonDistributedPass(ranks=2, pattern="bsp"),
    "wait": TritonDistributedPass(ranks=2, pattern="wait"),
    "pull": TritonDistributedPass(ranks=2, pattern="pull"),
    "in_place": TritonDistributedPass(ranks=2, pattern="pull", inputs="symmetric"),
    "push": TritonDistributedPass(ranks=2, pattern="push"),
    "fused": TritonDistributedPass(ranks=2, pattern="fused"),
    "persistent": TritonDistributedPass(ranks=2, pattern="fused", persistent=True),
}
"""The forms of programs of ranks, of two here; replace `ranks` for others."""
SAMPLE_NAMES = (
    "ag_gemm",
    "gemm_all_reduce",
    "gemm_reduce_scatter",
    "flash_decode",
    "ring_attention",
    "expert_gemm",
    "gemm_softmax",
    "gemm_layernorm",
)
"""The samples for several ranks, each with collectives of another kind."""


@dataclass(frozen=True)
class Sizes:
    """Extents that stay the same over the cases."""

    columns: int
    """N of AG+GEMM."""
    depth: int
    """K of AG+GEMM."""
    heads: int
    """Heads of keys in flash decode."""
    queries: int
    """Query heads for each of them."""
    head_size: int
    parts: int
    """Parts of the keys of one rank, which programs of their own work on (split-K)."""


PAPER = Sizes(columns=3584, depth=8192, heads=12, queries=8, head_size=128, parts=32)
"""Those of arXiv 2511.02168; N is one of eight shares of 28672."""

TINY = Sizes(columns=32, depth=64, heads=1, queries=2, head_size=16, parts=2)
"""Small enough to interpret."""


@dataclass(frozen=True)
class Case:
    """A function at one size, for some ranks."""

    name: str
    ranks: int
    text: str
    parts: int = 1
    """Parts of the keys of each rank that programs of their own work on (split-K)."""


def ag_gemm(rows: int, ranks: int, sizes: Sizes = PAPER) -> Case:
    """Return AG+GEMM with that many rows M."""
    extents = {64: rows, 128: sizes.depth, 96: sizes.columns}
    return Case(f"AG+GEMM M={rows}", ranks, resized("ag_gemm", extents))


def product(workload: str, rows: int, ranks: int, sizes: Sizes = PAPER) -> Case:
    """Return a product with that many rows, and what ranks exchange around it."""
    name = f"{workload} M={rows}"
    if workload == "ag_gemm_k":
        return replace(ag_gemm(rows, ranks, sizes), name=name)
    if workload == "ag_gemm_m":
        text = ag_gemm(rows, ranks, sizes).text
        return Case(name, ranks, text.replace('{K = ["rank"]}', '{M = ["rank"]}'))
    extents = {64: rows, 128: sizes.depth, 96: sizes.columns}
    return Case(name, ranks, resized(workload, extents))


def flash_decode(batch: int, keys: int, ranks: int, sizes: Sizes = PAPER) -> Case:
    """Return flash decode with that many keys on every rank."""
    extents = {4: batch, 2: sizes.heads, 3: sizes.queries, 256: keys * ranks}
    extents |= {32: sizes.head_size, 16: sizes.head_size}
    text = resized("flash_decode", extents)
    return Case(f"flash decode B={batch} KV={keys}", ranks, text, sizes.parts)


def sample(name: str, ranks: int) -> Case:
    """Return a sample as it is."""
    return Case(f"sample {name}", ranks, (SAMPLES / f"{name}.mlir").read_text())


def resized(sample: str, sizes: Mapping[int, int]) -> str:
    """Return the text of a sample with other extents in its tensor types."""

    def tensor(found: re.Match[str]) -> str:
        extents = (sizes[int(extent)] for extent in found[1].split("x"))
        return f"tensor<{'x'.join(map(str, extents))}x{found[2]}>"

    text = (SAMPLES / f"{sample}.mlir").read_text()
    return re.sub(r"tensor<(\d+(?:x\d+)*)x([a-z]\w*)>", tensor, text)


def parsed(text: str) -> tuple[Context, ModuleOp]:
    """Return the module of a text, and a context with all dialects."""
    context = Context()
    for name, factory in installed().all_dialects.items():
        context.register_dialect(name, factory)
    return context, Parser(context, text).parse_module()


def after_passes(
    case: Case, hardware: str, passes: Iterable[ModulePass], *, one_gpu: bool = False
) -> ModuleOp:
    """
    Return the module of a case, with hardware attached, after some passes.

    `one_gpu`: all ranks share one GPU.
    """
    context, module = parsed(case.text)
    path = str(SAMPLES / "hardware" / f"{hardware}.yaml")
    attach = AttachHardwarePass(path, sharing=case.ranks if one_gpu else None)
    PassPipeline((attach, *passes)).apply(context, module)
    return module


def launch_plan(case: Case, hardware: str, *, one_gpu: bool = False) -> ModuleOp:
    """Return a case as kernels, collectives and barriers; see `after_passes`."""
    return after_passes(case, hardware, _passes(case), one_gpu=one_gpu)


def _passes(case: Case) -> Iterator[ModulePass]:
    yield SelectRanksPass(case.ranks)
    yield DecomposePass(accumulator="f32")
    yield StreamPass()
    if case.parts > 1:
        yield SplitPass("S", case.parts * case.ranks)
    if case.ranks > 1:
        yield InsertCollectivesPass()
        yield PlaceCollectivesPass()
        yield LowerReductionsPass()
    yield FusePass(strategy="auto")
    yield TilePass()
    yield OutlineKernelsPass()


def predicted(
    module: ModuleOp,
    *,
    graph: bool = False,
    symmetric_inputs: bool = False,
) -> Taxes:
    """
    Return where the time of a launch plan goes, by the model.

    `graph`: replayed from a captured graph. `symmetric_inputs`: inputs that
    peers pull lie in symmetric memory.
    """
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    system = attached_system(module)
    machine: Machine = machine_for(program, system, graph=graph)
    plan = launch_plan_of(program, system)
    plan = in_place(plan) if symmetric_inputs else plan
    return price_plan(plan, machine)


def predicted_times(module: ModuleOp, *, symmetric_inputs: bool = False) -> Predicted:
    """Return the seconds of a launch plan, by the model; see `predicted`."""

    def seconds(graph: bool) -> float:
        taxes = predicted(module, graph=graph, symmetric_inputs=symmetric_inputs)
        return taxes.total

    return Predicted(eager=seconds(False), graph=seconds(True))
