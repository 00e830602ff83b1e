"""
Compiled programs of ranks inside of models: each process of the default group is one.

All processes compile the same graphs in the same order, and run them so.
"""

# torch has types for only half of its functions for distributed programs.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor, distributed, fx
from torch._dispatch.python import no_python_dispatcher
from torch._subclasses.fake_tensor import unset_fake_temporarily

from comet.pytorch.collectives import group_of
from comet.pytorch.importer import meta_of
from comet.runtime.check import as_tuple
from comet.runtime.check_ranks import heap_bytes
from comet.runtime.program import RankProgram
from comet.tools.diagnostics import CometError

RankFunction: TypeAlias = Callable[..., tuple[Tensor, ...]]
"""Takes and returns the tensors of this rank."""


@contextmanager
def _untraced() -> Generator[None]:
    """
    Exchange and allocate real tensors while torch compiles.

    Torch's dispatcher in Python, which is on then, holds the GIL while it queues work
    for the threads of gloo. Such a thread holds the lock of the queue while it frees a
    tensor, for which it may need the GIL: then both wait forever.
    """
    with unset_fake_temporarily(), no_python_dispatcher():
        yield


@_untraced()
def obstacle(graph: fx.Graph) -> str | None:
    """
    Return why the collectives of a graph cannot be in a program of all ranks.

    None if they can, or if there are none. The processes compare their graphs.
    """
    groups = {*filter(None, map(group_of, graph.nodes))}
    if not groups:
        return None
    whole = distributed.group.WORLD
    if whole is None or distributed.get_backend() == "fake":
        return "there are no processes of other ranks"
    if groups != {whole.group_name}:
        return "their group is not that of all processes"
    if torch.device("cpu") not in whole._device_types:
        return "their group has no back end of the host, as cpu:gloo,cuda:nccl has"
    return None if _same_everywhere(graph) else "processes have different graphs"


def _same_everywhere(graph: fx.Graph) -> bool:
    """Return whether all processes have the same graph, each on its device."""
    tensors = (tensor for node in graph.nodes for tensor in meta_of(node))
    known = [(*tensor.shape, *tensor.stride(), tensor.dtype) for tensor in tensors]
    text = re.sub(r"cuda:\d+", "cuda", f"{graph}{known}")
    digests: list[object] = [None] * distributed.get_world_size()
    distributed.all_gather_object(digests, sha256(text.encode()).hexdigest())
    return len(set(digests)) == 1


@_untraced()
def from_first_rank(make: Callable[[], str]) -> str:
    """
    Return what the first rank makes, on all of them.

    Raises CometError on all if it does there.
    """
    found: list[object] = [None, None]
    if distributed.get_rank() == 0:
        try:
            found = [make(), None]
        except CometError as error:
            found = [None, str(error)]
    distributed.broadcast_object_list(found)
    text, error = found
    if not isinstance(text, str):
        raise CometError(str(error))
    return text


@_untraced()
def rank_function(program: RankProgram, device: torch.device) -> RankFunction:
    """
    Return what this rank does in a program; all processes call this together.

    Memory that ranks share is allocated once; results are new tensors in each call.
    """
    size = heap_bytes(program)
    call = (
        _on_gpu(program, size, device)
        if device.type == "cuda"
        else (_interpreted(program, size))
    )

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(each.clone() for each in as_tuple(call(*tensors)))

    return function


Call: TypeAlias = "Callable[..., Tensor | tuple[Tensor, ...]]"


def _on_gpu(program: RankProgram, size: int, device: torch.device) -> Call:
    """Allocate symmetric memory of GPUs, and return the plan of this rank."""
    from comet.runtime.distributed import DistributedRank
    from comet.runtime.peer_memory import peer_memory

    rank = DistributedRank(distributed.get_rank(), peer_memory(size, device))
    return program.plan(rank)


def _interpreted(program: RankProgram, size: int) -> Call:
    """Share memory with the processes of this machine, and return what a call runs."""
    from comet.runtime.processes import AttachedRank, shared_folder

    rank, world = distributed.get_rank(), distributed.get_world_size()
    folder = from_first_rank(lambda: str(shared_folder(world, size)))
    attached = AttachedRank(Path(folder), rank, world)
    distributed.barrier()
    if rank == 0:
        shutil.rmtree(folder)
    plan = attached.run(program.plan)
    return lambda *tensors: attached.run(lambda _: plan(*tensors))
