"""
Random numbers of torch as functions of seeds and positions.

`torch.ops.comet.random` makes the numbers of a tensor by a seed. Torch's random ops are
cut into this one and others, each with a seed of its own, which torch's generator
draws. A call of a graph draws all seeds at once. So a graph that has a seed has the
numbers, too, as the backward pass of attention does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import pi, prod
from typing import Any

import torch
from torch import Tensor, fx
from torch._guards import detect_fake_mode
from xdsl.dialects.builtin import i32, i64

from comet.dialects.compound.map import MapKind
from comet.philox import SCALE, random_bits
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.emitter import View
from comet.pytorch.rules import Result, op_name, rule
from comet.pytorch.tracer import Tracer

aten = torch.ops.aten

SEEDS = 2**52
"""How many seeds there are: integers of a program have up to 53 bits."""

MOST_POSITIONS = 2**32
"""The most elements of one seed: positions are counted in 32 bits."""

DRAWS_SEEDS = "comet.draws_seeds"
"""The key in the metadata of nodes that draw seeds, which run in torch."""


@torch.library.custom_op("comet::random", mutates_args=())
def random(seed: Tensor, shape: Sequence[int], batch: int) -> Tensor:
    """
    Return numbers of [0, 1), in f32, for the positions in a tensor of a shape.

    Each position of the first `batch` axes has a seed of its own, from `seed` on.
    """
    outer, inner = shape[:batch], shape[batch:]
    positions = torch.arange(prod(inner), device=seed.device).view(*inner)
    seeds = seed + torch.arange(prod(outer), device=seed.device)
    bits = random_bits(seeds.view(*outer, *[1] * len(inner)), positions)
    return bits.to(torch.float32) * SCALE


def _shape_of_random(seed: Tensor, shape: Sequence[int], batch: int) -> Tensor:
    return seed.new_empty(shape, dtype=torch.float32)


torch.library.register_fake("comet::random", _shape_of_random)  # pyright: ignore[reportUnknownMemberType]


@rule("comet.random")
def random_numbers(
    t: Tracer, out: Result, seed: View, shape: Sequence[int], batch: int
) -> View:
    """Return the numbers of a tensor; see `random`."""
    outer, inner = shape[:batch], shape[batch:]
    if prod(inner) > MOST_POSITIONS:
        raise UnsupportedError(f"more than {MOST_POSITIONS} random numbers of one seed")
    if prod(outer) > 1:
        numbers = t.positions_in([*outer, *[1] * len(inner)], i64)
        seed = t.map(MapKind.ADD, seed, numbers)
    return t.map(MapKind.RANDOM, seed, t.positions_in(inner, i32))


def drawn_seed(device: torch.device | None) -> Tensor:
    """Return a seed of the generator that torch has for a device."""
    return torch.randint(0, SEEDS, (), dtype=torch.int64, device=device)


def uniform(shape: Sequence[int], device: torch.device | None) -> Tensor:
    """Return numbers of [0, 1), in f32, by a seed that is drawn."""
    batch = 0
    while prod(shape[batch:]) > MOST_POSITIONS:
        batch += 1
    return random(drawn_seed(device), list(shape), batch)


# Torch's random ops. What they return for f64 has more digits than we make.

_DIGITS = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}
"""The digits of floats, binary ones."""

How = Any
"""The layout, device and memory that ops of torch are asked for."""


def _type(asked: torch.dtype | None) -> torch.dtype:
    return torch.get_default_dtype() if asked is None else asked


def _rand(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    **_: How,
) -> object:
    """Return uniform numbers; those that are rounded to fewer digits stay below 1."""
    dtype = _type(dtype)
    if dtype not in _DIGITS:
        return NotImplemented
    numbers = uniform(size, device)
    if dtype != torch.float32:
        numbers = numbers * (1 - 0.5 ** (_DIGITS[dtype] + 1))
    return numbers.to(dtype)


def _rand_like(
    input: Tensor,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    **_: How,
) -> object:
    return _rand(input.shape, dtype=dtype or input.dtype, device=device or input.device)


def _uniform(input: Tensor, low: float = 0.0, high: float = 1.0, **how: How) -> object:
    if input.dtype not in _DIGITS or how.get("generator") is not None:
        return NotImplemented
    numbers = uniform(input.shape, input.device)
    return (numbers * (high - low) + low).to(input.dtype)


def _bernoulli(input: Tensor, p: float = 0.5, **how: How) -> object:
    if how.get("generator") is not None:
        return NotImplemented
    return (uniform(input.shape, input.device) < p).to(input.dtype)


def _randn(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    **_: How,
) -> object:
    """Return normal numbers, of two uniform ones each (Box and Muller, 1958)."""
    dtype = _type(dtype)
    if dtype not in _DIGITS:
        return NotImplemented
    lengths = (-2 * (1 - uniform(size, device)).log()).sqrt()
    return (lengths * (2 * pi * uniform(size, device)).cos()).to(dtype)


def _randn_like(
    input: Tensor,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    **_: How,
) -> object:
    device = device or input.device
    return _randn(input.shape, dtype=dtype or input.dtype, device=device)


def _exponential(input: Tensor, rate: float = 1.0, **how: How) -> object:
    if input.dtype not in _DIGITS or how.get("generator") is not None:
        return NotImplemented
    numbers = uniform(input.shape, input.device)
    return ((1 - numbers).log() / -rate).to(input.dtype)


def _native_dropout(input: Tensor, p: float, train: bool | None) -> object:
    """Return a tensor of which some elements are 0, and where they are not."""
    if train is False or not input.is_floating_point():
        return NotImplemented
    kept = uniform(input.shape, input.device) >= p
    return torch.where(kept, input * scale_of_kept(p), 0.0), kept


def scale_of_kept(p: float) -> float:
    """Return the factor of what dropout keeps, 0 if it keeps nothing."""
    return 0.0 if p == 1 else 1 / (1 - p)


def _native_dropout_backward(grad: Tensor, mask: Tensor, scale: float) -> Tensor:
    return torch.where(mask, grad * scale, 0.0)


DECOMPOSITIONS: dict[Any, Callable[..., object]] = {
    aten.rand.default: _rand,
    aten.rand_like.default: _rand_like,
    aten.randn.default: _randn,
    aten.randn_like.default: _randn_like,
    aten.uniform.default: _uniform,
    aten.bernoulli.p: _bernoulli,
    aten.exponential.default: _exponential,
    aten.native_dropout.default: _native_dropout,
    aten.native_dropout_backward.default: _native_dropout_backward,
}
"""Torch's random ops in parts."""


