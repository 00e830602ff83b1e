"""
Attention as one op of torch: `torch.ops.comet.attention`.

Torch cuts `scaled_dot_product_attention` into other ops on each device. The back end
puts this one in its place before gradients are derived, so that forward and backward
each have one translation. What is not compiled runs as written here.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from math import sqrt
from unittest.mock import patch

import torch
from torch import Tensor, fx
from torch.autograd.function import FunctionCtx
from torch.nn import functional

from comet.pytorch.random_numbers import drawn_seed, random, scale_of_kept

TORCHS = functional.scaled_dot_product_attention
"""Torch's own function."""


def _scores(
    query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> Tensor:
    """Return the scores of all keys in f32."""
    scores = query.float() @ key.float().mT * scale
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(~seen.tril(), float("-inf"))
    if mask is None:
        return scores
    if mask.dtype is torch.bool:
        return scores.masked_fill(~mask, float("-inf"))
    return scores + mask.float()


def _heads(query: Tensor, other: Tensor) -> Tensor:
    """Return keys or values for every head of queries, of which several share one."""
    if other.dim() < 3 or other.shape[-3] == query.shape[-3]:
        return other
    return other.repeat_interleave(query.shape[-3] // other.shape[-3], -3)


def _dropped(weights: Tensor, dropout: float, seed: Tensor | None) -> Tensor:
    """Return weights of which a part is 0, by a seed, and the others are larger."""
    if seed is None:
        return weights
    kept = random(seed, list(weights.shape), weights.dim() - 2) >= dropout
    return torch.where(kept, weights * scale_of_kept(dropout), 0.0)


@torch.library.custom_op("comet::attention", mutates_args=())
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """
    Return attention, and of each query the logarithm of the sum of powers, in f32.

    Queries are (.., heads, queries, width), keys and values the same with keys instead
    of queries, and with as many heads or a divisor of them. Where a mask hides all keys
    of a query, both results are 0. With a seed the part `dropout` of weights is 0.
    """
    scores = _scores(query, _heads(query, key), mask, causal, scale)
    hidden = scores.isneginf().all(-1, keepdim=True)
    weights = _dropped(scores.softmax(-1).masked_fill(hidden, 0), dropout, seed)
    statistic = scores.logsumexp(-1).masked_fill(hidden.squeeze(-1), 0)
    return weights.to(value.dtype) @ _heads(query, value), statistic


def _shape_of_attention(
    query: Tensor, key: Tensor, value: Tensor, *_: object
) -> tuple[Tensor, Tensor]:
    shape = query.shape[:-1]
    statistic = query.new_empty(shape, dtype=torch.float32)
    return query.new_empty((*shape, value.shape[-1])), statistic


@torch.library.custom_op("comet::attention_backward", mutates_args=())
def attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    result: Tensor,
    statistic: Tensor,
    causal: bool,
    scale: float,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of queries, keys and values; weights are computed again."""
    keys, values = _heads(query, key), _heads(query, value)
    scores = _scores(query, keys, mask, causal, scale)
    weights = (scores - statistic.unsqueeze(-1)).exp()
    mean = (grad.float() * result.float()).sum(-1, keepdim=True)
    by_weight = _dropped(grad.float() @ values.float().mT, dropout, seed)
    by_score = (weights * (by_weight - mean) * scale).to(query.dtype)
    of_keys = by_score.mT @ query
    of_values = _dropped(weights, dropout, seed).to(query.dtype).mT @ grad
    return by_score @ keys, _summed(of_keys, key), _summed(of_values, value)


def _summed(gradient: Tensor, shared: Tensor) -> Tensor:
    """Return the sum over the heads of queries that share a head."""
    if gradient.shape == shared.shape:
        return gradient
    heads = shared.shape[-3]
    *batch, _, rows, columns = gradient.shape
    return gradient.reshape(*batch, heads, -1, rows, columns).sum(-3)


def _shape_of_gradients(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: object
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        query.new_empty(query.shape),
        key.new_empty(key.shape),
        value.new_empty(value.shape),
    )


class _Context(FunctionCtx):
    """What the forward pass keeps for the backward pass."""

    causal: bool
    scale: float
    dropout: float
    has_mask: bool
    saved_tensors: tuple[Tensor, ...]


Inputs = tuple[Tensor, Tensor, Tensor, Tensor | None, bool, float, float, Tensor | None]


def _keep(ctx: _Context, inputs: Inputs, output: tuple[Tensor, Tensor]) -> None:
    query, key, value, mask, ctx.causal, ctx.scale, ctx.dropout, seed = inputs
    ctx.has_mask = mask is not None
    others = [each for each in (mask, seed) if each is not None]
    ctx.save_for_backward(query, key, value, *output, *others)


def _derive(ctx: _Context, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    query, key, value, result, statistic, *others = ctx.saved_tensors
    mask = others.pop(0) if ctx.has_mask else None
    gradients = attention_backward(
        grad,
        query,
        key,
        value,
        mask,
        result,
        statistic,
        ctx.causal,
        ctx.scale,
        ctx.dropout,
        others[0] if others else None,
    )
    return *gradients, None, None, None, None, None


torch.library.register_autograd("comet::attention", _derive, setup_context=_keep)  # pyright: ignore[reportUnknownMemberType]
torch.library.register_fake("comet::attention", _shape_of_attention)  # pyright: ignore[reportUnknownMemberType]
torch.library.register_fake("comet::attention_backward", _shape_of_gradients)  # pyright: ignore[reportUnknownMemberType]


def attention_of_torch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`scaled_dot_product_attention`, by the op of this module where it can be."""
    learns = attn_mask is not None and attn_mask.requires_grad
    batch = query.shape[:-3]
    same = all(tensor.shape[:-3] == batch for tensor in (key, value))
    if learns or not same or query.dim() < 3:
        return TORCHS(
            query,
            key,
            value,
            attn_mask,
            dropout_p,
            is_causal,
            scale=scale,
            enable_gqa=enable_gqa,
        )
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    query, key, value = map(_autocast, (query, key, value))
    mask = None if attn_mask is None else _autocast(attn_mask)
    seed = drawn_seed(query.device) if dropout_p else None
    how = is_causal, factor, dropout_p, seed
    return attention(query, key, value, mask, *how)[0]


def _autocast(tensor: Tensor) -> Tensor:
    """Return a tensor in the type that `torch.autocast` has attention computed in."""
    kind = tensor.device.type
    if not torch.is_autocast_enabled(kind) or not tensor.is_floating_point():
        return tensor
    return tensor.to(torch.get_autocast_dtype(kind))


@contextmanager
def whole_attention(graph: torch.nn.Module) -> Generator[None]:
    """
    Let attention be one op while a model, or its graph of Dynamo, is traced.

    A graph, or one of those in it that are checkpoints, calls torch's attention
    itself, or functions of torch that do, such as `multi_head_attention_forward`.
    """
    for part in graph.modules():
        if isinstance(part, fx.GraphModule):
            for node in part.graph.nodes:
                if node.target is TORCHS:
                    node.target = attention_of_torch
            part.recompile()
    with patch.object(functional, "scaled_dot_product_attention", attention_of_torch):
        yield
