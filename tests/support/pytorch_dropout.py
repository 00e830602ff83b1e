"""
Runs random ops of torch in kernels, and compares them with formulas: a script.

It prints, in JSON, the errors of results and gradients of models with dropout, of which
the formulas have the same seeds, and what is known of random numbers.
"""

# pyright: basic
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import comet
from comet.interpreter import run
from comet.philox import philox
from comet.pytorch.random_numbers import SEEDS, random

OPTIONS: dict[str, str | int | bool | Callable[..., object]] = {
    "hardware": "samples/hardware/h200x1.yaml",
    "strict": True,
}
DEVIATIONS = 5
"""The most standard deviations between a mean and what is expected of it."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose ops are all in kernels."""
    return torch.compile(function, backend="comet", options=OPTIONS, dynamic=False)


def seeds(count: int) -> Tensor:
    """Return the seeds that a call draws after this seed of torch."""
    torch.manual_seed(3)
    return torch.randint(0, SEEDS, (count,))


def learned(function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    """Return the result after that seed, and the gradients of a sum of its squares."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    torch.manual_seed(3)
    y = function(*leaves)
    y.float().square().sum().backward()
    return [y, *(x.grad for x in leaves if x.grad is not None)]


def error(
    function: Callable[..., Tensor], formula: Callable[..., Tensor], *inputs: Tensor
) -> float:
    """Return the largest error of results and gradients, by the largest magnitude."""
    pairs = zip(
        learned(compiled(function), *inputs), learned(formula, *inputs), strict=True
    )
    errors = [((a - b).abs().max() / b.abs().max()).item() for a, b in pairs]
    return max(errors)


def layers(x: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Return two products with dropout behind each."""
    y = functional.dropout(x @ one, 0.25).relu()
    return functional.dropout(y @ other, 0.5)


def layers_by_masks(x: Tensor, one: Tensor, other: Tensor) -> Tensor:
    first, second = seeds(2)
    y = x @ one
    y = (y * (random(first, list(y.shape), 0) >= 0.25) / 0.75).relu() @ other
    return y * (random(second, list(y.shape), 0) >= 0.5) / 0.5


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(
        q, k, v, dropout_p=0.3, is_causal=True, enable_gqa=True
    )


def attention_by_masks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    (seed,) = seeds(1)
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
    kept = random(seed, list(scores.shape), 2) >= 0.3
    return (weights * kept / 0.7) @ v


def saved(x: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Return the layers, whose backward pass computes the first one again."""
    return checkpoint(layers, x, one, other, use_reentrant=False)


def is_expected(numbers: Tensor, mean: float, variance: float) -> bool:
    """Return whether the mean and the variance of many numbers are these."""
    centred = numbers.double() - mean
    squares = centred.square()
    return all(
        (found.mean().abs() * len(numbers) ** 0.5 < DEVIATIONS * found.std()).item()
        for found in (centred, squares - variance)
    )


def samples(x: Tensor, p: Tensor) -> tuple[Tensor, ...]:
    """Return what torch's random ops return."""
    return (
        torch.rand(len(x)),
        torch.rand_like(x),
        torch.randn_like(x),
        torch.bernoulli(p),
        torch.bernoulli(x, 0.3),
        torch.empty_like(x).uniform_(2, 5),
        torch.empty_like(x).exponential_(4),
        functional.dropout(x, 0.2),
        functional.dropout(x, 1.0),
    )


MOMENTS = (
    *((0.5, 1 / 12), (0.5, 1 / 12), (0, 1), (0.75, 3 / 16), (0.3, 0.21)),
    *((3.5, 0.75), (0.25, 1 / 16), (1, 0.25)),
)
"""The mean and the variance of each but the last one; of x all numbers are 1."""


def statistics() -> dict[str, bool]:
    x = torch.ones(600)
    function = compiled(samples)
    torch.manual_seed(7)
    *found, nothing = function(x, 0.75 * x)
    again = function(x, 0.75 * x)
    torch.manual_seed(7)
    same = function(x, 0.75 * x)
    number = len(MOMENTS)
    return {
        "moments": all(
            is_expected(each, *known)
            for each, known in zip(found, MOMENTS, strict=True)
        ),
        "nothing": not nothing.any(),
        "ops differ": not torch.equal(found[0], found[1]),
        "calls differ": not any(map(torch.equal, found, again[:number])),
        "seeds are obeyed": all(map(torch.equal, found, same[:number])),
    }


def draws_once() -> bool:
    """Return whether a call draws one number for each random op, and all at once."""
    function = compiled(layers)
    given = torch.randn(4, 8), torch.randn(8, 8), torch.randn(8, 8)
    torch.manual_seed(3)
    function(*given)
    state = torch.get_rng_state()
    seeds(2)
    return torch.equal(state, torch.get_rng_state())


def narrow() -> bool:
    """Return whether random numbers of few digits are below 1."""
    found = compiled(lambda x: torch.rand_like(x))(
        torch.ones(4096, dtype=torch.bfloat16)
    )
    return found.dtype is torch.bfloat16 and 0.98 < found.max().item() < 1


def is_philox() -> bool:
    """Return whether torch's op has the numbers of numpy's, also with many seeds."""
    seed = SEEDS - 2
    found = random(torch.tensor(seed), [2, 3, 5], 1)
    positions = np.arange(15, dtype=np.float64).reshape(3, 5)
    pair = [philox(np.asarray(float(seed + n)), positions) for n in (0, 1)]
    return np.array_equal(found.numpy(), np.stack(pair))


def exported() -> float:
    """Return the error of a program that takes seeds."""
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.4), nn.Dropout(0.2))
    x = torch.randn(5, 6)
    program = comet.from_torch(model, x)
    given = [*model.parameters(), x, *seeds(2)]
    (found,) = run(program, "main", [each.detach().double().numpy() for each in given])
    torch.manual_seed(3)
    expected = compiled(model)(x).detach().numpy()
    return float(np.abs(found - expected).max())


def main() -> None:
    q, k = torch.randn(2, 2, 24, 16), torch.randn(2, 1, 24, 16)
    weights = torch.randn(12, 20), torch.randn(20, 9)
    found = {
        "layers": error(layers, layers_by_masks, torch.randn(3, 7, 12), *weights),
        "checkpoint": error(saved, layers_by_masks, torch.randn(7, 12), *weights),
        "attention": error(attention, attention_by_masks, q, k, torch.randn_like(k)),
        "exported": exported(),
        "statistics": statistics(),
        "draws once": draws_once(),
        "narrow": narrow(),
        "philox": is_philox(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
