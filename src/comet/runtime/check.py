"""Runs a program on random inputs and compares it with its reference."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import torch

from comet.runtime.program import Program, RankProgram, Tensor
from comet.runtime.progress import PROGRESS

if TYPE_CHECKING:
    from comet.runtime.program import Array

T = TypeVar("T")

SAFETY = 4
"""The tolerance is this many times the rounding error to expect."""


@dataclass(frozen=True)
class CheckResult:
    """The error of a result against its reference; of several results, the worst."""

    max_error: float
    """
    The largest |result - reference| relative to max(|reference|, rms(reference)); nan
    where a result is not finite.
    """
    tolerance: float
    seconds: float
    """Wall time of one launch of the program, compilation included."""

    @property
    def excess(self) -> float:
        """The error in units of the tolerance; infinite where it is nan."""
        ratio = self.max_error / self.tolerance
        return math.inf if math.isnan(ratio) else ratio

    @property
    def ok(self) -> bool:
        """Whether every element is within the tolerance."""
        return self.max_error <= self.tolerance


def tolerance(output: Tensor) -> float:
    """
    Return the relative error to accept in a result.

    The compiler derives what to expect from the roundings on the way to the result, see
    `comet.codegen.rounding`.
    """
    return SAFETY * output.rounding


def random_inputs(
    program: Program | RankProgram, seed: int | tuple[int, ...], device: str
) -> tuple[torch.Tensor, ...]:
    """
    Draw inputs of the program's shapes and element types: normal, or counts.

    An input that repeats another (`same_as`) is the same tensor.
    """
    generator = np.random.default_rng(seed)
    drawn: list[torch.Tensor] = []
    for tensor in program.inputs:
        if tensor.same_as is not None:
            drawn.append(drawn[tensor.same_as])
            continue
        array = torch.tensor(_random_array(tensor, generator))
        drawn.append(array.to(device=device, dtype=getattr(torch, tensor.dtype)))
    return tuple(drawn)


def expected(
    program: Program | RankProgram, inputs: Sequence[torch.Tensor]
) -> tuple[Array, ...]:
    """Return the reference's results in float64, on the rounded inputs."""
    results = as_tuple(program.reference(*reference_arguments(program, inputs)))
    return tuple(np.asarray(value) for value in results)


def reference_arguments(
    program: Program | RankProgram, inputs: Sequence[torch.Tensor]
) -> list[Array]:
    """Return the arguments of the reference in float64, each tensor once."""
    return [
        to_float64(value)
        for tensor, value in zip(program.inputs, inputs, strict=True)
        if tensor.same_as is None
    ]


def _random_array(tensor: Tensor, generator: np.random.Generator) -> Array:
    if tensor.dtype == "int32":
        counts = generator.integers(1, tensor.at_most, tensor.shape, endpoint=True)
        return counts.astype(np.float64)
    return generator.standard_normal(tensor.shape) * tensor.terms**-0.25


def relative_error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """
    Return max |result - reference| / max(|reference|, rms(reference)).

    It is computed in float64 on the device of both; nan where a result is not finite.
    """
    result, reference = result.double(), reference.double()
    if not torch.isfinite(result).all():
        return math.nan
    rms = math.sqrt(float(reference.square().mean()))
    scale = reference.abs().clamp(min=max(rms, torch.finfo(torch.float64).tiny))
    return float(((result - reference).abs() / scale).max())


def check(program: Program, seed: int, device: str) -> CheckResult:
    """
    Run the program once on random inputs and compare with its reference.

    The reference computes in float64 on the inputs as rounded to their element types.
    Raises `ValueError` if results differ from the program's in number or shape.
    """
    inputs = random_inputs(program, seed, device)
    PROGRESS.enter("the launch")
    start = time.perf_counter()
    results = as_tuple(program.launch(*inputs))
    if device != "cpu":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    PROGRESS.enter("the reference in numpy")
    references = expected(program, inputs)
    compared = [
        judged(result.cpu(), reference, output, seconds)
        for output, (result, reference) in zip(
            program.outputs, _paired(results, references), strict=True
        )
    ]
    return max(compared, key=lambda result: result.excess)


def judged(
    result: torch.Tensor, reference: Array, output: Tensor, seconds: float
) -> CheckResult:
    """Compare one result of a launch that took so long with its reference."""
    error = relative_error(result, torch.tensor(reference))
    return CheckResult(error, tolerance(output), seconds)


def as_tuple(value: T | tuple[T, ...]) -> tuple[T, ...]:
    """Return a tuple as it is, and a single value as a tuple of one."""
    if isinstance(value, tuple):
        return cast("tuple[T, ...]", value)
    return (value,)


def to_float64(value: torch.Tensor) -> Array:
    """Copy a tensor of any device and element type to numpy."""
    return value.detach().cpu().double().numpy()


def _paired(
    results: tuple[torch.Tensor, ...], references: tuple[Array, ...]
) -> list[tuple[torch.Tensor, Array]]:
    shapes = [
        [tuple(value.shape) for value in group] for group in (results, references)
    ]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"the program returns shapes {shapes[0]}, its reference {shapes[1]}"
        )
    return list(zip(results, references, strict=True))
