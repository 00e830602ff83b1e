"""Programs of one GPU that exchange in groups: their functions, and their pipeline."""

from gpu_ranks import TEXTS
from triton_modules import emitted, hardware

H200 = hardware("h200x1.yaml")
SIZES = {"M": 37, "N": 43, "K": 19}
"""Ragged for groups of 2, 3 and 4, and for blocks of 16."""


def grouped(name: str, ctas: int, options: str = "") -> str:
    """Return the emitted module of one of `TEXTS` for groups of `ctas` programs."""
    text = TEXTS[name].format(**SIZES)
    return emitted(text, f"{H200},triton-distributed{{ctas={ctas} {options}}}")
