"""
What decoding of sequences of several lengths loses to idle multiprocessors.

    python benchmarks/ragged.py [--draws 10] [--hardware h200x1]

Draws lengths from 1 to the longest, and runs the programs of a split flash decode in
order, as many at a time as a GPU has room for: a program begins when another one of its
multiprocessor ends. Multiprocessors share the bandwidth of device memory: those that
still run have more when others idle, at most their part of that of L2. The programs of
one share what it has. Equal runs of a flat list are those of `share-tiles`: each head
has a list of the tiles of all sequences, and a partial result of every sequence in each
run. Parts that store nothing beyond the end of a sequence (`seen`) do not exist.
Prints a row for each size and form: the time over that of the
keys' bytes, alone and with the partial results, which are stored and loaded in f32.
Nothing is compiled.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from ladder_programs import SAMPLES
from markdown import markdown

from comet.codegen.comet.arch import read_arch
from comet.cost.from_ir.gpus import device_of

OCCUPANCY = 2
"""Programs of a multiprocessor at a time: as compiled, by registers."""
TILE = 64
"""Keys that a program loads at a time."""
SIZE = 128
"""Elements of a key and of a value, in 16 bits."""
QUERIES = 8
"""Query heads of a key head, each of which has a partial result."""
PARTS = (1, 2, 4, 8, 16, 32)
MOST = 16
"""The most parts of a sequence of a flat list, `split="S=16"`."""
DONE = 1e-6
"""Keys that are left of a program that has ended, but for rounding."""
COLUMNS = ("sequences x heads", "longest", "form", "keys alone", "all bytes")
KEY_BYTES = 2 * 2 * SIZE
PARTIAL_BYTES = 2 * 4 * QUERIES * (SIZE + 2)
"""Of one part, stored and loaded: sums, and for each query a maximum and a sum."""


@dataclass(frozen=True)
class Case:
    """Sequences, heads of keys, and the longest sequence."""

    sequences: int
    heads: int
    longest: int


CASES = (Case(64, 1, 8192), Case(64, 8, 8192), Case(16, 8, 32768))


@dataclass(frozen=True)
class Multiprocessors:
    """The multiprocessors of a GPU, whose loads share device memory."""

    count: int
    most: float
    """The most bandwidth of one, over an equal part of that of device memory."""


def multiprocessors(hardware: str) -> Multiprocessors:
    """Return those of a file in samples/hardware: L2 has an equal part for each."""
    path = SAMPLES / "hardware" / f"{hardware}.yaml"
    gpu = device_of(read_arch(path.read_text(), path.name))
    return Multiprocessors(
        gpu.multiprocessors, gpu.memory.l2_bandwidth / gpu.memory.hbm_bandwidth
    )


def makespan(work: Sequence[float], gpu: Multiprocessors) -> float:
    """
    Return when the last of some programs ends, if they start in order.

    In the time that device memory takes for a unit of work.
    """
    waiting = deque(float(each) for each in work if each > 0)
    running = [list[float]() for _ in range(gpu.count)]
    for slot in range(min(OCCUPANCY * gpu.count, len(waiting))):
        running[slot % gpu.count].append(waiting.popleft())
    now = 0.0
    while busy := [index for index, left in enumerate(running) if left]:
        rate = min(gpu.most / gpu.count, 1 / len(busy))
        spent = min(_next(running[index]) for index in busy) / rate
        now += spent
        for index in busy:
            done = spent * rate / len(running[index])
            left = [each - done for each in running[index] if each - done > DONE]
            while waiting and len(left) < OCCUPANCY:
                left.append(waiting.popleft())
            running[index] = left
    return now


def _next(running: Sequence[float]) -> float:
    """Return the work until the next of the programs of a multiprocessor ends."""
    return min(running) * len(running)


def split_form(
    case: Case, lengths: Sequence[int], parts: int, gpu: Multiprocessors
) -> tuple[float, int]:
    """Return the keys' time, in keys, and the partial results, of a split program."""
    size = case.longest // parts
    work = [
        -(-min(max(length - part * size, 0), size) // TILE) * TILE
        for part in range(parts)
        for length in lengths
        for _ in range(case.heads)
    ]
    return makespan(work, gpu), len(work) if parts > 1 else 0


def seen_form(
    case: Case, lengths: Sequence[int], parts: int, gpu: Multiprocessors
) -> tuple[float, int]:
    """Return the same if parts beyond the end of a sequence are not stored."""
    size = case.longest // parts
    time, _ = split_form(case, lengths, parts, gpu)
    return time, case.heads * sum(-(-length // size) for length in lengths)


def flat_form(
    case: Case, lengths: Sequence[int], gpu: Multiprocessors
) -> tuple[float, int]:
    """Return the same for equal runs of a flat list of tiles of each head."""
    tiles = np.array([-(-n // TILE) for n in lengths])
    count = gpu.count * OCCUPANCY // case.heads
    run = max(-(-int(tiles.sum()) // count), -(-(int(tiles.max()) - 1) // (MOST - 1)))
    ends = np.cumsum(tiles)
    pieces = (ends - 1) // run - (ends - tiles) // run + 1
    runs = np.minimum(run, np.maximum(int(ends[-1]) - run * np.arange(count), 0))
    work = np.repeat(runs * TILE, case.heads).tolist()
    return makespan(work, gpu), case.heads * int(pieces.sum())


def rows(case: Case, draws: int, gpu: Multiprocessors) -> list[list[str]]:
    """Return the rows of the table for a case."""
    generator = np.random.default_rng(0)
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(draws):
        lengths = generator.integers(1, case.longest + 1, case.sequences).tolist()
        forms = {f"S={n}": split_form(case, lengths, n, gpu) for n in PARTS}
        forms |= {
            f"S={n} seen": seen_form(case, lengths, n, gpu) for n in PARTS if n > 1
        }
        forms["flat list"] = flat_form(case, lengths, gpu)
        keys = sum(lengths) * case.heads
        for form, (time, partials) in forms.items():
            merged = partials * PARTIAL_BYTES / (keys * KEY_BYTES)
            found.setdefault(form, []).append((time / keys, time / keys + merged))
    size = f"{case.sequences} x {case.heads}", str(case.longest)
    return [
        [*size, form, *(f"{fmean(column):.2f}" for column in zip(*times, strict=True))]
        for form, times in found.items()
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--hardware", default="h200x1", help="of samples/hardware")
    options = parser.parse_args()
    gpu = multiprocessors(options.hardware)
    found = [row for case in CASES for row in rows(case, options.draws, gpu)]
    print(markdown(COLUMNS, found))


if __name__ == "__main__":
    main()
