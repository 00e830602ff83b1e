"""What benchmarks/paper.py runs: programs, strategies, and the search for mappings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from paper_tool_search import search_tool
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.universe import Universe

from comet.cost.estimate import Estimate, ModelName
from comet.cost.from_ir import estimate_module
from comet.dialects.arch import attached_system
from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.comet_accelerator import CometAcceleratorPass, whole_axes
from comet.passes.decompose import DecomposePass
from comet.passes.functions import compute_functions
from comet.passes.fuse import FusePass
from comet.passes.tile_accelerator import search
from comet.passes.tile_template import Template, make_template

ROOT = Path(__file__).parents[1]
HARDWARE = ROOT / "samples" / "hardware"
MODELS: tuple[ModelName, ...] = ("paper", "tool")

Machine = Literal["edge", "cloud"]
Shape = tuple[int, int, int]
"""M, N, K."""

SHAPES: Mapping[Machine, Sequence[Shape]] = {
    "edge": (
        (256, 256, 128),
        (1024, 1024, 256),
        (1, 1024, 128),
        (1, 512, 256),
        (1, 2048, 256),
        (512, 256, 128),
    ),
    "cloud": (
        (256, 256, 512),
        (2048, 2048, 256),
        (1, 4096, 512),
        (1, 8192, 128),
        (1, 16384, 128),
        (1024, 1024, 512),
    ),
}

STRATEGIES: Mapping[str, CometAcceleratorPass] = {
    "unfused": CometAcceleratorPass(strategy="none"),
    "fused-dist": CometAcceleratorPass(strategy="partial"),
    "fused-GEMM-dist": CometAcceleratorPass(strategy="full"),
    "fused-GEMM-root": CometAcceleratorPass(strategy="full", kind="gather"),
}
"""The paper's strategies as options of the pipeline; docs/evaluation.md compares."""

CLAIMED = {"gemm_softmax": 1.42, "gemm_layernorm": 3.46}
"""Speedups over unfused in the abstract of the paper, where they read *up to*."""


@dataclass(frozen=True)
class Row:
    """The best mappings that were found for one program on one machine."""

    op: str
    machine: Machine
    shape: Shape
    estimates: Mapping[str, Mapping[ModelName, Estimate]]
    """By strategy and model."""

    def gain(self, strategy: str, model: ModelName, figure: str) -> float:
        """Return the unfused figure over that of `strategy`: above 1 is better."""
        unfused, own = (self.estimates[s][model] for s in ("unfused", strategy))
        if figure == "latency":
            return unfused.latency / own.latency
        return unfused.energy / own.energy


def program(op: str, shape: Shape) -> str:
    """Return the text of a module with one compound op on f16 tensors."""
    m, n, k = shape
    types = [f"tensor<{m}x{k}xf16>", f"tensor<{k}x{n}xf16>"]
    names, rest, result = ["%a", "%b"], "", f"tensor<{m}x{n}xf16>"
    if op == "gemm_layernorm":
        names += ["%gamma", "%beta"]
        types += [f"tensor<{n}xf16>"] * 2
        rest = " epsilon 1.0e-5"
    args = ", ".join(f"{name}: {t}" for name, t in zip(names, types, strict=True))
    return (
        f"func.func @{op}({args}) -> {result} {{\n"
        f"  %p = compound.{op} {', '.join(names)}{rest}"
        f" : ({', '.join(types)}) -> {result}\n"
        f"  func.return %p : {result}\n}}\n"
    )


def attached(op: str, machine: Machine, shape: Shape) -> tuple[Context, ModuleOp]:
    """Return a program with the hardware attached."""
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    module = Parser(context, program(op, shape)).parse_module()
    AttachHardwarePass(path=str(HARDWARE / f"{machine}.yaml")).apply(context, module)
    return context, module


def template_of(
    op: str, machine: Machine, shape: Shape, options: CometAcceleratorPass
) -> Template:
    """Return the tile tree that the pipeline makes, without factors."""
    context, module = attached(op, machine, shape)
    system = attached_system(module)
    DecomposePass(accumulator="input").apply(context, module)
    for part in options.parts(system, whole_axes(module, system, options.dim)):
        part.apply(context, module)
        if isinstance(part, FusePass):
            break
    return make_template(next(compute_functions(module)), system)


def best(
    op: str,
    machine: Machine,
    shape: Shape,
    options: CometAcceleratorPass,
    budget: int,
) -> dict[ModelName, Estimate]:
    """Search under each model, and price the files that the pipeline then makes."""
    template = template_of(op, machine, shape, options)
    mended = search(template)
    found = {"paper": mended, "tool": search_tool(template, mended, budget)}
    estimates: dict[ModelName, Estimate] = {}
    for model in MODELS:
        chosen = replace(options, factors=found[model].text(), model=model)
        context, module = attached(op, machine, shape)
        chosen.apply(context, module)
        estimates[model] = estimate_module(module, model)
    return estimates


def evaluate(budget: int) -> Iterator[Row]:
    """Yield the best mappings of every program, `tool` pricing `budget` per search."""
    for op in CLAIMED:
        for machine, shapes in SHAPES.items():
            for shape in shapes:
                found = {
                    name: best(op, machine, shape, options, budget)
                    for name, options in STRATEGIES.items()
                }
                yield Row(op, machine, shape, found)
