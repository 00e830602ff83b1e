"""comet-explore: the best mapping of a program on an accelerator, with a bound."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from comet.api.plugins import load_plugin, plugin_at
from comet.api.source import Source
from comet.garbage import short_lived
from comet.tools.diagnostics import UsageError, one_sentence_errors
from comet.tools.flags import FlagParser
from comet.tools.reporting import add_report_flags, expect_folder, expect_writable

if TYPE_CHECKING:
    from comet.api.answer import Answer

TOOL = "comet-explore"

NOT_ANSWERED = (
    "interrupted before there was an answer: no mapping had been found yet; wait until "
    "the quick search has found the first one, or name one by --start"
)
NOT_WRITTEN = "interrupted before all files of the answer were written; search again"
NOT_ALL = "interrupted; with --store, the same command goes on where this one stopped"
"""What is said at Ctrl-C."""


def main(args: Sequence[str] | None = None) -> None:
    """Search, and print or write what the flags ask for."""
    process = short_lived() if args is None else nullcontext()
    with process, one_sentence_errors(TOOL):
        parser = _parser()
        options = parser.parse_args(args)
        _check(options, parser)
        for path in options.load_dialect_plugin:
            load_plugin(plugin_at(path))
        if options.verify is not None:
            print(_verified(options.verify))
            return
        if options.batch is not None or options.compare_strategies:
            sys.exit(0 if _several_answered(options) else 1)
        _explore(options)


def _explore(options: Namespace) -> None:
    shown: list[Answer] = []
    try:
        _answered(options, shown)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(NOT_WRITTEN if shown else NOT_ANSWERED) from None


def _answered(options: Namespace, shown: list[Answer]) -> None:
    """Search, write the answer, and add it to `shown` as soon as it is printed."""
    from comet.tools.exploring import explore_and_write

    gone: list[BrokenPipeError] = []

    def show(answer: Answer) -> None:
        shown.append(answer)
        text = json.dumps(answer.to_json()) if options.json else str(answer)
        try:
            print(text, flush=True)
        except BrokenPipeError as error:  # as with `| head`; the files are still wanted
            gone.append(error)

    explore_and_write(options, show)
    if gone:
        raise gone[0]


def _several_answered(options: Namespace) -> bool:
    try:
        from comet.tools.batching import print_batch, print_strategies

        many = options.batch is not None
        return print_batch(options) if many else print_strategies(options)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(NOT_ALL) from None


def _verified(path: str) -> str:
    from comet.api.verifying import verified

    return verified(Source.read(path))


def _parser() -> ArgumentParser:
    parser = FlagParser(prog=TOOL, description=__doc__, allow_abbrev=False)
    parser.add_argument("input", nargs="?", help="an MLIR file with one function")
    parser.add_argument("--hardware", help="the hardware YAML file")
    parser.add_argument(
        "--constraints",
        help="a YAML file that limits the choices, or a mapping that --output wrote",
    )
    parser.add_argument(
        "--start",
        metavar="FILE",
        help="start from a mapping that --output wrote, instead of a quick search",
    )
    parser.add_argument(
        "--load-dialect-plugin",
        metavar="FILE.py",
        action="append",
        default=[],
        help="make the dialects defined in a Python file known to the input",
    )
    _add_goal(parser)
    parser.add_argument(
        "--time-limit",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="stop after this time, with the gap that is left (default: 60)",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        metavar="FRACTION",
        help="stop at a gap that is proven to be at most this, as in 0.02",
    )
    parser.add_argument(
        "--verify",
        metavar="FILE",
        help="check a certificate, which holds its inputs, and do nothing else",
    )
    parser.add_argument(
        "--store",
        metavar="FILE",
        help="keep answers in this SQLite file, and search no question twice "
        "(default: none)",
    )
    _add_outputs(parser)
    _add_flags_of_samplers(parser)
    _add_flags_of_batches(parser)
    return parser


def _add_goal(parser: ArgumentParser) -> None:
    """Add the flags that say by which model what is minimized."""
    parser.add_argument(
        "--model",
        choices=("paper", "ideal", "tool"),
        default="paper",
        help="paper: the COMET model (default); ideal: perfect overlap; tool: the "
        "COMET tool bit for bit, which has no lower bounds",
    )
    parser.add_argument(
        "--allow-artifacts",
        action="store_true",
        help="with --model tool, take mappings that take less than their transfers of "
        "the root memory do, by a defect of the tool",
    )
    parser.add_argument(
        "--objective",
        choices=("latency", "energy", "edp"),
        default="latency",
        help="what is minimized (default: latency)",
    )


def _add_outputs(parser: ArgumentParser) -> None:
    """Add the flags that say what is written about the answer."""
    parser.add_argument("--emit", metavar="DIR", help="write the four COMET files")
    parser.add_argument("--output", metavar="FILE", help="write the mapping as MLIR")
    parser.add_argument(
        "--certificate", metavar="FILE", help="write the proof of the answer"
    )
    add_report_flags(parser, "a mapping that --output wrote")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_flags_of_samplers(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--sampler",
        choices=("tpe", "cmaes", "nsga2"),
        help="sample the space by Optuna instead of searching it exactly",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="the seed of the sampler (default: 0)",
    )
    parser.add_argument(
        "--samples",
        type=int,
        default=1000,
        metavar="N",
        help="how many mappings to sample (default: 1000)",
    )


def _add_flags_of_batches(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--batch",
        metavar="FILE",
        help="answer the questions of a YAML file; other flags are their defaults",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=-1,
        metavar="N",
        help="the processes of a batch (default: -1, one on each core)",
    )
    parser.add_argument(
        "--engine",
        default="local",
        help="where a batch runs: local (default), dask://HOST:PORT, or ray",
    )
    parser.add_argument(
        "--compare-strategies",
        action="store_true",
        help="print the best mapping of each fusion strategy",
    )
    parser.add_argument("--csv", metavar="FILE", help="write this comparison as CSV")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw this comparison, as .png, .svg or .pdf"
    )


def _check(options: Namespace, parser: ArgumentParser) -> None:
    if options.verify is not None:
        _check_alone(options, parser)
        return
    if options.batch is not None:
        if options.input is not None or options.compare_strategies:
            raise UsageError(
                "a batch names its programs itself; name none beside --batch, and "
                "compare strategies of one program"
            )
    elif options.input is None or options.hardware is None:
        raise UsageError(f"name a program and its --hardware; see {TOOL} --help")
    if options.batch is not None or options.compare_strategies:
        outputs = ("emit", "output", "certificate", "report", "plots", "compare")
        _expect_none(options, outputs, "the answer to one question")
        if options.start is not None:
            raise UsageError("--start is a mapping of one question; leave it out")
    if not options.compare_strategies:
        _expect_none(options, ("csv", "plot"), "what --compare-strategies finds")
    _check_idle(options, parser)
    expect_folder("emit", options.emit)
    for flag in ("output", "certificate", "csv", "plot"):
        expect_writable(f"--{flag}", getattr(options, flag))


def _check_alone(options: Namespace, parser: ArgumentParser) -> None:
    """Raise UsageError for what --verify does not read: its file has the inputs."""
    for name, value in vars(options).items():
        if name in ("verify", "load_dialect_plugin"):
            continue
        if value != parser.get_default(name):
            flag = "a program" if name == "input" else f"--{name.replace('_', '-')}"
            raise UsageError(
                f"--verify checks a certificate, which holds its inputs; {flag} has no "
                "effect beside it, so leave that out"
            )


def _check_idle(options: Namespace, parser: ArgumentParser) -> None:
    """Raise UsageError for a value that the search would not read."""
    idle: dict[str, str] = {}
    if options.sampler is None:
        idle |= dict.fromkeys(("seed", "samples"), "--sampler")
    if options.batch is None and not options.compare_strategies:
        several = "--batch or --compare-strategies"
        idle |= dict.fromkeys(("jobs", "engine"), several)
    for flag, owner in idle.items():
        if getattr(options, flag) != parser.get_default(flag):
            raise UsageError(
                f"--{flag} has no effect without {owner}; add that, or leave it out"
            )


def _expect_none(options: Namespace, flags: Sequence[str], what: str) -> None:
    for flag in flags:
        if getattr(options, flag) is not None:
            raise UsageError(f"--{flag} writes {what}; leave it out")


if __name__ == "__main__":
    main()
