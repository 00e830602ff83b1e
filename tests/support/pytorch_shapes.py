"""
Calls compiled models with shapes that change, and trains them: a script.

It prints, in JSON, the errors of results and gradients, how many graphs were compiled,
and what is warned of.
"""

# pyright: basic
from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from comet.pytorch import backend
from comet.pytorch.backend import SlowPathWarning

OPTIONS: dict[str, str | int | bool | Callable[..., object]] = {
    "hardware": "samples/hardware/h200x1.yaml"
}


class Attended(nn.Module):
    """Attention of one head with weights, and a norm, whose epsilon is a float."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.weights = nn.LayerNorm(16), nn.Linear(16, 48)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.weights(self.norm(x)).chunk(3, -1)
        y = scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.mean(1) * x.shape[1] / 4


def step(model: nn.Module, run: Callable[..., Tensor], x: Tensor) -> list[Tensor]:
    """Return the result, and the gradients of the parameters."""
    model.zero_grad(set_to_none=True)
    y = run(x)
    y.square().sum().backward()
    return [y, *(p.grad for p in model.parameters() if p.grad is not None)]


def called(shapes: Sequence[tuple[int, int]], limit: int) -> dict[str, object]:
    """Return what a model does that torch compiles for shapes that change."""
    model, errors, slow = Attended(), list[float](), list[str]()
    torch.compiler.reset()
    run = torch.compile(model, backend="comet", options=OPTIONS, dynamic=True)
    with (
        patch.object(torch._dynamo.config, "recompile_limit", limit),
        patch.object(backend, "_region", wraps=backend._region) as region,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", SlowPathWarning)
        for batch, length in shapes:
            x = torch.randn(batch, length, 16)
            pairs = zip(step(model, run, x), step(model, model, x), strict=True)
            errors += [(a - b).abs().max().item() for a, b in pairs]
    slow = [str(each.message) for each in caught if each.category is SlowPathWarning]
    return {"error": max(errors), "regions": region.call_count, "slow": slow}


def main() -> None:
    found = {
        "few": called([(2, 5), (3, 7), (2, 5), (3, 7), (2, 5)], 8),
        "many": called([(2, 5), (3, 7), (2, 5), (3, 6), (3, 6), (4, 9)], 2),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
