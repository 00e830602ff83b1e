"""Times a program on a GPU."""

import statistics

import torch

from comet.runtime.check import random_inputs
from comet.runtime.one_rank import one_rank
from comet.runtime.program import Program, RankProgram

WARM_UP = 20
ROUNDS = 100


def bench_microseconds(program: Program | RankProgram, seed: int) -> float:
    """
    Return the median time of one call of the launch plan, in microseconds.

    Each call is timed by events on the stream, after the L2 cache has been overwritten.
    Raises `ValueError` if the program is for several ranks.
    """
    alone = one_rank(program)
    if alone is None:
        raise ValueError("a program of several ranks is timed by benchmarks/gpu.py")
    inputs = random_inputs(program, seed, "cuda")
    cache = torch.empty(256 * 2**20, dtype=torch.uint8, device="cuda")
    times: list[float] = []
    for index in range(WARM_UP + ROUNDS):
        cache.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        alone.launch(*inputs)
        end.record()
        end.synchronize()
        if index >= WARM_UP:
            times.append(1e3 * start.elapsed_time(end))
    return statistics.median(times)
