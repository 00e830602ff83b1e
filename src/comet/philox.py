"""
Random numbers by counting: Philox 4x32-10, as Triton's `tl.rand` has it.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011:
ten rounds mix a counter, here a position, with a key, here a seed. So a number depends
on nothing else, whoever computes it, how often, and in which order.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORD = 0xFFFFFFFF
_FACTORS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10

SCALE = 4.6566127342e-10
"""A little less than 2^-31, as Triton has it: no product with 31 bits rounds to 1."""

W = TypeVar("W", bound="Whole")


class Whole(Protocol):
    """Whole numbers of 64 bits: an int, an array of uint64, a tensor of int64."""

    def __add__(self, other: int, /) -> Self: ...
    def __mul__(self, other: int, /) -> Self: ...
    def __and__(self, other: int, /) -> Self: ...
    def __rshift__(self, other: int, /) -> Self: ...
    def __xor__(self, other: Self, /) -> Self: ...


def random_bits(seed: W, position: W) -> W:
    """
    Return 31 random bits for each pair of a seed and a position, which broadcast.

    The key has the 64 bits of the seed, the counter the lower 32 of the position.
    """
    keys = [seed & _WORD, (seed >> 32) & _WORD]
    words = [position & _WORD, *[position & 0] * 3]
    for _ in range(_ROUNDS):
        first, third = words[0] * _FACTORS[0], words[2] * _FACTORS[1]
        words = [
            ((third >> 32) & _WORD) ^ words[1] ^ keys[0],
            third & _WORD,
            ((first >> 32) & _WORD) ^ words[3] ^ keys[1],
            first & _WORD,
        ]
        keys = [(k + step) & _WORD for k, step in zip(keys, _KEY_STEPS, strict=True)]
    # Triton takes the complement of a negative number.
    return words[0] ^ ((words[0] >> 31) * _WORD)


def random_number(seed: float, position: float) -> float:
    """Return the number of [0, 1) of a whole seed and position, rounded to f32."""
    bits = random_bits(int(seed), int(position))
    return _rounded(_rounded(bits) * _rounded(SCALE))


def _rounded(number: float) -> float:
    """Return the nearest number of f32."""
    (found,) = struct.unpack("f", struct.pack("f", number))
    return found


def philox(
    seed: NDArray[np.float64], position: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return `random_number` for arrays, which broadcast."""
    words = (numbers.astype("int64").astype("uint64") for numbers in (seed, position))
    bits = random_bits(*words)
    return (bits.astype("float32") * SCALE).astype("float64")
