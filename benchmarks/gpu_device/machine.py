"""What machine it is: everything that a figure depends on, and nothing fatal."""

from __future__ import annotations

from typing import TypeAlias

Facts: TypeAlias = "dict[str, str | int | float | None]"
"""JSON-able facts by name; what is not there is None, or says so."""


def describe() -> Facts:
    """
    Return the name of the GPU, or else of the CPU, versions, clocks and sizes.

    Keys: device (cuda, hip or cpu), name, python, numpy, torch, triton, system, cuda,
    driver, multiprocessors, memory_bytes, l2_bytes, clock_mhz, clock_max_mhz,
    memory_clock_mhz, power_limit_w, nvidia_smi ("found", or why it was not).
    """
    raise NotImplementedError
