"""Random inputs, drawn on the device, so that large ones do not cross the bus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch

from comet.runtime.program import Tensor

Lengths: TypeAlias = Literal["full", "ragged"]
"""Counts: all that there may be, or drawn from 1 to that."""


def drawn(
    tensors: Sequence[Tensor], seed: int, device: str, lengths: Lengths = "ragged"
) -> tuple[torch.Tensor, ...]:
    """
    Draw inputs of these shapes and element types, as `comet.runtime.check` does.

    Floats are normal with variance terms**-1/2, integers uniform from `at_least` to
    `at_most`; what may be 0 is no length, and is drawn if lengths are full, too.
    A seed means other numbers on another kind of device. What is passed again is the
    same tensor.
    """
    generator = torch.Generator(device).manual_seed(seed)
    found: list[torch.Tensor] = []
    for tensor in tensors:
        same = None if tensor.same_as is None else found[tensor.same_as]
        found.append(_drawn(tensor, generator, lengths) if same is None else same)
    return tuple(found)


def _drawn(
    tensor: Tensor, generator: torch.Generator, lengths: Lengths
) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, tensor.dtype)
    device = generator.device
    if dtype == torch.int32:
        full = lengths == "full" and tensor.at_least > 0
        least = tensor.at_most if full else tensor.at_least
        bounds = (least, tensor.at_most + 1)
        return torch.randint(
            *bounds, tensor.shape, generator=generator, dtype=dtype, device=device
        )
    values = torch.randn(
        tensor.shape, generator=generator, dtype=torch.float32, device=device
    )
    return values.mul_(tensor.terms**-0.25).to(dtype)
