"""
What was measured before: one H200, torch 2.11, Triton 3.6.0, bf16.

The baselines are those that comet is to beat; the ratios of the ladder are those of a
prototype that was written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping

SOURCE = "measured on one H200, torch 2.11, Triton 3.6.0"

_ROWS = ("4096x4096x4096", "16384x1024x4096", "32768x512x1024", "65536x256x256")
_SIZES = (*_ROWS, "8192x8192x1024")


def _rows(compiled: str, eager: str, product: str) -> dict[str, Mapping[str, float]]:
    columns = (map(float, text.split()) for text in (compiled, eager, product))
    names = ("compile", "eager", "product")
    return {
        size: dict(zip(names, times, strict=True))
        for size, times in zip(_SIZES, zip(*columns, strict=True), strict=True)
    }


def _attention(
    heads: int, length: int, size: int, share: float, **tflops: float
) -> Mapping[str, float]:
    """
    Return microseconds for rates that were noted.

    Two products of `heads` times length x length x size, of which causal attention
    needs half, each multiply-add counted as two.
    """
    work = 4 * heads * length**2 * size * share
    return {name: work / (rate * 1e12) * 1e6 for name, rate in tflops.items()}


_PRODUCTS = "178 197 54 26 214"

MICROSECONDS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "gemm_softmax": _rows("231 217 87 54 364", "246 228 86 56 452", _PRODUCTS),
    "gemm_layernorm": _rows("219 216 80 56 291", "224 247 118 111 328", _PRODUCTS),
    "gemm": {"4096x4096x4096": {"eager": 178.0}},
    "attention": {
        "B4 H32 M4096 N4096 D128 E128": _attention(
            4 * 32, 4096, 128, 1.0, cudnn=585, flash=337
        ),
    },
    "attention_causal": {
        "B4 H32 M4096 N4096 D128 E128": _attention(
            4 * 32, 4096, 128, 0.5, cudnn=512, flash=312
        ),
        "B1 H32 M16384 N16384 D128 E128": _attention(
            32, 16384, 128, 0.5, cudnn=567, flash=328
        ),
    },
    "flash_decode": {
        "B1 H12 G8 S131072 D128 E128": {"cudnn": 204.0},
        "B16 H12 G8 S32768 D128 E128": {"cudnn": 748.0},
        "B4 H12 G8 S65536 D128 E128": {"cudnn": 385.0},
    },
}
"""By op, size and baseline."""

LADDER: Mapping[str, float] = {
    f"{ranks} ranks {rows}x3584x8192": ratio
    for ranks, ratios in {
        4: {16: 1.04, 64: 1.06, 256: 1.20, 1024: 1.18, 4096: 1.22},
        8: {16: 1.06, 64: 1.07, 256: 1.38, 1024: 1.30, 4096: 1.37},
    }.items()
    for rows, ratio in ratios.items()
}
"""How much faster than `bsp` pulling was in AG+GEMM, on one GPU, as a graph."""
