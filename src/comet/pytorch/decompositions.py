"""The ATen ops that torch cuts into others before they are translated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import cast

import torch
from torch import _decomp
from torch._ops import OperatorBase
from torch.export import default_decompositions

from comet.pytorch import random_numbers

aten = torch.ops.aten

Table = dict[OperatorBase, Callable[..., object]]

FURTHER = (
    aten.native_layer_norm,
    aten.native_layer_norm_backward,
    aten.native_group_norm,
    aten._softmax_backward_data,
    aten._log_softmax,
    aten._log_softmax_backward_data,
    aten.gelu,
    aten.gelu_backward,
    aten.silu,
    aten.silu_backward,
    aten.sigmoid_backward,
    aten.tanh_backward,
    aten.threshold_backward,
    aten.leaky_relu,
    aten.elu,
    aten.elu_backward,
    aten.softplus,
    aten.mse_loss,
    aten.linalg_vector_norm,
    aten.addmv,
    aten.hardtanh,
    aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_functional,
    aten._adaptive_avg_pool2d,
    aten.upsample_nearest2d,
    aten.upsample_bilinear2d,
)
"""Ops that torch cuts no further by default, and that fuse better in parts."""

WHOLE = (
    aten.addmm.default,
    aten.baddbmm.default,
    aten._softmax.default,
    aten.var_mean.correction,
    aten.embedding_dense_backward.default,
    aten.split_with_sizes.default,
    aten.index_select.default,
    aten.roll.default,
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten.multilabel_margin_loss_forward.default,
)
"""
Ops that have rules, which say more than their parts, and one whose parts are wrong.

What torch 2.13 cuts a `multilabel_margin_loss` of several rows into mixes these up.
"""


def _further() -> Table:
    found = _decomp.get_decompositions(FURTHER)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return cast("Table", found)


def _cat(tensors: Sequence[torch.Tensor], dim: int = 0) -> object:
    """Concatenate only the tensors that have elements."""
    some = [tensor for tensor in tensors if tensor.numel()]
    if len(some) in (0, len(tensors)):
        return NotImplemented
    return aten.cat.default(some, dim)


def _slice_backward(
    grad: torch.Tensor, sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> torch.Tensor:
    """Return zeros with a gradient in the place of the slice, unless that is empty."""
    zeros = grad.new_zeros(sizes)
    if not grad.numel():
        return zeros
    return torch.slice_scatter(zeros, grad, dim, start, end, step)


def _as_strided(
    input: torch.Tensor,
    sizes: Sequence[int],
    strides: Sequence[int],
    offset: int | None = None,
) -> object:
    """Return a view that cuts the axes of a tensor otherwise, as norms of groups do."""
    if not _is_whole(input, sizes, strides, offset):
        return NotImplemented
    return input.view(sizes)


def _as_strided_scatter(
    input: torch.Tensor,
    src: torch.Tensor,
    sizes: Sequence[int],
    strides: Sequence[int],
    offset: int | None = None,
) -> object:
    """Return what is stored to all elements of a tensor, which is its gradient."""
    if not _is_whole(input, sizes, strides, offset):
        return NotImplemented
    return src.reshape(input.shape)


def _is_whole(
    input: torch.Tensor,
    sizes: Sequence[int],
    strides: Sequence[int],
    offset: int | None,
) -> bool:
    """Whether a view by strides has all elements of a tensor, in their order."""
    if offset not in (None, input.storage_offset()) or not input.is_contiguous():
        return False
    count = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != count:
            return False
        count *= size
    return count == input.numel()


def _eye(
    n: int, m: int | None = None, *, dtype: torch.dtype | None = None, **how: object
) -> torch.Tensor:
    """Return ones where row and column are the same; torch may count in bytes."""
    rows, columns = (
        torch.arange(count, device=cast("torch.device | None", how.get("device")))
        for count in (n, n if m is None else m)
    )
    return (rows[:, None] == columns).to(dtype or torch.get_default_dtype())


def _batch_norm(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    momentum: float,
    epsilon: float,
) -> tuple[torch.Tensor, ...]:
    """Return a normalization by statistics that are given, and none of its own."""
    wide = input.to(torch.promote_types(input.dtype, torch.float32))

    def of_channels(numbers: torch.Tensor) -> torch.Tensor:
        return numbers.to(wide.dtype).view(-1, *[1] * (input.dim() - 2))

    scale = torch.rsqrt(of_channels(variance) + epsilon)
    result = (wide - of_channels(mean)) * scale
    if weight is not None:
        result = result * of_channels(weight)
    if bias is not None:
        result = result + of_channels(bias)
    return result.to(input.dtype), mean.new_empty(0), mean.new_empty(0)


def _weight_norm_backward(
    grad: torch.Tensor,
    directions: torch.Tensor,
    lengths: torch.Tensor,
    norms: torch.Tensor,
    dim: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of directions and lengths of weights, of which `dim` has."""
    others = [axis for axis in range(grad.dim()) if axis != dim]
    along = (grad * directions).sum(others, keepdim=True) / norms
    across = grad - directions * (along / norms)
    return across * (lengths / norms), along


