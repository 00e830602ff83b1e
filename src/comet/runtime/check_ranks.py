"""Runs a program of several ranks, epoch after epoch, and judges what they computed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from comet.runtime.check import (
    CheckResult,
    as_tuple,
    random_inputs,
    relative_error,
    to_float64,
    tolerance,
)
from comet.runtime.heap import Heap
from comet.runtime.program import RankProgram, Tensor, load_module, program_of
from comet.runtime.ranks import Launch, Rank

if TYPE_CHECKING:
    from comet.runtime.program import Array

Run = Callable[["Host", int, int], "list[Epochs]"]
"""Runs a host program on so many ranks with heaps of so many bytes."""
Epochs = list[tuple["Array", ...]]
"""What one rank computed in each launch, on its share."""


@dataclass(frozen=True)
class Host:
    """The host program of every rank: fresh inputs for each launch, nothing cleared."""

    path: str
    """The emitted module; processes and threads load it themselves."""
    seed: int
    epochs: int

    def __call__(self, rank: Rank) -> Epochs:
        """Return what the rank computed in each launch."""
        program = rank_program(self.path)
        plan = program.plan(rank)
        inputs = [self._allocated(rank, tensor) for tensor in program.inputs]
        results: Epochs = []
        for epoch in range(self.epochs):
            for local, tensor, whole in zip(
                inputs, program.inputs, self.drawn(epoch), strict=True
            ):
                rank.write(local, share_of(whole, tensor, rank.rank, rank.world))
            outputs = as_tuple(plan(*inputs))
            results.append(tuple(to_float64(rank.read(value)) for value in outputs))
        return results

    def drawn(self, epoch: int) -> tuple[torch.Tensor, ...]:
        """Return the whole inputs of one launch, the same on every rank."""
        return random_inputs(rank_program(self.path), (self.seed, epoch), "cpu")

    @staticmethod
    def _allocated(rank: Rank, tensor: Tensor) -> torch.Tensor:
        shape = local_shape(tensor, rank.world)
        return rank.empty(shape, getattr(torch, tensor.dtype))


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


def local_shape(tensor: Tensor, ranks: int) -> tuple[int, ...]:
    """Return the shape of a rank's share, padding included, in elements."""
    return tuple(
        -(-extent // ranks) if axis == tensor.split else extent
        for axis, extent in enumerate(tensor.shape)
    )


def share_of(
    whole: torch.Tensor, tensor: Tensor, rank: int, ranks: int
) -> torch.Tensor:
    """Return a rank's share; nan stands where the last shares are short."""
    if tensor.split is None:
        return whole
    shape = local_shape(tensor, ranks)
    size = shape[tensor.split]
    first = min(rank * size, whole.shape[tensor.split])
    length = min(size, whole.shape[tensor.split] - first)
    share = torch.full(shape, torch.nan).to(whole.dtype)
    part = whole.narrow(tensor.split, first, length)
    share.narrow(tensor.split, 0, length).copy_(part)
    return share


def joined(parts: Sequence[Array], tensor: Tensor) -> list[Array]:
    """Return the whole results that the ranks hold: all copies, or the shares, one."""
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

    def launch_together(self, *launches: Launch) -> None:
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
    ranks = run(host, program.ranks, heap_bytes(program))
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
    references = as_tuple(program.reference(*map(to_float64, inputs)))
    return [
        CheckResult(
            relative_error(whole, reference), tolerance(output, program.terms), seconds
        )
        for index, (output, reference) in enumerate(
            zip(program.outputs, references, strict=True)
        )
        for whole in joined([rank[epoch][index] for rank in ranks], output)
    ]
