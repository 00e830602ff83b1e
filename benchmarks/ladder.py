"""
The ladder: each way to connect ranks, as a ratio to BSP kernels and barriers.

    python benchmarks/ladder.py [--ranks 4 8] [--rows 16 64] [--keys 8192] [--batch 1]
    python benchmarks/ladder.py --predict [--machine h200x8] [--in-place] [--one-gpu]
    python benchmarks/ladder.py --dry-run

Compiles AG+GEMM and flash decode by every pattern, runs all ranks on one GPU, and
prints how much faster each is than `bsp` in the same run, launched one by one and as a
captured graph, with the largest error, and what the cost model says of one shared GPU.
`in_place` is `pull` with inputs that the caller writes to symmetric memory.
With `--predict` nothing runs: it prints what the model says of a whole node, or with
`--one-gpu` of one GPU that all ranks share. With `--dry-run` all steps of the
measurement are taken at tiny sizes in Triton's interpreter; its times mean nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from ladder_programs import (
    PAPER,
    TINY,
    Case,
    Sizes,
    ag_gemm,
    flash_decode,
    launch_plan,
    predicted,
)
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.passes.choose_pattern import Asked, Candidate, PatternName, with_pattern

if TYPE_CHECKING:
    from gpu_device.timing import Clock, Rounds
    from ladder_runs import Measured

    from comet.runtime.virtual import Device

Rung: TypeAlias = PatternName | Literal["in_place"]

LADDER: tuple[Rung, ...] = ("bsp", "wait", "pull", "in_place", "push", "fused")
"""The patterns; ratios are to the first."""

ROWS = (16, 64, 256, 1024, 4096)
KEYS = (8192, 65536, 524288)
"""Keys of each rank that are predicted."""
KEYS_OF_ONE_GPU = (8192, 32768)
"""Those that are measured: one GPU holds the keys of all ranks."""


class Times(Protocol):
    """Seconds of one pattern, launched one by one and as a captured graph."""

    @property
    def eager(self) -> float: ...
    @property
    def graph(self) -> float: ...


@dataclass(frozen=True)
class Predicted:
    """What the cost model says of one pattern, in seconds."""

    eager: float
    graph: float


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    predict: bool
    dry_run: bool
    machine: str
    in_place: bool
    one_gpu: bool
    ranks: Sequence[int]
    rows: Sequence[int]
    keys: Sequence[int]
    batch: Sequence[int]

    @property
    def sizes(self) -> Sizes:
        """The extents that stay the same."""
        return TINY if self.dry_run else PAPER


def cases(options: Options) -> Iterator[Case]:
    """Yield the functions, each for each number of ranks."""
    for ranks in options.ranks:
        for rows in options.rows:
            yield ag_gemm(rows, ranks, options.sizes)
        for batch in options.batch:
            for keys in options.keys:
                yield flash_decode(batch, keys, ranks, options.sizes)


def patterns_of(whole: ModuleOp) -> dict[Rung, ModuleOp]:
    """Return the launch plan by every pattern that applies."""
    found: dict[Rung, ModuleOp] = {}
    for rung in LADDER:
        asked = Asked(inputs="symmetric" if rung == "in_place" else "copied")
        pattern = "pull" if rung == "in_place" else rung
        try:
            found[rung] = with_pattern(whole, Candidate(pattern), asked)
        except PassFailedException as error:
            if "does not apply" not in str(error):
                raise
    return found


def model_times(
    plans: Mapping[Rung, ModuleOp], *, in_place: bool, one_gpu: bool
) -> dict[Rung, Predicted]:
    """Return what the cost model says of each pattern."""

    def seconds(plan: ModuleOp, graph: bool) -> float:
        taxes = predicted(plan, graph=graph, resident=in_place, one_gpu=one_gpu)
        return taxes.total

    return {
        pattern: Predicted(seconds(plan, False), seconds(plan, True))
        for pattern, plan in plans.items()
    }


def print_predictions(options: Options) -> None:
    """Print the ratios that the model expects of a node of GPUs, or of one GPU."""
    where = f"one GPU of {options.machine}" if options.one_gpu else options.machine
    print(f"predicted for {where}, ratio to bsp, one by one / as a graph")
    print(_line("case", "ranks", "bsp", *LADDER[1:]))
    for case in cases(options):
        plans = patterns_of(launch_plan(case, options.machine))
        times = model_times(plans, in_place=options.in_place, one_gpu=options.one_gpu)
        base = times["bsp"]
        bsp = f"{base.eager * 1e6:.1f} us / {base.graph * 1e6:.1f} us"
        cells = (_ratios(times, pattern) for pattern in LADDER[1:])
        print(_line(case.name, str(case.ranks), bsp, *cells), flush=True)


def measure(
    options: Options, name: str, device: Device, clock: Clock, rounds: Rounds
) -> bool:
    """
    Print measured ratios, and beside them what the model expects of one GPU.

    Returns whether every result was right.
    """
    from ladder_runs import measured

    print(
        f"measured on {name}, all ranks in each launch; ratio to bsp, one by one / as"
    )
    print("a graph, then the same predicted, then the largest error and bsp's times")
    print(_line("case", "ranks", "pattern", "measured", "predicted", "error"))
    right = True
    for case in cases(options):
        plans = patterns_of(launch_plan(case, options.machine))
        expected = model_times(plans, in_place=False, one_gpu=True)
        times = measured(plans, device, clock, rounds)
        for pattern, time in times.items():
            cells = (pattern, _ratios(times, pattern), _ratios(expected, pattern))
            error = f"{time.error:.1e}{'' if time.ok else ' WRONG'}"
            line = _line(case.name, str(case.ranks), *cells, error)
            print(line + _microseconds(pattern, time), flush=True)
        right &= all(time.ok for time in times.values())
    return right


def _microseconds(pattern: Rung, time: Measured) -> str:
    """Return the times that ratios are to, behind their own."""
    if pattern != LADDER[0]:
        return ""
    return f"  {time.eager * 1e6:.1f} us / {time.graph * 1e6:.1f} us"


def on_gpu(options: Options) -> bool:
    """Measure on the GPU; return whether every result was right."""
    from gpu_device.timing import Rounds
    from ladder_runs import gpu

    return measure(options, *gpu(), Rounds())


def dry_run(options: Options) -> bool:
    """Take all steps of a measurement, interpreted; return whether all was right."""
    os.environ["TRITON_INTERPRET"] = "1"
    from gpu_device.timing import DRY, WallClock

    from comet.runtime.virtual_interpreted import InterpretedDevice, on_device

    def body(device: InterpretedDevice) -> bool:
        name = "nothing (a dry run)"
        return measure(options, name, device, WallClock(), DRY)

    return on_device(body)


def _ratios(times: Mapping[Rung, Times], pattern: Rung) -> str:
    if pattern not in times:
        return "-"
    base, time = times["bsp"], times[pattern]
    return f"{base.eager / time.eager:.2f} / {base.graph / time.graph:.2f}"


def _line(first: str, *rest: str) -> str:
    number, *cells = rest
    return f"{first:<30}{number:>6}" + "".join(f"{cell:>24}" for cell in cells)


def options_of(argv: Sequence[str] | None) -> Options:
    """Read the command line; what it leaves out depends on what is done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--predict", action="store_true", help="run nothing")
    kinds.add_argument("--dry-run", action="store_true", help="interpret tiny sizes")
    parser.add_argument("--machine", default="h200x8", help="of samples/hardware")
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="with --predict: inputs that peers pull are in symmetric memory already, "
        "behind a barrier of the caller: in_place without flags",
    )
    parser.add_argument(
        "--one-gpu",
        action="store_true",
        help="with --predict: all ranks share one GPU",
    )
    for name, text in (
        ("--ranks", "numbers of ranks"),
        ("--rows", "rows M of AG+GEMM"),
        ("--keys", "keys of flash decode on each rank"),
        ("--batch", "sequences of flash decode"),
    ):
        parser.add_argument(name, type=int, nargs="*", help=text)
    args = parser.parse_args(argv)
    keys = KEYS if args.predict else KEYS_OF_ONE_GPU
    tiny = args.dry_run
    return Options(
        predict=args.predict,
        dry_run=args.dry_run,
        machine=args.machine,
        in_place=args.in_place,
        one_gpu=args.one_gpu,
        ranks=_given(args.ranks, (2,) if tiny else (4, 8)),
        rows=_given(args.rows, (16,) if tiny else ROWS),
        keys=_given(args.keys, (32,) if tiny else keys),
        batch=_given(args.batch, (1,) if tiny else (1, 16)),
    )


def _given(numbers: Sequence[int] | None, default: Sequence[int]) -> Sequence[int]:
    return default if numbers is None else numbers


def main(argv: Sequence[str] | None = None) -> int:
    """Predict or measure, as the arguments say; return the exit code."""
    options = options_of(argv)
    if options.predict:
        print_predictions(options)
        return 0
    try:
        right = dry_run(options) if options.dry_run else on_gpu(options)
    except ValueError as error:
        print(f"ladder: error: {error}", file=sys.stderr)
        return 1
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