def _adaptive_avg_pool2d_backward(grad: torch.Tensor, input: torch.Tensor) -> object:
    """Return the gradient of means of parts of one size."""
    pairs = [*zip(input.shape[-2:], grad.shape[-2:], strict=True)]
    if any(extent % results for extent, results in pairs):
        return NotImplemented
    kernel = [extent // results for extent, results in pairs]
    how = kernel, kernel, [0, 0], False, True, None
    return aten.avg_pool2d_backward.default(grad, input, *how)


LISTS = (
    "abs add addcdiv addcmul clamp_max clamp_min copy div exp lerp log maximum minimum "
    "mul neg pow reciprocal rsqrt sign sqrt sub zero"
).split()
"""Functions that torch has for lists of tensors, too, as optimizers call them."""


def _for_each(name: str) -> Callable[..., list[object]]:
    """Return a function of lists that calls `name` for the tensors of each place."""
    function = cast("Callable[..., object]", getattr(aten, name))

    def apply(*given: object, **named: object) -> list[object]:
        operands = given[:3]
        if len(given) > 3:
            named["value"] = given[3]
        return [
            function(
                *(_at(place, each) for each in operands),
                **{key: _at(place, value) for key, value in named.items()},
            )
            for place in range(max(map(_length, operands)))
        ]

    return apply


def _length(of: object) -> int:
    return len(cast("Sequence[object]", of)) if isinstance(of, list | tuple) else 0


def _at(place: int, of: object) -> object:
    """Return what a list has in a place; all else is the same in all places."""
    return cast("Sequence[object]", of)[place] if isinstance(of, list | tuple) else of


def _of_lists() -> Table:
    """Return the functions of lists, but those with a tensor of several factors."""
    table: Table = {}
    for name in LISTS:
        packet = getattr(aten, f"_foreach_{name}")
        several = ("Tensor",) if name in ("addcdiv", "addcmul") else ()
        for overload in packet.overloads():
            if not overload.endswith("out") and overload not in several:
                table[getattr(packet, overload)] = _for_each(name)
    return table


OURS: Table = (
    {
        aten.cat.default: _cat,
        aten.eye.default: _eye,
        aten.eye.m: _eye,
        aten.as_strided.default: _as_strided,
        aten.as_strided_scatter.default: _as_strided_scatter,
        aten.slice_backward.default: _slice_backward,
        aten._adaptive_avg_pool2d_backward.default: _adaptive_avg_pool2d_backward,
        aten._native_batch_norm_legit_no_training.default: _batch_norm,
        aten._weight_norm_interface_backward.default: _weight_norm_backward,
    }
    | _of_lists()
    | random_numbers.DECOMPOSITIONS
)
"""Random ops, ops of lists, and those that are cut where tensors have no elements."""


COMPOSITE = "CompositeImplicitAutograd"
"""What torch calls the ops that it cuts by itself; libraries may add some later."""


@cache
def decompositions() -> Table:
    """Return the table for graphs with gradients."""
    table = cast("Table", dict(_decomp.core_aten_decompositions())) | _further() | OURS
    return {op: rule for op, rule in table.items() if op not in WHOLE}


def with_whole_attention() -> Table:
    """Return the table for exported programs, in which attention is one op."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key  # pyright: ignore[reportPrivateUsage]
    return _exported(frozenset(names(COMPOSITE)))


@lru_cache(maxsize=1)
def _exported(_composite: frozenset[str]) -> Table:
    """
    Return that table while the ops that torch cuts by itself have these names.

    The defaults of torch look through all ops each time, which takes longer than to
    trace a layer.
    """
    table = cast("Table", default_decompositions())
    for op in (*WHOLE, aten.scaled_dot_product_attention.default):
        table.pop(op, None)
    table.update(_further() | OURS)
    return dict(table)
