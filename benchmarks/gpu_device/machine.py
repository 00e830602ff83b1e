"""What machine it is: all that a figure depends on; what is missing is not fatal."""

# Triton has no type stubs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
import triton

Facts: TypeAlias = dict[str, str | int | float | None]
"""JSON-able facts by name; None where nobody knows."""

QUERIES = {
    "driver": "driver_version",
    "clock_mhz": "clocks.sm",
    "clock_max_mhz": "clocks.max.sm",
    "memory_clock_mhz": "clocks.mem",
    "power_limit_w": "power.limit",
    "temperature_c": "temperature.gpu",
}
"""What nvidia-smi is asked for: names of facts, and of its fields."""

PATIENCE = 20
"""Seconds that nvidia-smi may take."""


def describe() -> Facts:
    """
    Return what is known of the GPU, or of the CPU where there is none.

    Keys: device (cuda, hip or cpu), name, multiprocessors (cores of a CPU),
    memory_bytes, l2_bytes, cuda (or ROCm's version), python, numpy, torch, triton,
    system, those of `QUERIES`, and nvidia_smi: "found", or why it was not.
    """
    versions: Facts = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
        "triton": str(triton.__version__),
        "system": platform.platform(),
    }
    device = _gpu() if torch.cuda.is_available() else _cpu()
    return device | versions


def _gpu() -> Facts:
    properties = torch.cuda.get_device_properties()
    facts: Facts = {
        "device": "hip" if torch.version.hip else "cuda",
        "name": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "l2_bytes": properties.L2_cache_size,
        "cuda": torch.version.hip or torch.version.cuda,
    }
    return facts | asked_of_nvidia_smi(f"GPU-{properties.uuid}")


def _cpu() -> Facts:
    pages, size = (os.sysconf(name) for name in ("SC_PHYS_PAGES", "SC_PAGE_SIZE"))
    return {
        "device": "cpu",
        "name": _processor(),
        "multiprocessors": os.cpu_count(),
        "memory_bytes": pages * size,
        "l2_bytes": None,
        "cuda": None,
        **dict.fromkeys(QUERIES),
        "nvidia_smi": "not asked, as torch finds no GPU",
    }


def _processor() -> str:
    """Return the name of the CPU's model, or of its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = list[str]()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()


def asked_of_nvidia_smi(gpu: str) -> Facts:
    """Return the driver and the clocks in MHz of a GPU, or why they are not known."""
    unknown: Facts = dict.fromkeys(QUERIES)
    command = (
        "nvidia-smi",
        f"--id={gpu}",
        f"--query-gpu={','.join(QUERIES.values())}",
        "--format=csv,noheader,nounits",
    )
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return unknown | {"nvidia_smi": f"not usable: {error}"}
    values = [value.strip() for value in done.stdout.split(",")]
    if done.returncode or len(values) != len(QUERIES):
        said = (done.stdout + done.stderr).strip().splitlines()
        return unknown | {"nvidia_smi": f"failed: {said[0] if said else 'no output'}"}
    facts: Facts = {
        name: _number(value) for name, value in zip(QUERIES, values, strict=True)
    }
    return facts | {"nvidia_smi": "found"}


def _number(value: str) -> str | float:
    """Return a number where it is one; versions and `[N/A]` are none."""
    try:
        return float(value)
    except ValueError:
        return value
