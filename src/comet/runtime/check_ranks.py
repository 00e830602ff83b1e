"""Runs a program of several ranks, epoch after epoch, and checks its results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from comet.runtime.check import (
    CheckResult,
    as_tuple,
    compare,
    random_inputs,
    to_float64,
)
from comet.runtime.heap import Heap
from comet.runtime.program import RankProgram, Tensor, load_module, program_of
from comet.runtime.progress import PROGRESS
from comet.runtime.ranks import KernelCall, Rank

if TYPE_CHECKING:
    from comet.runtime.program import Array

Run = Callable[["Host"], "list[Epochs]"]
"""Runs a host program on all its ranks; returns the results of each."""
Epochs = list[tuple["Array", ...]]
"""The results of one rank for each launch: its shards."""


@dataclass(frozen=True)
class Host:
    """The host program of every rank: new inputs for each launch, no reset."""

    path: str
    """The emitted module; every process or thread loads it."""
    seed: int
    epochs: int

    def __call__(self, rank: Rank) -> Epochs:
        """Return the rank's results of each launch."""
        session = self.session(rank)
        (results,) = run_epochs([session], session.launch, self.epochs)
        return results

    @property
    def program(self) -> RankProgram:
        """The program of the module."""
        return rank_program(self.path)

    def session(self, rank: Rank) -> Session:
        """Allocate the memory of a rank for all launches."""
        return Session(self, rank)

    def drawn(self, epoch: int) -> tuple[torch.Tensor, ...]:
        """Return the inputs of one launch, unsharded, equal on every rank."""
        return _drawn(self.path, self.seed, epoch)


class Session:
    """The host program of one rank, step by step."""

    def __init__(self, host: Host, rank: Rank):
        self._host = host
        self._rank = rank
        self._plan = host.program.plan(rank)
        self._arguments = [
            rank.empty(local_shape(tensor, rank.world), getattr(torch, tensor.dtype))
            for tensor in host.program.arguments
        ]
        self._outputs: tuple[torch.Tensor, ...] = ()
        self.results: Epochs = []

    def write(self, epoch: int) -> None:
        """Write the rank's shards of new inputs to where that launch reads them."""
        tensors, drawn = self._host.program.inputs, self._host.drawn(epoch)
        arguments = iter(self._arguments)
        for tensor, full in zip(tensors, drawn, strict=True):
            shard = shard_of(full, tensor, self._rank.rank, self._rank.world)
            if tensor.address is None:
                local = next(arguments)
            else:
                local = tensor.address(self._plan, epoch + 1)
            self._rank.write(local, shard)

    def launch(self) -> None:
        """Launch the program once."""
        self._outputs = as_tuple(self._plan(*self._arguments))

    def outputs(self) -> tuple[torch.Tensor, ...]:
        """Return copies of the outputs of the last launch, on the rank's device."""
        return tuple(self._rank.read(value) for value in self._outputs)

    def read(self) -> None:
        """Record the outputs of the last launch."""
        self.results.append(tuple(map(to_float64, self.outputs())))


def run_epochs(
    sessions: Sequence[Session],
    launch: Callable[[], None],
    epochs: int,
    captured: Callable[[Callable[[], None]], Callable[[], None]] | None = None,
) -> list[Epochs]:
    """
    Launch the ranks of this process `epochs` times; return what each computed.

    `launch` launches once for all of them. `captured` turns it into a function that
    replays it, which is used from the second launch on.
    """
    for epoch in range(epochs):
        for session in sessions:
            session.write(epoch)
        PROGRESS.enter(f"launch {epoch + 1} of {epochs}")
        launch()
        for session in sessions:
            session.read()
        if epoch == 0 and captured is not None:
            launch = captured(launch)
    return [session.results for session in sessions]


