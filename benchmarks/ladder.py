"""
The ladder: each way to connect ranks, as a ratio to BSP kernels and barriers.

    python benchmarks/ladder.py --predict [--machine h200x8] [--in-place] [--one-gpu]
        [--ranks 4 8] [--rows 16 64] [--keys 8192] [--batch 1]

Compiles AG+GEMM and flash decode by every pattern, and prints how much faster each is
than `bsp`, launched one by one and as a captured graph, on a whole node, or with
`--one-gpu` on one GPU that all ranks share. Nothing runs: `benchmarks/gpu.py` measures.
`in_place` is `pull` with inputs that the caller writes to symmetric memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gpu_run.case import Predicted
from ladder_programs import (
    Case,
    ag_gemm,
    flash_decode,
    launch_plan,
    predicted_times,
)
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.passes.dataflow.bsp_to_dataflow.choose_pattern import (
    PatternName,
    PatternOptions,
    with_pattern,
)
from comet.passes.dataflow.bsp_to_dataflow.connect import ConnectPass

Rung: TypeAlias = PatternName | Literal["in_place"]

LADDER: tuple[Rung, ...] = ("bsp", "wait", "pull", "in_place", "push", "fused")
"""The patterns; ratios are to the first."""

ROWS = (16, 64, 256, 1024, 4096)
KEYS = (8192, 65536, 524288)
"""Keys of each rank."""


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    machine: str
    in_place: bool
    one_gpu: bool
    ranks: Sequence[int]
    rows: Sequence[int]
    keys: Sequence[int]
    batch: Sequence[int]


def cases(options: Options) -> Iterator[Case]:
    """Yield the functions, each for each number of ranks."""
    for ranks in options.ranks:
        for rows in options.rows:
            yield ag_gemm(rows, ranks)
        for batch in options.batch:
            for keys in options.keys:
                yield flash_decode(batch, keys, ranks)


def patterns_of(whole: ModuleOp) -> dict[Rung, ModuleOp]:
    """Return the launch plan by every pattern that applies."""
    found: dict[Rung, ModuleOp] = {}
    for rung in LADDER:
        asked = ConnectPass(inputs="symmetric" if rung == "in_place" else "copied")
        pattern = "pull" if rung == "in_place" else rung
        try:
            found[rung] = with_pattern(whole, PatternOptions(pattern), asked)
        except PassFailedException as error:
            if "does not apply" not in str(error):
                raise
    return found


def print_predictions(options: Options) -> None:
    """Print the ratios that the model expects of a node of GPUs, or of one GPU."""
    where = f"one GPU of {options.machine}" if options.one_gpu else options.machine
    print(f"predicted for {where}, ratio to bsp, one by one / as a graph")
    print(_line("case", "ranks", "bsp", *LADDER[1:]))
    for case in cases(options):
        whole = launch_plan(case, options.machine, one_gpu=options.one_gpu)
        times: dict[Rung, Predicted] = {
            rung: predicted_times(plan, symmetric_inputs=options.in_place)
            for rung, plan in patterns_of(whole).items()
        }
        base = times["bsp"]
        bsp = f"{base.eager * 1e6:.1f} us / {base.graph * 1e6:.1f} us"
        cells = (_ratios(times, pattern) for pattern in LADDER[1:])
        print(_line(case.name, str(case.ranks), bsp, *cells), flush=True)


def _ratios(times: Mapping[Rung, Predicted], pattern: Rung) -> str:
    if pattern not in times:
        return "-"
    base, time = times["bsp"], times[pattern]
    return f"{base.eager / time.eager:.2f} / {base.graph / time.graph:.2f}"


def _line(first: str, *rest: str) -> str:
    number, *cells = rest
    return f"{first:<30}{number:>6}" + "".join(f"{cell:>24}" for cell in cells)


def options_of(argv: Sequence[str] | None) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--predict", action="store_true", help="what it does with and without this"
    )
    parser.add_argument("--machine", default="h200x8", help="of samples/hardware")
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="inputs that peers pull are in symmetric memory already, behind a barrier "
        "of the caller: in_place without flags",
    )
    parser.add_argument(
        "--one-gpu", action="store_true", help="all ranks share one GPU"
    )
    for name, default, text in (
        ("--ranks", (4, 8), "numbers of ranks"),
        ("--rows", ROWS, "rows M of AG+GEMM"),
        ("--keys", KEYS, "keys of flash decode on each rank"),
        ("--batch", (1, 16), "sequences of flash decode"),
    ):
        parser.add_argument(name, type=int, nargs="*", default=default, help=text)
    arguments = vars(parser.parse_args(argv))
    del arguments["predict"]
    return Options(**arguments)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the predictions; return the exit code."""
    print_predictions(options_of(argv))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
