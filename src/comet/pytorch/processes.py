"""
Compiled programs of ranks inside of models: each process of a group is one.

The processes of the group compile the same graphs in the same order, and run them so.
They wait for no other process.
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
from torch.distributed import ProcessGroup

from comet.pytorch.collectives import chains, group_of
from comet.pytorch.groups import described, named
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
def obstacles(graph: fx.Graph, ranks: int | None) -> dict[str, str]:
    """
    Return, by group, why its collectives cannot be in programs of its ranks.

    Those of one group can, which the result lacks: of the groups with `ranks` processes
    (None: any number) the one with the longest chain of collectives, as tensor parallel
    layers are. Its processes compare their graphs.
    """
    lengths = chains(graph)
    if not distributed.is_initialized():
        return dict.fromkeys(lengths, "there are no processes of other ranks")
    groups = {name: named(name) for name in lengths}
    found = {
        name: f"their group, {described(group)}, is not one of {ranks} ranks, which "
        "pipeline_of_ranks is for"
        for name, group in groups.items()
        if ranks not in (None, group.size())
    }
    possible = [name for name in groups if name not in found]
    if not possible:
        return found
    chosen = max(possible, key=lengths.__getitem__)
    reason = _obstacle(graph, groups[chosen])
    if reason is not None:
        return found | dict.fromkeys(possible, reason)
    known = described(groups[chosen])
    return found | {
        name: f"their group, {described(groups[name])}, is not that of the "
        f"collectives in kernels, {known}"
        for name in possible
        if name != chosen
    }


def _obstacle(graph: fx.Graph, group: ProcessGroup) -> str | None:
    """Return why collectives of a group cannot be in a program; None if they can."""
    if distributed.get_backend(group) == "fake":
        return "there are no processes of other ranks"
    if torch.version.hip and group.size() < distributed.get_world_size():
        return "their group is not that of all processes, whose memory Iris shares"
    if torch.device("cpu") not in group._device_types:
        return "their group has no back end of the host, as cpu:gloo,cuda:nccl has"
    return None if _same_everywhere(graph, group) else "processes have different graphs"


def _same_everywhere(graph: fx.Graph, group: ProcessGroup) -> bool:
    """Return whether the processes of a group have the same graph, on their devices."""
    tensors = (tensor for node in graph.nodes for tensor in meta_of(node))
    known = [(*tensor.shape, *tensor.stride(), tensor.dtype) for tensor in tensors]
    text = re.sub(r"cuda:\d+", "cuda", f"{_with_numbered_groups(graph)}{known}")
    digests: list[object] = [None] * group.size()
    digest = sha256(text.encode()).hexdigest()
    distributed.all_gather_object(digests, digest, group=group)
    return len(set(digests)) == 1


def _with_numbered_groups(graph: fx.Graph) -> list[str]:
    """
    Return the nodes of a graph, which have numbers for the names of groups.

    Each process of a group is in other groups along the other axes of a mesh.
    """
    numbers = {name: number for number, name in enumerate(chains(graph))}
    return [
        f"{node.name} = {node.target}{node.args[:-1]} of group {numbers[name]}"
        if (name := group_of(node)) is not None and name in node.args
        else f"{node.format_node()}"
        for node in graph.nodes
    ]


@_untraced()
def from_first_rank(make: Callable[[], str], group: ProcessGroup) -> str:
    """
    Return what the first rank of a group makes, on all of them.

    If that raises an error, so does this, on other ranks a CometError: no rank waits
    for one that failed.
    """
    found: list[object] = [None, None]
    failure: Exception | None = None
    if group.rank() == 0:
        try:
            found = [make(), None]
        except Exception as error:
            failure = error
            found = [None, str(error)]
    distributed.broadcast_object_list(found, group=group, group_src=0)
    text, message = found
    if not isinstance(text, str):
        raise failure or CometError(str(message))
    return text


@_untraced()
def rank_function(
    program: RankProgram, device: torch.device, group: ProcessGroup
) -> RankFunction:
    """
    Return what this rank does in a program; the processes of `group` call this.

    Memory that ranks share is allocated once; results are new tensors in each call.
    """
    size = heap_bytes(program)
    call = (
        _on_gpu(program, size, device, group)
        if device.type == "cuda"
        else _interpreted(program, size, group)
    )

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(each.clone() for each in as_tuple(call(*tensors)))

    return function


Call: TypeAlias = "Callable[..., Tensor | tuple[Tensor, ...]]"


def _on_gpu(
    program: RankProgram, size: int, device: torch.device, group: ProcessGroup
) -> Call:
    """Allocate symmetric memory of GPUs, and return the plan of this rank."""
    from comet.runtime.distributed import DistributedRank
    from comet.runtime.peer_memory import peer_memory

    memory = peer_memory(size, device, group)
    return program.plan(DistributedRank(group.rank(), memory, group))


def _interpreted(program: RankProgram, size: int, group: ProcessGroup) -> Call:
    """Share memory with the processes of this machine, and return what a call runs."""
    from comet.runtime.processes import AttachedRank, shared_folder

    rank, world = group.rank(), group.size()
    folder = from_first_rank(lambda: str(shared_folder(world, size)), group)
    attached = AttachedRank(Path(folder), rank, world)
    distributed.barrier(group)
    if rank == 0:
        shutil.rmtree(folder)
    plan = attached.run(program.plan)

    def call(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
        # Kernels run in another thread, where torch would ask for gradients.
        values = [tensor.detach() for tensor in tensors]
        return attached.run(lambda _: plan(*values))

    return call