@cache
def rank_program(path: str) -> RankProgram:
    """
    Load a module once in this process; return its program.

    Raises `ValueError` if the module is for one rank.
    """
    program = program_of(load_module(path), path)
    if not isinstance(program, RankProgram):
        raise ValueError(f"{path} is compiled for one rank; run it without --ranks")
    return program


@lru_cache(maxsize=1)
def _drawn(path: str, seed: int, epoch: int) -> tuple[torch.Tensor, ...]:
    """Draw inputs; cached for the other ranks of this process."""
    return random_inputs(rank_program(path), (seed, epoch), "cpu")


def local_shape(tensor: Tensor, ranks: int) -> tuple[int, ...]:
    """Return the shape of a rank's shard, padding included, in elements."""
    return tuple(
        -(-extent // ranks) if axis == tensor.split else extent
        for axis, extent in enumerate(tensor.shape)
    )


def shard_of(full: torch.Tensor, tensor: Tensor, rank: int, ranks: int) -> torch.Tensor:
    """Return a rank's shard; the missing elements of a short last shard are nan."""
    if tensor.split is None:
        return full
    shape = local_shape(tensor, ranks)
    size = shape[tensor.split]
    first = min(rank * size, full.shape[tensor.split])
    length = min(size, full.shape[tensor.split] - first)
    shard = torch.full(shape, torch.nan, device=full.device).to(full.dtype)
    part = full.narrow(tensor.split, first, length)
    shard.narrow(tensor.split, 0, length).copy_(part)
    return shard


def joined(parts: Sequence[Array], tensor: Tensor) -> list[Array]:
    """Return the complete results: every copy, or the shards concatenated."""
    if tensor.split is None:
        return list(parts)
    full = np.concatenate(parts, axis=tensor.split)
    return [full.take(range(tensor.shape[tensor.split]), axis=tensor.split)]


class IdleRank(Rank):
    """A rank without memory that executes nothing: shows what a plan launches."""

    def __init__(self, world: int):
        self.rank, self.world, self.device = 0, world, "meta"
        self.heap = Heap(torch.empty(1 << 62, dtype=torch.uint8, device="meta"))
        self.heap_bases = torch.empty(world, dtype=torch.int64, device="meta")
        self.queued: list[KernelCall] = []

    def launch_together(self, *launches: KernelCall) -> None:
        """Keep what the plan launches."""
        self.queued += launches

    def barrier(self) -> None:
        """Do nothing."""

    def write(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """Write nothing."""

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor, which has no data."""
        return tensor


def heap_bytes(program: RankProgram) -> int:
    """Return the bytes of the symmetric heap that a rank's plan allocates."""
    rank = IdleRank(program.ranks)
    program.plan(rank)
    return max(rank.heap.used, 1)


def check_ranks(path: str, seed: int, epochs: int, run: Run) -> CheckResult:
    """
    Run a module's program on its ranks and compare every launch with the reference.

    Raises what the back end raises: `DeadlockError`, `RaceError`, `ProgramError`,
    `SymmetryError`.
    """
    program, host = rank_program(path), Host(path, seed, epochs)
    start = time.perf_counter()
    PROGRESS.enter("the launches")
    ranks = run(host)
    seconds = (time.perf_counter() - start) / epochs
    results = [
        result
        for epoch in range(epochs)
        for result in _compared(program, host.drawn(epoch), ranks, epoch, seconds)
    ]
    return max(results, key=lambda result: result.excess)


def _compared(
    program: RankProgram,
    inputs: Sequence[torch.Tensor],
    ranks: Sequence[Epochs],
    epoch: int,
    seconds: float,
) -> list[CheckResult]:
    """Compare what all ranks computed in one launch with the reference."""
    PROGRESS.enter(f"the reference of launch {epoch + 1} in numpy")
    copies = [
        [
            torch.tensor(full)
            for full in joined([rank[epoch][index] for rank in ranks], output)
        ]
        for index, output in enumerate(program.outputs)
    ]
    return compare(program, inputs, copies, seconds)
