"""Functions of torch that cases of translations call by name."""

# pyright: basic
from __future__ import annotations

import torch
from torch import Tensor

from comet.pytorch.torch_ops import attention_of_torch


def gradients(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Return attention, and its gradients."""
    ops, causal = torch.ops.comet, mask is None
    out, statistic = ops.attention(q, k, v, mask, causal, 0.3)
    found = ops.attention_backward(g, q, k, v, mask, out, statistic, causal, 0.3)
    return out, *found


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn pairs of the two halves of the last axis."""
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def heads(x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return attention of a block of four heads, and the keys."""
    q, k, v = (x @ w.t() + b).split(x.shape[-1], -1)
    q, k, v = (each.unflatten(-1, (4, -1)).transpose(1, 2) for each in (q, k, v))
    return attention_of_torch(q, k, v, is_causal=True).transpose(1, 2).flatten(2), k


def convolved(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> tuple[Tensor, ...]:
    """Return a convolution, and the gradients of half the sum of its squares."""
    ops, axes = torch.ops.aten, x.dim() - 2
    how = [[stride] * axes, [padding] * axes, [dilation] * axes]
    rest = *how, False, [0] * axes, groups
    y = ops.convolution(x, w, bias, *rest)
    wanted = [True, True, bias is not None]
    found = ops.convolution_backward(y, x, w, [w.shape[0]], *rest, wanted)
    return y, *(each for each in found if each is not None)


def averaged(x: Tensor, *how: object) -> tuple[Tensor, Tensor]:
    """Return means of windows, and the gradient of half the sum of their squares."""
    ops = torch.ops.aten
    y = ops.avg_pool2d(x, *how)
    return y, ops.avg_pool2d_backward(y, x, *how)


def largest(x: Tensor, *how: object) -> tuple[Tensor, ...]:
    """Return maxima of windows, where they are, and their gradient as of `averaged`."""
    ops = torch.ops.aten
    y, places = ops.max_pool2d_with_indices(x, *how)
    return y, places, ops.max_pool2d_with_indices_backward(y, x, *how, places)


NAMES = {
    "torch": torch,
    "F": torch.nn.functional,
    "aten": torch.ops.aten,
    "attention": attention_of_torch,
    "gradients": gradients,
    "rotary": rotary,
    "heads": heads,
    "convolved": convolved,
    "averaged": averaged,
    "largest": largest,
}
"""What the functions may name."""