# Seeds.


def _seeds_of(graph: fx.Graph) -> list[fx.Node]:
    """Return the nodes that draw a seed each."""
    return [
        node
        for node in graph.nodes
        if op_name(node) == "aten.randint" and node.args == (0, SEEDS, [])
    ]


def take_seeds(graph: fx.Graph) -> None:
    """Let a graph take a seed for each random op, behind its other arguments."""
    for number, node in enumerate(_seeds_of(graph), 1):
        *_, last = graph.find_nodes(op="placeholder")
        with graph.inserting_after(last):
            seed = graph.placeholder(f"seed_{number}")
        seed.meta = node.meta
        node.replace_all_uses_with(seed)
        graph.erase_node(node)


def with_seeds_drawn_at_once(graph: fx.GraphModule) -> fx.GraphModule:
    """Return a graph that draws the seeds of each device by one op of torch."""
    nodes: dict[torch.device, list[fx.Node]] = {}
    for node in _seeds_of(graph.graph):
        nodes.setdefault(node.meta["val"].device, []).append(node)
    for node in graph.graph.nodes:
        _say_if_drawn_again(node)
    for device, drawn in nodes.items():
        with detect_fake_mode([node.meta["val"] for node in drawn]) or nullcontext():
            _draw_at_once(graph.graph, drawn, device)
    graph.recompile()
    return graph


def _say_if_drawn_again(node: fx.Node) -> None:
    """Note what torch does not say of a seed that a checkpoint draws again."""
    if op_name(node) == "run_with_rng_state" and node.args[2:] == (0, SEEDS, []):
        of_user = next(iter(node.users)).meta["val"]
        seed = of_user.new_empty((), dtype=torch.int64)
        node.meta |= {"val": seed, DRAWS_SEEDS: True}


def _draw_at_once(
    graph: fx.Graph, drawn: Sequence[fx.Node], device: torch.device
) -> None:
    """Draw seeds before the first of some nodes, and let each node be one of them."""
    with graph.inserting_before(drawn[0]):
        seeds = graph.call_function(_seeds, (len(drawn), device))
        value = torch.empty(len(drawn), dtype=torch.int64, device=device)
        seeds.meta = {"val": value, DRAWS_SEEDS: True}
    for number, node in enumerate(drawn):
        node.target, node.args, node.kwargs = _seed_at, (seeds, number), {}
        node.meta[DRAWS_SEEDS] = True


def _seeds(count: int, device: torch.device) -> Tensor:
    """Return several seeds of the generator that torch has for a device."""
    return torch.randint(0, SEEDS, (count,), dtype=torch.int64, device=device)


def _seed_at(seeds: Tensor, number: int) -> Tensor:
    """Return one of several seeds, a view."""
    return seeds[number]
