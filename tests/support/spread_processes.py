"""
Compiled models on 4 processes: two replicas of a model, with two shards each.

What a model computes is compared with the same on one process.
"""

# pyright: basic
from __future__ import annotations

import faulthandler
import json
import signal
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast
from unittest.mock import patch

import torch
import torch.distributed._symmetric_memory as symmetric
from distributed_ranks import SharedFiles
from spread_models import Gated, plan
from torch import Tensor, distributed, nn
from torch.distributed import _functional_collectives as funcol
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module
from torch.multiprocessing.spawn import start_processes

from comet.pytorch import processes
from comet.pytorch.backend import SlowPathWarning
from comet.pytorch.groups import of_all_processes
from comet.runtime.program import RankProgram
from comet.tools.diagnostics import CometError

ASKED = {"pipeline_of_ranks": "triton-distributed{ranks=2}"}
TIMEOUT = timedelta(seconds=90)
"""How long a process waits for others."""
LIMIT = 120
"""Seconds until a try that has not ended prints its stacks and ends the process."""
IMPORTED = [
    "torch._dynamo",
    "comet.pytorch.backend",
    "comet.runtime.processes",
    "comet.passes.pipelines.triton_distributed",
    "comet.passes.triton.lower_to_triton",
]
"""What the processes share."""
ONE_GPU, GPUS = (f"samples/hardware/h200x{count}.yaml" for count in (1, 8))


def step(model: nn.Module, run: Callable[[Tensor], Tensor], x: Tensor) -> list[Tensor]:
    """Return this rank's result, and the gradients of its parameters."""
    model.zero_grad(set_to_none=True)
    y = run(x)
    y.square().sum().backward()
    return [y, *(cast("Tensor", each.grad) for each in model.parameters())]


def learned(
    plane: DeviceMesh,
    hardware: str,
    along_sequence: bool,
    passes: str | None,
    *,
    fully: bool = False,
) -> float:
    """
    Return the largest error of results and gradients of a model in three steps.

    Replicas of the data have whole shards, or if `fully` each has a part of them.
    """
    torch.manual_seed(0)
    whole, spread = Gated(), Gated()
    spread.load_state_dict(whole.state_dict())
    parallelize_module(spread, plane["tensor"], plan(spread, along_sequence))
    if fully:
        fully_shard(spread, mesh=plane["data"])
    options: dict[str, str | int | bool | Callable[..., object]]
    options = {"hardware": hardware}
    if passes is not None:
        options["pipeline_of_ranks"] = passes
    compiled = torch.compile(spread, backend="comet", options=options, dynamic=False)
    replica, shard = map(plane.get_local_rank, ("data", "tensor"))
    own = slice(3 * replica, 3 * replica + 3)
    rows = slice(2 * shard, 2 * shard + 2) if along_sequence else slice(4)
    errors: list[float] = []
    for _ in range(3):
        x = torch.randn(6, 4, 16)
        y, *gradients = step(spread, compiled, x[own, rows])
        wanted = step(whole, whole, x)
        wanted[0] = wanted[0][own, rows]
        found = [y, *(summed(each, plane, fully) for each in gradients)]
        pairs = zip(found, wanted, strict=True)
        errors += [((a - b).abs().max() / b.abs().max()).item() for a, b in pairs]
    return max(errors)


def summed(gradient: Tensor, plane: DeviceMesh, fully: bool) -> Tensor:
    """Return the sum over replicas of a gradient; `fully` has made it their mean."""
    whole = gradient.full_tensor() if isinstance(gradient, DTensor) else gradient
    if fully:
        return whole * 2
    distributed.all_reduce(whole, group=plane.get_group("data"))
    return whole


