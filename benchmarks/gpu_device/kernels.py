"""Small Triton kernels, each of which keeps one resource of a GPU busy."""

# Triton has no type stubs, and a kernel's parameters have no Python types.
# pyright: basic, reportMissingTypeStubs=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false, reportCallIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl

UNROLLED = 16
"""Operations on each element in one turn of a loop, whose own cost so vanishes."""

CHAIN_PER_SECOND = 0.45e9
"""Dependent multiply-adds a second: each takes about 4 cycles of 1.8 GHz."""


@triton.jit
def multiply_add(
    out, factor, summand, turns, UNROLLED: tl.constexpr, SIZE: tl.constexpr
):
    """Let every element go through `turns` times `UNROLLED` multiply-adds in f32."""
    place = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    value = place.to(tl.float32)
    for _ in range(turns):
        for _ in tl.static_range(UNROLLED):
            value = tl.fma(value, factor, summand)
    tl.store(out + place, value)


@triton.jit
def exponential(out, turns, UNROLLED: tl.constexpr, SIZE: tl.constexpr):
    """Let every element go through `turns` times `UNROLLED` times x = exp(-x)."""
    place = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    value = place.to(tl.float32)
    for _ in range(turns):
        for _ in tl.static_range(UNROLLED):
            value = tl.exp(-value)
    tl.store(out + place, value)


@triton.jit
def copy(source, target, turns, SIZE: tl.constexpr):
    """
    Copy `turns` blocks with each program, another block in each turn.

    Loads pass by the L1 (`.cg`). Where there are more turns than one, programs store
    the same values to the same places.
    """
    for turn in range(turns):
        block = (tl.program_id(0) + turn) % tl.num_programs(0)
        place = block.to(tl.int64) * SIZE + tl.arange(0, SIZE)
        tl.store(target + place, tl.load(source + place, cache_modifier=".cg"))


@triton.jit
def read(source, target, turns, APART: tl.constexpr, SIZE: tl.constexpr):
    """
    Add up `turns` blocks with each program, and store their sum alone.

    In each turn a program reads the block `APART` after that of the program before it:
    with 0 all programs read the same one.
    """
    value = tl.zeros((SIZE,), dtype=tl.float32)
    for turn in range(turns):
        block = (APART * tl.program_id(0) + turn) % tl.num_programs(0)
        place = block.to(tl.int64) * SIZE + tl.arange(0, SIZE)
        value += tl.load(source + place, cache_modifier=".cg")
    tl.store(target + tl.program_id(0), tl.sum(value, axis=0))


@triton.jit
def nothing():
    """Do nothing."""


def occupy(seconds: float) -> None:
    """Enqueue a kernel of one program that runs about so long and leaves caches."""
    turns = round(seconds * CHAIN_PER_SECOND / UNROLLED)
    out = torch.empty(32, dtype=torch.float32, device="cuda")
    multiply_add[(1,)](out, 0.5, 1.0, turns, UNROLLED, 32, num_warps=1)
