"""
Models that are spread over ranks, as programs and by `torch.compile`: a script.

It prints, in JSON, the programs of `comet.from_torch` for a group of 4 ranks and their
errors, what it refuses, and what models compute on 4 processes. The arguments are 1 for
all that these may be asked for, or 0, and the names of the models that are programs.
"""

# pyright: basic
from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
import torch
from spread_models import Attention, Block, Embedded, Gated, plan
from spread_processes import ONE_GPU, on_processes
from torch import Tensor, distributed, nn
from torch.distributed import _functional_collectives as funcol
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    loss_parallel,
    parallelize_module,
)
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import comet
from comet.dialects.compound.dims import extents_of
from comet.interpreter import run
from comet.pytorch.backend import Options, SlowPathWarning, with_kernels
from comet.pytorch.groups import of_all_processes

RANKS = 4


def whole_values(program: ModuleOp, tensors: list[Tensor]) -> list[np.ndarray]:
    """Return unsharded tensors as the function of a program takes them."""
    function = next(op for op in program.walk() if isinstance(op, FuncOp))
    shapes = [tuple(extents_of(value).values()) for value in function.body.block.args]
    pairs = zip(tensors, shapes, strict=True)
    return [each.detach().double().reshape(shape).numpy() for each, shape in pairs]


def error(program: ModuleOp, name: str, tensors: list[Tensor], wanted: Tensor) -> float:
    """Return the largest error of the ranks, and of the reference."""
    values = whole_values(program, tensors)
    results = [run(program, each, values)[0] for each in (name, f"{name}__reference")]
    found = [torch.as_tensor(each).reshape(wanted.shape) for each in results]
    return max((each - wanted).abs().max().item() for each in found)


KINDS: Mapping[str, type[nn.Module]] = {
    "gated": Gated,
    "attention": Attention,
    "block": Block,
    "embedded": Embedded,
}


def models(mesh: DeviceMesh, names: Sequence[str]) -> dict[str, tuple[str, float]]:
    """Return program and error of models, named by kind and how they are spread."""
    found: dict[str, tuple[str, float]] = {}
    for key in names:
        name, way = key.split()
        whole, spread = KINDS[name](), KINDS[name]()
        spread.load_state_dict(whole.state_dict())
        parallelize_module(spread, mesh, plan(spread, along_sequence=way == "sequence"))
        ids = name == "embedded"
        x = torch.randint(24, (2, 8)) if ids else torch.randn(2, 8, 16)
        part = x[:, :2] if way == "sequence" and not ids else x
        program = comet.from_torch(spread, part, name=name)
        tensors = [*whole.parameters(), x]
        found[key] = str(program), error(program, name, tensors, whole(x))
    return found


FUNCTIONS: Mapping[str, tuple[Callable[..., Tensor], Callable[[Tensor], Tensor]]] = {
    "sum": (lambda x, g: funcol.all_reduce(x, "sum", g), lambda x: x.sum(0)),
    "mean": (
        lambda x, g: funcol.all_reduce(x.exp(), "avg", g),
        lambda x: x.exp().mean(0),
    ),
    "largest": (lambda x, g: funcol.all_reduce(x, "max", g), lambda x: x.amax(0)),
    "least": (lambda x, g: funcol.all_reduce(x, "min", g), lambda x: x.amin(0)),
    "a number": (lambda x, g: funcol.all_reduce(x.sum(), "sum", g), torch.sum),
    "sum of a sum": (
        lambda x, g: funcol.all_reduce(funcol.all_reduce(x, "sum", g), "sum", g),
        lambda x: x.sum(0) * RANKS,
    ),
    "rows": (lambda x, g: funcol.all_gather_tensor(x, 0, g), lambda x: x.flatten(0, 1)),
    "columns": (
        lambda x, g: funcol.all_gather_tensor(x, 1, g) * 2,
        lambda x: x.transpose(0, 1).flatten(1) * 2,
    ),
    "rows that all have": (
        lambda x, g: (
            funcol.all_gather_tensor(funcol.all_reduce(x, "sum", g), 0, g).sin().sum(0)
        ),
        lambda x: x.sum(0).sin().sum(0) * RANKS,
    ),
    "products of rows": (
        lambda x, g: (
            funcol.all_gather_tensor(x, 0, g)
            @ funcol.all_gather_tensor(x.sin(), 0, g).t()
        ),
        lambda x: x.flatten(0, 1) @ x.flatten(0, 1).sin().t(),
    ),
    "a part of rows": (
        lambda x, g: funcol.reduce_scatter_tensor(x, "sum", 0, g),
        lambda x: x.sum(0),
    ),
    "a part of columns": (
        lambda x, g: funcol.reduce_scatter_tensor(x, "max", 1, g),
        lambda x: x.amax(0).unflatten(1, (RANKS, -1)),
    ),
    "a part of what all have": (
        lambda x, g: funcol.reduce_scatter_tensor(
            funcol.all_reduce(x, "avg", g), "sum", 0, g
        ),
        lambda x: x.sum(0),
    ),
    "rows of each rank": (
        lambda x, g: funcol.all_to_all_single(x.sin(), None, None, g).sum(0),
        lambda x: x.unflatten(1, (RANKS, -1)).sin().sum((0, 2)),
    ),
    "columns of each rank": (
        lambda x, g: torch.ops._dtensor.shard_dim_alltoall(
            x.sin(), 1, 0, g.group_name
        ).sum(1),
        lambda x: x.sin().sum((0, 2)),
    ),
    "rows that all send": (
        lambda x, g: (
            funcol.all_to_all_single(funcol.all_reduce(x, "sum", g), None, None, g) * 2
        ),
        lambda x: x.sum(0) * 2,
    ),
    "padded and cut": (
        lambda x, g: funcol.all_reduce(
            nn.functional.pad(x[:, 2:7], (0, 3), value=0.5).sin(), "sum", g
        ),
        lambda x: nn.functional.pad(x[..., 2:7], (0, 3), value=0.5).sin().sum(0),
    ),
    "part of each rank": (
        lambda x, g: (
            funcol.all_reduce(x, "sum", g).chunk(RANKS)[distributed.get_rank()].sin()
        ),
        lambda x: x.sum(0).sin(),
    ),
    "number of each rank": (
        lambda x, g: funcol.all_reduce(
            x * (distributed.get_rank() + g.rank()), "sum", g
        ),
        lambda x: (x * (2 * torch.arange(RANKS)[:, None, None])).sum(0),
    ),
    "joined with what all have": (
        lambda x, g: funcol.all_reduce(
            torch.cat([x, funcol.all_reduce(x, "sum", g)]), "max", g
        ),
        lambda x: torch.cat([x.amax(0), x.sum(0)]),
    ),
}
"""What ranks compute of an 8 x 12 tensor each, and what that is of all of them."""


