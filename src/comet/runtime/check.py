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
DRAWS = 4
"""How many times inputs are perturbed to find how sensitive a reference is."""


@dataclass(frozen=True)
class CheckResult:
    """The error of a result against its reference; of several results, the worst."""

    max_error: float
    """
    The largest error as `relative_error` defines it; nan where a result is not finite.
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
    Draw inputs of the program's shapes and element types: normal, counts, or booleans.

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
    return [to_float64(value) for value in _distinct(program, inputs)]


def _distinct(
    program: Program | RankProgram, inputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    return [
        value
        for tensor, value in zip(program.inputs, inputs, strict=True)
        if tensor.same_as is None
    ]


def _random_array(tensor: Tensor, generator: np.random.Generator) -> Array:
    if tensor.dtype in ("int8", "int32", "int64"):
        bounds = tensor.at_least, tensor.at_most
        counts = generator.integers(*bounds, tensor.shape, endpoint=True)
        return counts.astype(np.float64)
    if tensor.dtype == "bool":
        return generator.integers(0, 1, tensor.shape, endpoint=True).astype(np.float64)
    return generator.standard_normal(tensor.shape) * tensor.terms**-0.25


def relative_error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """
    Return max |result - reference| / max(|reference|, rms of all, rms of its row).

    Rows are along the last axis. What rounds a sum of products is proportional to its
    terms, not to their sum (Higham, "Accuracy and Stability of Numerical Algorithms",
    2nd edition, SIAM 2002, equation 3.13), and terms are as large as the sums beside
    them: the first rows of causal attention have few of them, and 40 times the rms of
    all rows.

    It is computed in float64 on the device of both, over the elements whose reference
    is finite. Infinite ones and NaN have to be the same in the result. It is nan where
    they are not, and where the result is not finite elsewhere.
    """
    result, reference = result.double(), reference.double()
    finite = torch.isfinite(reference)
    equal = (result == reference) | (result.isnan() & reference.isnan())
    if not torch.where(finite, torch.isfinite(result), equal).all():
        return math.nan
    if not finite.any():
        return 0.0
    squares = torch.where(finite, reference, 0.0).square()
    least = torch.finfo(torch.float64).tiny
    rms = (squares.sum() / finite.sum()).sqrt().clamp(min=least)
    rows = (squares.sum(-1) / finite.sum(-1).clamp(min=1)).sqrt().clamp(min=rms)
    scale = torch.maximum(reference.abs(), rows.unsqueeze(-1))
    return float(((result - reference).abs() / scale)[finite].max())


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
    copies = [[result.cpu()] for result in results]
    compared = compare(program, inputs, copies, seconds)
    return max(compared, key=lambda result: result.excess)


def compare(
    program: Program | RankProgram,
    inputs: Sequence[torch.Tensor],
    results: Sequence[Sequence[torch.Tensor]],
    seconds: float,
) -> list[CheckResult]:
    """
    Compare all copies of each result of a launch with the reference.

    `results` holds for each output the copies that ranks have. The tolerance that the
    compiler derives does not know the data: where a result is outside it, the tolerance
    grows to the sensitivity of the reference. Raises `ValueError` if results differ
    from the program's in number or shape.
    """
    references = expected(program, inputs)
    _expect_shapes([copies[0] for copies in results], references)
    compared: list[CheckResult] = []
    for index, (output, copies) in enumerate(
        zip(program.outputs, results, strict=True)
    ):
        reference = torch.tensor(references[index])
        errors = [relative_error(copy, reference) for copy in copies]
        accepted = tolerance(output)
        if any(error > accepted for error in errors):
            moved = sensitivity(program, inputs, references, index)
            accepted = max(accepted, SAFETY * moved)
        compared += [CheckResult(error, accepted, seconds) for error in errors]
    return compared


def sensitivity(
    program: Program | RankProgram,
    inputs: Sequence[torch.Tensor],
    references: Sequence[Array],
    index: int,
) -> float:
    """
    Return how far the reference of a result moves when inputs are off by a rounding.

    It is large where a sum nearly cancels. It is a relative error as `relative_error`
    defines it, the largest of some draws (Monte Carlo arithmetic: D. S. Parker, UCLA
    CSD-970002, 1997). A rounding is one of the coarsest floating-point type among the
    inputs and the result; integers are exact.
    """
    values = _distinct(program, inputs)
    types = [v.dtype for v in values] + [getattr(torch, program.outputs[index].dtype)]
    floating = [t for t in types if t.is_floating_point]
    rounding = max((torch.finfo(t).eps for t in floating), default=0.0)
    reference = torch.tensor(references[index])
    moved = 0.0
    for seed in range(DRAWS):
        generator = np.random.default_rng(seed)
        arguments = [
            _perturbed(to_float64(v), rounding, generator)
            if v.is_floating_point()
            else to_float64(v)
            for v in values
        ]
        result = as_tuple(program.reference(*arguments))[index]
        moved = max(moved, relative_error(torch.tensor(np.asarray(result)), reference))
    return moved


def _perturbed(array: Array, rounding: float, generator: np.random.Generator) -> Array:
    return array * (1 + rounding * generator.uniform(-1, 1, array.shape))


def as_tuple(value: T | tuple[T, ...]) -> tuple[T, ...]:
    """Return a tuple as it is, and a single value as a tuple of one."""
    if isinstance(value, tuple):
        return cast("tuple[T, ...]", value)
    return (value,)


def to_float64(value: torch.Tensor) -> Array:
    """Copy a tensor of any device and element type to numpy."""
    return value.detach().cpu().double().numpy()


def _expect_shapes(
    results: Sequence[torch.Tensor], references: Sequence[Array]
) -> None:
    shapes = [
        [tuple(value.shape) for value in group] for group in (results, references)
    ]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"the program returns shapes {shapes[0]}, its reference {shapes[1]}"
        )