def reduced(
    *groups: distributed.ProcessGroup,
    kind: str = "sum",
    factor: int = 1,
    lengths: Sequence[int] = (4,),
    asked: Mapping[str, str] = ASKED,
) -> float:
    """Return the error of reductions over groups, and of the gradients of sums."""

    def total(x: Tensor) -> Tensor:
        for group in groups:
            x = funcol.all_reduce(x.exp() * factor, kind, group).log() + 1
        return x

    compiled = torch.compile(
        total, backend="comet", options=dict(hardware=GPUS, **asked), dynamic=False
    )

    def results(run: Callable[[Tensor], Tensor], length: int) -> Tensor:
        has_gradient = kind == "sum"
        first = float(distributed.get_rank())
        x = torch.full((length,), first, requires_grad=has_gradient)
        y = run(x)
        if not has_gradient:
            return y
        return torch.cat([y, *torch.autograd.grad(y.sum(), x)])

    pairs = ((results(compiled, each), results(total, each)) for each in lengths)
    return max((found - wanted).abs().max().item() for found, wanted in pairs)


def with_memory_of_gpus(folder: str, attempt: Callable[[], float]) -> float:
    """Return a result with the memory of GPUs, for which files stand in."""
    files = SharedFiles(Path(folder))

    def call(program: RankProgram, size: int, group: distributed.ProcessGroup):
        return processes._on_gpu(program, size, torch.device("cpu"), group)

    with (
        patch.object(symmetric, "empty", files.empty),
        patch.object(symmetric, "rendezvous", files.rendezvous),
        patch.object(processes, "_interpreted", call),
    ):
        return attempt()


def failing(group: distributed.ProcessGroup) -> float:
    """Return 0 if all ranks of a group end although the first one fails, else 1."""

    def make() -> str:
        raise ValueError("a mistake")

    try:
        processes.from_first_rank(make, group)
    except (ValueError, CometError) as error:
        expected = CometError if group.rank() else ValueError
        return float(type(error) is not expected or str(error) != "a mistake")
    return 1.0


def process(rank: int, folder: str, every: bool) -> None:
    """Compare compiled models on one of 4 processes with those on one, in a file."""
    # It ends so if another process fails first.
    faulthandler.register(signal.SIGTERM, chain=True)
    store = f"file://{folder}/store"
    distributed.init_process_group(
        "gloo", store, rank=rank, world_size=4, timeout=TIMEOUT
    )
    plane = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    data, tensor = plane.get_all_groups()
    replica, shard = map(plane.get_local_rank, ("data", "tensor"))
    pushing, fused = (
        f"triton-distributed{{ranks=2 pattern={name}}}" for name in ("push", "fused")
    )
    tries: dict[str, Callable[[], float]] = {
        "tensor": lambda: learned(plane, GPUS, False, pushing),
        "not asked for": lambda: reduced(tensor, asked={}),
        "two groups": lambda: reduced(data, tensor, tensor),
        "another shape of one replica": lambda: reduced(
            tensor, lengths=(4, 6)[: replica + 1]
        ),
        "first rank fails": lambda: failing(tensor),
        "memory of GPUs": lambda: with_memory_of_gpus(
            folder, lambda: reduced(tensor, lengths=(3,))
        ),
    }
    more: dict[str, Callable[[], float]] = {
        "not asked for by a model": lambda: learned(plane, ONE_GPU, False, None),
        "sequence": lambda: learned(plane, GPUS, True, fused),
        "fully sharded": lambda: learned(plane, GPUS, False, pushing, fully=True),
        "one GPU": lambda: learned(plane, ONE_GPU, False, pushing),
        "larger group": lambda: reduced(of_all_processes()),
        "reduction": lambda: reduced(tensor, kind="product"),
        "different graphs": lambda: reduced(tensor, factor=2 + shard * replica),
    }
    if every:
        tries |= more
    found: dict[str, tuple[float, list[str]]] = {}
    for name, attempt in tries.items():
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            error = attempt()
        slow = [str(each.message) for each in seen if each.category is SlowPathWarning]
        found[name] = error, slow
    Path(folder, str(rank)).write_text(json.dumps(found))
    distributed.destroy_process_group()


def on_processes(every: bool) -> list[dict[str, tuple[float, list[str]]]]:
    """
    Return error and warnings of each model on each of 4 processes.

    They are forked from this one, in which torch must not have started threads yet.
    """
    for name in IMPORTED:
        import_module(name)
    with TemporaryDirectory() as folder:
        start_processes(process, (folder, every), nprocs=4, start_method="fork")
        return [json.loads(Path(folder, name).read_text()) for name in "0123"]