def functions() -> dict[str, tuple[str, float]]:
    """Return program and error of each function."""
    group, found = of_all_processes(), dict[str, tuple[str, float]]()
    for name, (function, wanted) in FUNCTIONS.items():
        x = torch.randn(RANKS, 8, 12)
        program = comet.from_torch(lambda each: function(each, group), x[0])
        found[name] = str(program), error(program, "main", [x], wanted(x))
    return found


class Predicting(nn.Module):
    """The loss of classes, of which each rank has the scores of some."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Linear(16, 32)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        with loss_parallel():
            return nn.functional.cross_entropy(self.scores(x), labels)


def dtensors(mesh: DeviceMesh) -> dict[str, tuple[str, float]]:
    """Return program and error of what ranks do with DTensors of all."""
    x, labels = torch.randn(8, 16), torch.randint(32, (8,))
    shared = distribute_tensor(x, mesh, [Replicate()])
    cut = comet.from_torch(
        lambda x: x.redistribute(placements=[Shard(1)]).to_local().sin(), shared
    )
    wanted = x.sin().unflatten(1, (RANKS, -1))
    moved = comet.from_torch(
        lambda x: x.redistribute(placements=[Shard(0)]).to_local().sin(),
        distribute_tensor(x, mesh, [Shard(1)]),
    )
    same = comet.from_torch(
        lambda x: (
            x.redistribute(placements=[Replicate()])
            .redistribute(placements=[Shard(0)])
            .to_local()
            .sin()
        ),
        distribute_tensor(x, mesh, [Shard(0)]),
    )
    assert "all_to_all" in str(moved)
    assert "collective.all" not in str(same)
    spread, whole = Predicting(), nn.Linear(16, 32)
    spread.scores.load_state_dict(whole.state_dict())
    columns = ColwiseParallel(use_local_output=False)
    parallelize_module(spread, mesh, {"scores": columns})
    learns = comet.from_torch(
        spread, shared, distribute_tensor(labels, mesh, [Replicate()])
    )
    loss = nn.functional.cross_entropy(whole(x), labels)
    given = [*whole.parameters(), x, labels]
    return {
        "other part of a DTensor": (str(moved), error(moved, "main", [x], x.sin())),
        "same part of a DTensor": (str(same), error(same, "main", [x], x.sin())),
        "part of a DTensor": (str(cut), error(cut, "main", [x], wanted)),
        "parallel loss": (str(learns), error(learns, "main", given, loss)),
    }


def on_a_plane() -> dict[str, tuple[str, float]]:
    """Return program and error of what is spread along one axis of a mesh of two."""
    plane = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    whole, spread, x = Gated(), Gated(), torch.randn(8, 16)
    spread.load_state_dict(whole.state_dict())
    parallelize_module(spread, plane["tensor"], plan(spread, along_sequence=False))
    gated = comet.from_torch(spread, x)
    moved = comet.from_torch(
        lambda x: x.redistribute(placements=[Replicate(), Shard(1)]).to_local().sin(),
        distribute_tensor(x, plane, [Replicate(), Shard(0)]),
    )
    numbers = comet.from_torch(
        lambda x: (
            x.to_local() * (distributed.get_rank() + 10 * plane.get_local_rank(0))
        ),
        distribute_tensor(x, plane, [Shard(0), Replicate()]),
    )
    # This is process 1, so those of its axis are 1 and 3.
    numbered = x.unflatten(0, (2, -1)) * torch.tensor([1, 13])[:, None, None]
    given = [*whole.parameters(), x]
    return {
        "model along an axis": (str(gated), error(gated, "main", given, whole(x))),
        "other part along an axis": (str(moved), error(moved, "main", [x], x.sin())),
        "number along an axis": (str(numbers), error(numbers, "main", [x], numbered)),
    }


class Counting(nn.Module):
    """A model that changes a buffer."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.count.add_(1)
        return x + self.count


