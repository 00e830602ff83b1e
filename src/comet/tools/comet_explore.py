"""comet-explore: the best mapping of a program on an accelerator, with a bound."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import NoReturn

from comet.tools.diagnostics import UsageError, one_sentence_errors

TOOL = "comet-explore"


class _Parser(ArgumentParser):
    """Reports a mistake in the flags like any other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {TOOL} --help")


def main(args: Sequence[str] | None = None) -> None:
    """Search, and print or write what the flags ask for."""
    with one_sentence_errors(TOOL):
        options = _parser().parse_args(args)
        _check(options)
        if options.verify is not None:
            print(_verified(options.verify))
            return
        figures = _explored(options)
        print(json.dumps(figures) if options.json else "\n".join(_lines(figures)))


def _explored(options: Namespace) -> dict[str, object]:
    from comet.tools.exploring import explored

    return explored(options)


def _verified(path: str) -> str:
    from comet.tools.verifying import verified

    return verified(path)


def _parser() -> ArgumentParser:
    parser = _Parser(prog=TOOL, description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "input", nargs="?", help="an MLIR file with a named or elementary op"
    )
    parser.add_argument("--hardware", help="the hardware YAML file")
    parser.add_argument("--constraints", help="a YAML file that limits the choices")
    parser.add_argument(
        "--model",
        choices=("paper", "ideal"),
        default="paper",
        help="paper: the COMET model (default); ideal: perfect overlap",
    )
    parser.add_argument(
        "--objective",
        choices=("latency", "energy", "edp"),
        default="latency",
        help="what is minimized (default: latency)",
    )
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
    parser.add_argument("--emit", metavar="DIR", help="write the four COMET files")
    parser.add_argument("--output", metavar="FILE", help="write the mapping as MLIR")
    parser.add_argument(
        "--certificate", metavar="FILE", help="write the proof of the answer"
    )
    parser.add_argument(
        "--verify",
        metavar="FILE",
        help="check a certificate, which holds its inputs, and do nothing else",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _check(options: Namespace) -> None:
    if options.verify is not None:
        return
    if options.input is None or options.hardware is None:
        raise UsageError(f"name a program and its --hardware; see {TOOL} --help")
    if not 0 < options.time_limit < inf:
        raise UsageError("--time-limit is a positive number of seconds")
    if not 0 <= options.tolerance < 1:
        raise UsageError("--tolerance is a fraction from 0 to below 1, as in 0.02")


def _lines(figures: Mapping[str, object]) -> Iterator[str]:
    """Yield the answer as text."""
    state = "proven" if figures["proven"] else "not proven"
    yield f"model {figures['model']}: {figures['latency_cycles']:,.0f} cycles"
    yield f"energy: {figures['energy_pj']:,.0f} pJ"
    yield (
        f"lower bound of the {figures['objective']}: {figures['lower_bound']:,.6g}, "
        f"gap {figures['gap_percent']:.2f} %, {state}"
    )
    yield f"mapping: {figures['mapping']}"
    yield (
        f"priced {figures['evaluated']:,} of {figures['space_size']:.3g} mappings in "
        f"{figures['seconds']:.1f} s; {figures['structures_closed']} of "
        f"{figures['structures']} structures closed, {figures['structures_rejected']} "
        "rejected"
    )
    yield f"comet-opt -p '{figures['pipeline']}'"


if __name__ == "__main__":
    main()
