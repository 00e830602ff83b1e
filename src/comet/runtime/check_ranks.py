"""Runs a program of several ranks, epoch after epoch, and judges what they computed."""

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
    expected,
    random_inputs,
    relative_error,
    to_float64,
    tolerance,
)
from comet.runtime.heap import Heap
from comet.runtime.program import RankProgram, Tensor, load_module, program_of
from comet.runtime.progress import PROGRESS
from comet.runtime.ranks import KernelCall, Rank

if TYPE_CHECKING:
    from comet.runtime.program import Array

Run = Callable[["Host"], "list[Epochs]"]
"""Runs a host program on the ranks that it is for; returns what each computed."""
Epochs = list[tuple["Array", ...]]
"""What one rank computed in each launch, on its shard."""


@dataclass(frozen=True)
class Host:
    """The host program of every rank: fresh inputs for each launch, nothing cleared."""

    path: str
    """The emitted module; processes and threads load it themselves."""
    seed: int
    epochs: int

    def __call__(self, rank: Rank) -> Epochs:
        """Return what the rank computed in each launch."""
        session = self.session(rank)
        (results,) = played([session], session.launch, self.epochs)
        return results

    @property
    def program(self) -> RankProgram:
        """What the module says about itself."""
        return rank_program(self.path)

    def session(self, rank: Rank) -> Session:
        """Allocate what a rank needs for all its launches."""
        return Session(self, rank)

    def drawn(self, epoch: int) -> tuple[torch.Tensor, ...]:
        """Return the whole inputs of one launch, the same on every rank."""
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
        """Bring the rank's shard of fresh inputs to where that launch finds it."""
        tensors, drawn = self._host.program.inputs, self._host.drawn(epoch)
        arguments = iter(self._arguments)
        for tensor, whole in zip(tensors, drawn, strict=True):
            shard = shard_of(whole, tensor, self._rank.rank, self._rank.world)
            if tensor.place is None:
                local = next(arguments)
            else:
                local = tensor.place(self._plan, epoch + 1)
            self._rank.write(local, shard)

    def launch(self) -> None:
        """Launch the program once."""
        self._outputs = as_tuple(self._plan(*self._arguments))

    def outputs(self) -> tuple[torch.Tensor, ...]:
        """Return copies of what the last launch has computed, where the rank is."""
        return tuple(self._rank.read(value) for value in self._outputs)

    def read(self) -> None:
        """Keep what the rank has computed."""
        self.results.append(tuple(map(to_float64, self.outputs())))


def played(
    sessions: Sequence[Session],
    launch: Callable[[], None],
    epochs: int,
    captured: Callable[[Callable[[], None]], Callable[[], None]] | None = None,
) -> list[Epochs]:
    """
    Launch the ranks of this process so often; return what each computed.

    `launch` does it once for all of them; `captured` returns what repeats that, and
    takes its place after the first launch.
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

    Raises `ValueError` where it is for one rank.
    """
    program = program_of(load_module(path), path)
    if not isinstance(program, RankProgram):
        raise ValueError(f"{path} is compiled for one rank; run it without --ranks")
    return program


@lru_cache(maxsize=1)
def _drawn(path: str, seed: int, epoch: int) -> tuple[torch.Tensor, ...]:
    """Draw inputs; kept, since one process may be many ranks that want the same."""
    return random_inputs(rank_program(path), (seed, epoch), "cpu")


def local_shape(tensor: Tensor, ranks: int) -> tuple[int, ...]:
    """Return the shape of a rank's shard, padding included, in elements."""
    return tuple(
        -(-extent // ranks) if axis == tensor.split else extent
        for axis, extent in enumerate(tensor.shape)
    )


def shard_of(
    whole: torch.Tensor, tensor: Tensor, rank: int, ranks: int
) -> torch.Tensor:
    """Return a rank's shard; nan stands where the last shares are short."""
    if tensor.split is None:
        return whole
    shape = local_shape(tensor, ranks)
    size = shape[tensor.split]
    first = min(rank * size, whole.shape[tensor.split])
    length = min(size, whole.shape[tensor.split] - first)
    shard = torch.full(shape, torch.nan, device=whole.device).to(whole.dtype)
    part = whole.narrow(tensor.split, first, length)
    shard.narrow(tensor.split, 0, length).copy_(part)
    return shard


def joined(parts: Sequence[Array], tensor: Tensor) -> list[Array]:
    """Return the whole results that the ranks hold: all copies, or the shards, one."""
    if tensor.split is None:
        return list(parts)
    whole = np.concatenate(parts, axis=tensor.split)
    return [whole.take(range(tensor.shape[tensor.split]), axis=tensor.split)]


class IdleRank(Rank):
    """A rank without memory that does nothing: shows what a plan asks for."""

    def __init__(self, world: int):
        self.rank, self.world, self.device = 0, world, "meta"
        self.heap = Heap(torch.empty(1 << 62, dtype=torch.uint8, device="meta"))
        self.heap_bases = torch.empty(world, dtype=torch.int64, device="meta")

    def launch_together(self, *launches: KernelCall) -> None:
        """Launch nothing."""

    def barrier(self) -> None:
        """Meet nobody."""

    def write(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """Write nothing."""

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return what is there: no data."""
        return tensor


def heap_bytes(program: RankProgram) -> int:
    """Return the bytes that a rank's plan takes of the symmetric heap."""
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
    judged = [
        result
        for epoch in range(epochs)
        for result in _judged(program, host.drawn(epoch), ranks, epoch, seconds)
    ]
    return max(judged, key=lambda result: result.excess)


def _judged(
    program: RankProgram,
    inputs: Sequence[torch.Tensor],
    ranks: Sequence[Epochs],
    epoch: int,
    seconds: float,
) -> list[CheckResult]:
    """Compare what all ranks computed in one launch with the reference."""
    PROGRESS.enter(f"the reference of launch {epoch + 1} in numpy")
    references = expected(program, inputs)
    return [
        CheckResult(
            relative_error(torch.tensor(whole), torch.tensor(reference)),
            tolerance(output),
            seconds,
        )
        for index, (output, reference) in enumerate(
            zip(program.outputs, references, strict=True)
        )
        for whole in joined([rank[epoch][index] for rank in ranks], output)
    ]