def refused(mesh: DeviceMesh) -> dict[str, str]:
    """Return the messages of what cannot be translated."""
    group, x = of_all_processes(), torch.randn(8, 4)
    pair = distributed.new_group([0, 1])
    assert isinstance(pair, distributed.ProcessGroup)
    plane = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    tries: dict[str, Callable[[], object]] = {
        "reduction": lambda: comet.from_torch(
            lambda x: funcol.all_reduce(x, "product", group), x
        ),
        "groups": lambda: comet.from_torch(
            lambda x: (
                funcol.all_reduce(x, "sum", group) + funcol.all_reduce(x, "sum", pair)
            ),
            x,
        ),
        "axes": lambda: comet.from_torch(
            torch.sin, distribute_tensor(x, plane, [Shard(0), Shard(1)])
        ),
        "other ops": lambda: comet.from_torch(
            lambda x: x.cos() if distributed.get_rank() else x.sin(), x
        ),
        "other lengths": lambda: comet.from_torch(
            lambda x: x.sin() if distributed.get_rank() else x, x
        ),
        "other operands": lambda: comet.from_torch(
            lambda x: x * distributed.get_rank() ** 2, x
        ),
        "other parts": lambda: comet.from_torch(
            lambda x: x.chunk(RANKS)[RANKS - 1 - distributed.get_rank()], x
        ),
        "sizes of parts": lambda: comet.from_torch(
            lambda x: funcol.all_to_all_single(x, [1, 2, 2, 3], [2, 2, 2, 2], group), x
        ),
        "own parts": lambda: comet.from_torch(
            lambda x: funcol.all_reduce(
                x.chunk(RANKS)[distributed.get_rank()], "sum", group
            ),
            x,
        ),
        "constants": lambda: comet.from_torch(
            lambda x: x[:, :2] + torch.tensor([1.0, 2.0]), x
        ),
        "sizes": lambda: comet.from_torch(
            torch.sin, distribute_tensor(torch.randn(10), mesh, [Shard(0)])
        ),
        "changes": lambda: comet.from_torch(Counting(), torch.randn(4)),
        "conditions": lambda: comet.from_torch(
            lambda x: funcol.all_reduce(x > 0, "max", group), x
        ),
    }
    found: dict[str, str] = {}
    for name, attempt in tries.items():
        try:
            found[name] = str(attempt())
        except comet.CometError as error:
            found[name] = str(error)
    return found


def left_to_torch() -> list[str]:
    """Return the kinds of two reductions in torch, in their order beside kernels."""
    group = of_all_processes()

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        first = funcol.all_reduce(x.sin(), "sum", group)
        return first, funcol.all_reduce(y, "max", group).cos()

    graph = make_fx(function, tracing_mode="fake")(torch.ones(4), torch.ones(4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowPathWarning)
        fused = with_kernels(graph, Options(ONE_GPU))
    reduce = torch.ops._c10d_functional.all_reduce.default
    found = fused.graph.find_nodes(op="call_function", target=reduce)
    return [cast("str", node.args[1]) for node in found]


def alone(mesh: DeviceMesh) -> dict[str, str]:
    """Return programs without collectives: of shards, and of one GPU."""
    x = distribute_tensor(torch.randn(8, 4), mesh, [Shard(1)])
    return {
        "shards": str(comet.from_torch(lambda x: x.to_local().exp(), x)),
        "one GPU": str(comet.from_torch(torch.exp, torch.randn(8, 4))),
    }


def main() -> None:
    every, *names = sys.argv[1:]
    exchanged = on_processes(every == "1")
    torch.manual_seed(0)
    distributed.init_process_group("fake", store=FakeStore(), rank=1, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,))
    found = {
        "programs": models(mesh, names) | functions() | dtensors(mesh) | on_a_plane(),
        "refused": refused(mesh),
        "alone": alone(mesh),
        "left to torch": left_to_torch(),
    }
    distributed.destroy_process_group()
    json.dump({**found, "processes": exchanged}, sys.stdout)


if __name__ == "__main__":
    main()
