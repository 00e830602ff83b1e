"""Texts at every level of the IR, each with passes that may follow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random

from fuzz_case import ROOT
from fuzz_pipelines import accelerator, attach, many_ranks, one_gpu
from named_ops import NAMED_OPS
from semantics import parse_module, run_passes
from xdsl.utils.exceptions import PassFailedException

CHAINS = {"comet": accelerator, "triton": one_gpu, "taxes": many_ranks}
"""Pipelines, by a target that prints what they lead to."""
PIPELINES = 18
"""How many of them are drawn: each is run once by every worker that needs it."""
RUN = re.compile(r"RUN: *comet-opt %s.*? -p +('[^']*'|[^ ]+)")


@dataclass(frozen=True)
class Seed:
    """A text that comet accepts or that it refuses for a reason, to be mutated."""

    text: str
    passes: tuple[str, ...]
    target: str = "mlir"


@cache
def written() -> list[Seed]:
    """Return what tests, pages and samples hold."""
    return [*_tests(), *_pages(), *_samples()]


def _tests() -> Iterator[Seed]:
    """Yield the parts of files for lit, and broken inputs, with their passes."""
    folders = (ROOT / "tests" / "filecheck", ROOT / "tests" / "broken")
    for file in sorted(path for folder in folders for path in folder.rglob("*.mlir")):
        whole = file.read_text()
        runs = [found.strip("'").replace("%root/", "") for found in RUN.findall(whole)]
        for part in whole.split("// -----"):
            lines = [
                line for line in part.splitlines() if not line.strip().startswith("//")
            ]
            if any(line.strip() for line in lines):
                passes = tuple(split_specs(runs[0])) if runs else ()
                yield Seed("\n".join(lines) + "\n", passes)


def _pages() -> Iterator[Seed]:
    for file in ("docs/ir.md", "docs/multi-gpu.md"):
        text = (ROOT / file).read_text()
        for block in re.findall(r"```mlir\n(.*?)```", text, re.DOTALL):
            yield Seed(block, ())


def _samples() -> Iterator[Seed]:
    for file in sorted((ROOT / "samples").glob("*.mlir")):
        yield Seed(file.read_text(), ())


def split_specs(pipeline: str) -> Iterator[str]:
    """Yield the passes of a pipeline, options included."""
    yield from re.findall(r'[\w-]+(?:\{(?:[^{}"]|"[^"]*")*\})?', pipeline)


def lowered(random: Random) -> Seed:
    """Return what some passes of a pipeline make of a named op, before the others."""
    return random.choice(_stages(random.randrange(PIPELINES)))


@cache
def _stages(number: int) -> list[Seed]:
    """Return a named op after each pass of a pipeline, up to one that refuses it."""
    random = Random(number)
    target = list(CHAINS)[number % len(CHAINS)]
    op = random.choice([op for op in NAMED_OPS if op.name != "attention"])
    specs = CHAINS[target](random, op.result, True)
    module = parse_module(op.text(op.even))
    found = [Seed(str(module), specs, target)]
    for count, spec in enumerate(specs, 1):
        try:
            module = run_passes(module, spec)
        except PassFailedException:
            break
        found.append(Seed(str(module), specs[count:], target))
    return found


def some_seed(random: Random) -> Seed:
    """Return a text of any level, with passes that may follow it."""
    if random.random() < 0.5:
        return lowered(random)
    seed = random.choice(written())
    if seed.passes or random.random() < 0.2:
        return seed
    dims = ("M", "N", "K")
    target = random.choice(list(CHAINS))
    chain = CHAINS[target](random, dims, True)
    start = random.randrange(len(chain))
    hardware = () if start == 0 or "arch.system" in seed.text else (chain[0],)
    return Seed(seed.text, (*hardware, *chain[start:]), target)


def small_program() -> Seed:
    """Return the smallest program, on the edge sample."""
    op = NAMED_OPS[0]
    return Seed(op.text({"M": 8, "K": 4, "N": 16}), (attach("edge"),))
