"""
What it costs that programs wait for each other: flags, a barrier of all, clusters.

Every figure is the time of a launch over its turns; see `exchange_kernels`.
"""

# Triton has no type stubs, and a kernel's parameters have no Python types.
# pyright: basic, reportMissingTypeStubs=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from gpu_device import exchange_kernels as kernels
from gpu_device.calibrate import Bench, bench_of

TURNS = 1001
"""Odd, so that each block of a cluster ends with the numbers of the other one."""
MEMBERS = 16
"""Programs of a group, as `ctas=16` has."""
ROWS = 128
"""Numbers that each of them stores: a statistic of the rows of a tile."""
CLUSTER = {"num_warps": 4, "num_ctas": 2}
THREADS = 128
"""Of a program with four warps."""


@dataclass(frozen=True)
class Exchange:
    """A way to exchange: programs, and what each stores and loads in a turn."""

    programs: int
    group: int
    """Programs that wait for each other."""
    parts: int = 1
    """Members whose numbers a program loads."""
    size: int = 1
    """Numbers that a program stores."""
    system: bool = False
    """Whether flags have the scope of the system, as between ranks."""


def ways(multiprocessors: int) -> dict[str, Exchange]:
    """
    Return what is measured, by the name of its figure, in microseconds a turn.

    exchange_us: statistics of a tile in groups, as emitted kernels exchange them. The
    others are without values: flag_us between two programs, system_flag_us the same
    with the scope of flags between ranks, grid_barrier_us of all multiprocessors.
    """
    groups = max(1, multiprocessors // MEMBERS)
    return {
        "exchange_us": Exchange(groups * MEMBERS, MEMBERS, MEMBERS, ROWS),
        "flag_us": Exchange(2, 2),
        "system_flag_us": Exchange(2, 2, system=True),
        "grid_barrier_us": Exchange(multiprocessors, multiprocessors),
    }


def launcher(way: Exchange, device: str, turns: int) -> Callable[[], torch.Tensor]:
    """Return what launches an exchange once, and returns what programs loaded last."""
    options = {} if device == "cpu" else {"launch_cooperative_grid": True}
    values = torch.zeros(kernels.SLOTS * way.programs * way.size, device=device)
    flags = torch.zeros(way.programs, dtype=torch.int32, device=device)
    counters = torch.zeros(2, dtype=torch.int32, device=device)
    bases = torch.tensor([flags.data_ptr()], dtype=torch.int64, device=device)
    out = torch.zeros(way.programs * way.size, device=device)

    def launch() -> torch.Tensor:
        kernels.exchange[(way.programs,)](
            values,
            flags,
            counters,
            bases,
            out,
            turns,
            GROUP=way.group,
            PARTS=way.parts,
            SIZE=way.size,
            SYSTEM=way.system,
            **options,
        )
        return out

    return launch


def cluster_us(bench: Bench) -> float:
    """
    Return the microseconds in which two blocks of a cluster exchange.

    Each thread stores a number in the shared memory of the other block, then a barrier
    of the cluster; on every pair of multiprocessors. GPUs of NVIDIA, from sm_90 on.
    """
    clusters = torch.cuda.get_device_properties().multi_processor_count // 2
    out = torch.zeros(clusters * 2 * THREADS, dtype=torch.int32, device=bench.device)

    def work() -> None:
        kernels.cluster_exchange[(clusters,)](out, TURNS, **CLUSTER)

    work()
    places = torch.arange(2 * THREADS, dtype=torch.int32, device=bench.device)
    expect(out, places.roll(THREADS).repeat(clusters))
    return 1e6 * bench.seconds(work) / TURNS


def expect(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Raise `ValueError` where an exchange lost values: its time means nothing."""
    if not torch.equal(found, expected):
        raise ValueError("programs did not load what others stored in the same turn")


def turn_us(bench: Bench, way: Exchange, turns: int) -> float:
    """Return the microseconds of a turn of groups of programs."""
    work = launcher(way, bench.device, turns)
    found = work()
    expect(found, torch.full_like(found, turns * (way.parts - 1) / 2))
    return 1e6 * bench.seconds(work) / turns


def measure(dry_run: bool) -> dict[str, float]:
    """
    Return the figures by name, in microseconds; see `ways` and `cluster_us`.

    `dry_run`: groups of one program in Triton's interpreter, which runs programs one
    after another, and no cluster. Raises `ValueError` where values are lost.
    """
    bench = bench_of(dry_run)
    if dry_run:
        alone = {n: Exchange(2, 1, system=way.system) for n, way in ways(2).items()}
        return {name: turn_us(bench, way, 2) for name, way in alone.items()}
    count = torch.cuda.get_device_properties().multi_processor_count
    found = {n: turn_us(bench, way, TURNS) for n, way in ways(count).items()}
    return found | {"cluster_exchange_us": cluster_us(bench)}
