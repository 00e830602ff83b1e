"""
Models through `torch.compile`: comet beside torch itself and inductor, on a GPU.

    TRITON_INTERPRET=1 python benchmarks/torch_models.py compile DIR  # without a GPU
    python benchmarks/torch_models.py time DIR                        # on the GPU

Both need comet and torch; a machine without a network can have comet as a wheel. The
first step keeps compiled programs in DIR, and runs no kernels; without it the second
step compiles, too. That compares results and gradients with f64 on the same GPU, and
times a call with the GPU kept busy (its own time) and idle (with the time of the CPU),
alternatives in turns; "graphs" are those whose launches are replayed as CUDA graphs.
Prints a table; `--json FILE` keeps all figures. With `--tiny` it is a dry run.
"""

# The types of torch.compile name unknown ones.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from unittest.mock import patch

import torch
from gpu_device.timing import DRY, GpuClock, Rounds, WallClock, time_in_turns
from markdown import markdown
from torch import Tensor, nn
from torch_model_cases import REAL, TINY, Model, models

from comet.pytorch.backend import SlowPathWarning

HARDWARE = Path(__file__).parents[1] / "samples" / "hardware" / "h200x1.yaml"
CONDITIONS = {"gpu": 0.02, "with launches": 0.0}
"""Seconds for which the GPU is kept busy while the CPU enqueues a step of a model."""
SMALL = 1e-2
"""The least rms of a tensor, by the largest: gradients of some biases are 0."""

Figures = dict[str, object]
Step = Callable[[], Sequence[Tensor]]


def stepped(model: Model, run: Callable[..., Tensor], seed: Tensor | None) -> Step:
    """Return what computes the result, and the gradients along `seed` if it learns."""

    def step() -> Sequence[Tensor]:
        if not model.learns:
            with torch.no_grad():
                return [run(*model.inputs)]
        result = run(*model.inputs)
        return [result, *torch.autograd.grad(result, model.leaves(), seed)]

    return step


def in_f64(model: Model) -> Model:
    """Return a copy of a model that computes in f64."""

    def wide(each: Tensor) -> Tensor:
        if not each.is_floating_point():
            return each
        return each.detach().double().requires_grad_(each.requires_grad)

    run = model.run
    if isinstance(run, nn.Module):
        run = copy.deepcopy(run).double()
    return Model(run, [wide(each) for each in model.inputs], model.learns)


def error(found: Sequence[Tensor], exact: Sequence[Tensor]) -> float:
    """Return the largest relative error of any tensor, as norms."""
    largest = max(rms(each) for each in exact)
    pairs = zip(found, exact, strict=True)
    return max(
        rms(one - other) / max(rms(other), SMALL * largest) for one, other in pairs
    )


def rms(x: Tensor) -> float:
    """Return the root of the mean square of the elements."""
    return x.double().square().mean().sqrt().item()


def compiled(
    model: Model, folder: Path, *, graphs: bool = False
) -> Callable[..., Tensor]:
    """Return a model by comet, whose launches may be CUDA graphs."""
    options: dict[str, str | int | bool | Callable[..., object]] = {
        "hardware": str(HARDWARE),
        "cache": str(folder),
        "cuda_graphs": graphs,
    }
    return torch.compile(model.run, backend="comet", options=options, dynamic=False)


def measured(model: Model, folder: Path, rounds: Rounds) -> Figures:
    """Return the errors and times of a model by comet, torch itself and inductor."""
    torch.compiler.reset()
    result = model.run(*model.inputs)
    seed = torch.randn_like(result) if result.dim() else torch.ones_like(result)
    wide = in_f64(model)
    exact = stepped(wide, wide.run, seed.double())()
    runs = {
        "comet": compiled(model, folder),
        "comet graphs": compiled(model, folder, graphs=True),
        "eager": model.run,
        "inductor": torch.compile(model.run, dynamic=False),
        "inductor graphs": torch.compile(
            model.run, dynamic=False, mode="reduce-overhead"
        ),
    }
    found: Figures = {}
    steps: dict[str, Step] = {}
    for name, run in runs.items():
        step, start = stepped(model, run, seed), time.perf_counter()
        try:
            found[f"{name} error"] = error(step(), exact)
        except Exception as problem:  # the others are measured still
            found[f"{name} failed"] = f"{type(problem).__name__}: {problem}"
            continue
        found[f"{name} first step, s"] = time.perf_counter() - start
        steps[name] = step
    for condition, cover in CONDITIONS.items():
        clock = GpuClock(cover) if torch.cuda.is_available() else WallClock()
        for name, each in time_in_turns(steps, clock, rounds, cold=True).items():
            found[f"{name} {condition}, us"] = 1e6 * each.median
    return found


def only_compiled(model: Model, folder: Path, _: Rounds) -> Figures:
    """Compile a model and its gradients, and run no kernels."""
    start = time.process_time()
    with without_launches():
        result = compiled(model, folder)(*model.inputs)
        if model.learns:
            torch.autograd.grad(result.sum(), model.leaves())
    return {"compile, s": time.process_time() - start}


def without_launches() -> AbstractContextManager[object]:
    """Return a context in which Triton's interpreter runs no kernel."""
    if torch.cuda.is_available():
        return nullcontext()
    return patch("triton.runtime.interpreter.GridExecutor.__call__", no_launch)


def no_launch(*_: object, **__: object) -> None:
    """Do nothing in the place of a launch."""


ACTIONS: Mapping[str, Callable[[Model, Path, Rounds], Figures]] = {
    "compile": only_compiled,
    "time": measured,
}


def cell(value: object) -> str:
    """Return a figure as the table shows it."""
    return f"{value:.4g}" if isinstance(value, float) else str(value).split("\n")[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Compile or measure the models."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("folder", type=Path, help="keeps compiled programs")
    parser.add_argument("--only", nargs="+", default=(), help="names of models")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tiny", action="store_true", help="a dry run")
    parser.add_argument("--json", type=Path, help="takes all figures")
    options = parser.parse_args(argv)
    on_gpu = torch.cuda.is_available()
    rounds = DRY if options.tiny else Rounds(3, options.rounds)
    made = models(TINY if options.tiny else REAL, "cuda" if on_gpu else "cpu")
    if unknown := [name for name in options.only if name not in made]:
        parser.error(f"there is no model {unknown[0]!r}, only {', '.join(made)}")
    found: dict[str, Figures] = {}
    for name in options.only or made:
        torch.manual_seed(0)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", SlowPathWarning)
            found[name] = ACTIONS[options.action](made[name](), options.folder, rounds)
        slow = [str(w.message) for w in said if w.category is SlowPathWarning]
        found[name] |= {"in torch": slow} if slow else {}
        if options.json is not None:
            options.json.write_text(json.dumps(found, indent=1))
        print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    columns = list(dict.fromkeys(key for each in found.values() for key in each))
    rows = [
        (name, *(cell(each.get(key, "")) for key in columns))
        for name, each in found.items()
    ]
    print(markdown(("model", *columns), rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
