"""
Compiles models in the mode "reduce-overhead", in Triton's interpreter: a script.

A machine without a GPU records no CUDA graph. So functions of torch that need one are
replaced: `cudagraphify_impl` notes what it is asked to record, and records nothing. The
script prints, in JSON, the notes and the errors of results and gradients.
"""

# pyright: basic
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import MagicMock, patch

import torch
from pytorch_models import HARDWARE
from torch import Tensor, fx, nn
from torch._dynamo.utils import counters

from comet.pytorch import cuda_graphs
from comet.runtime.one_rank import PlanFunction

Notes = list[dict[str, object]]
MODE = HARDWARE | {"cuda_graphs": True}


@contextmanager
def recording(refused: int | None = None) -> Iterator[tuple[Notes, MagicMock]]:
    """Note what is recorded; the graph number `refused` cannot be."""
    notes: Notes = []
    asked: list[fx.GraphModule] = []

    def record(run: Callable, inputs: Sequence, static: Sequence, **facts) -> Callable:
        names = ("is_backward", "is_inference", "device_index")
        note: dict[str, object] = {name: facts[name] for name in names}
        notes.append(note | {"static": [*static]})
        return lambda values: run(values)

    def skip(graph: fx.GraphModule, static: int) -> str | None:
        asked.append(graph)
        return "skipping cudagraphs" if len(asked) - 1 == refused else None

    manager = MagicMock()
    with (
        patch.object(cuda_graphs, "cudagraphify_impl", record),
        patch.object(cuda_graphs, "check_for_skip", skip),
        patch.object(cuda_graphs, "get_device_index", lambda graph: 3),
        patch.object(cuda_graphs, "get_manager", lambda device: manager),
    ):
        yield notes, manager


def stepped(run: Callable[[Tensor], Tensor], model: nn.Module) -> list[Tensor]:
    """Return the result of a model and its gradients."""
    y = run(torch.linspace(-1, 1, 40).view(5, 8))
    return [y, *torch.autograd.grad(y.square().sum(), [*model.parameters()])]


def step_error(model: nn.Module) -> float:
    """Return the largest error of a step of a compiled model."""
    torch.compiler.reset()
    compiled = torch.compile(model, backend="comet", options=MODE, dynamic=False)
    pairs = zip(stepped(compiled, model), stepped(model, model), strict=True)
    return max((one - other).abs().max().item() for one, other in pairs)


def learned(model: nn.Module, refused: int | None = None) -> dict[str, object]:
    """Return what is recorded of a step, and the count of gradients that are not."""
    with recording(refused) as (notes, manager):
        error = step_error(model)
    others = manager.set_to_running_backward.call_count
    return {"error": error, "notes": notes, "others": others}


def inferred(model: nn.Module) -> Notes:
    """Return what is recorded of a model that does not learn, by the mode's name."""
    torch.compiler.reset()
    variable = {"COMET_HARDWARE": str(HARDWARE["hardware"])}
    with recording() as (notes, _), patch.dict("os.environ", variable), torch.no_grad():
        run = torch.compile(model, backend="comet", mode="reduce-overhead")
        run(torch.ones(5, 8))
    return notes


def split() -> dict[str, object]:
    """Return the devices with memory of a plan before the first call, and its error."""
    a, b = torch.randn(5, 512).half(), torch.randn(512, 64).half()
    torch.compiler.reset()
    devices: list[list[str]] = []
    call = PlanFunction.__call__

    def noted(plan: PlanFunction, *given: Tensor) -> object:
        devices.append([str(device) for device in plan._on])
        return call(plan, *given)

    passes = 'triton-distributed{strategy=none split="N=4" merge=last}'
    options = MODE | {"pipeline": passes}
    run = torch.compile(torch.mm, backend="comet", options=options, dynamic=False)
    with recording(), patch.object(PlanFunction, "__call__", noted):
        error = ((run(a, b) - a @ b).norm() / (a @ b).norm()).item()
    return {"error": error, "devices": devices}


def main() -> None:
    """Print all."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3))
    found = {
        "learned": learned(model),
        "inferred": inferred(model),
        "forward refused": learned(model, refused=0),
        "backward refused": learned(model, refused=1),
        "split": split(),
    }
    counters.clear()
    found["without a GPU"] = step_error(model)
    found["skips"] = counters["inductor"]["cudagraph_skips"]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
