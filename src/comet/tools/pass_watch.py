"""
What comet-opt does around running passes: it verifies, and prints IR and times.

Each pass of `-p` is verified, and with `--verify-each` each of a pipeline. The
passes of a pipeline are printed like other passes; passes that a search runs on copies
are not. Dumps go to stderr in the form of mlir-opt; the output of xDSL's own
flags goes to stdout, as in xDSL.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from comet.dialects.errors import about, op_of
from comet.passes.pipeline import Pipeline
from comet.tools.checks import check_structure, verify_definitions, verify_module
from comet.tools.diagnostics import UsageError
from comet.tools.option_check import unknown_name
from comet.tools.type_aliases import with_type_aliases

DUMPS = ("before", "after")


def add_flags(parser: ArgumentParser) -> None:
    """Add the flags that select the IR to print and to verify."""
    parser.add_argument(
        "--verify-each",
        action="store_true",
        help="Verify the IR after each pass of a pipeline too, not only after each "
        "pass of -p",
    )
    for when in DUMPS:
        parser.add_argument(
            f"--print-ir-{when}",
            metavar="PASS",
            action="append",
            default=[],
            help=f"Print the IR {when} a pass on stderr; may be given more than once",
        )
        parser.add_argument(
            f"--print-ir-{when}-all",
            action="store_true",
            help=f"Print the IR {when} each pass on stderr",
        )
    parser.add_argument(
        "--print-ir-after-change",
        action="store_true",
        help="Print the IR on stderr after each pass that changed it, or, with "
        "--print-ir-after, only after those of these passes",
    )
    parser.add_argument(
        "--print-type-aliases",
        action="store_true",
        help="Print types with named dimensions by aliases such as !M64_K128_f16_HBM",
    )


@dataclass(frozen=True)
class Shown:
    """The output that the flags of a call request."""

    before: frozenset[str]
    after: frozenset[str]
    before_all: bool
    after_all: bool
    after_change: bool
    aliases: bool
    between: bool
    times: bool
    verify: bool
    verify_each: bool

    def has(self, when: str, pass_: ModulePass) -> bool:
        """Return whether the IR is printed before or after a pass."""
        names, every = (
            (self.before, self.before_all)
            if when == "before"
            else (self.after, self.after_all)
        )
        return pass_.name in names or (every and not isinstance(pass_, Pipeline))


def shown(args: Namespace, known: Iterable[str]) -> Shown:
    """
    Return the requests of the flags.

    Raises UsageError if one names an unknown pass.
    """
    named = {"before": args.print_ir_before, "after": args.print_ir_after}
    for name in (name for names in named.values() for name in names):
        if name not in known:
            raise UsageError(unknown_name("pass", name, known))
    return Shown(
        frozenset(named["before"]),
        frozenset(named["after"]),
        args.print_ir_before_all,
        args.print_ir_after_all or (args.print_ir_after_change and not named["after"]),
        args.print_ir_after_change,
        args.print_type_aliases,
        args.print_between_passes,
        args.time_passes,
        not args.disable_verify,
        args.verify_each,
    )


class Watch:
    """Verifies, prints and times around each pass of one module."""

    def __init__(self, shown: Shown):
        self._shown = shown
        self._last: ModulePass | None = None
        """The pass that ran last."""
        self._inside = 0.0
        """Seconds of the passes inside the innermost running pipeline."""
        self._depth = 0
        """How many pipelines are around the pass that runs."""

    @contextmanager
    def around(self, pass_: ModulePass, module: ModuleOp) -> Generator[None]:
        """Do what is requested before and after a pass."""
        text = self._before(pass_, module)
        outside, self._inside = self._inside, 0.0
        self._depth += 1
        start = perf_counter()
        yield
        took = perf_counter() - start
        self._depth -= 1
        self._after(pass_, module, took)
        if self._shown.has("after", pass_) and (text is None or text != str(module)):
            self._dump("After", pass_, module)
        self._inside = outside + perf_counter() - start

    def verify(self, module: ModuleOp, after: ModulePass | None = None) -> None:
        """Verify the IR; the error names the pass that made it."""
        if not self._shown.verify:
            return
        try:
            verify_definitions(module)
            if after is None:
                check_structure(module)
            verify_module(module)
        except VerifyException as error:
            if after is None:
                raise
            message = f"the pass '{after.name}' made IR that does not verify: {error}"
            with about(op_of(error) or module):
                raise VerifyException(message) from error

    def _before(self, pass_: ModulePass, module: ModuleOp) -> str | None:
        """Print what is requested; return the IR to compare with, if changes count."""
        if self._shown.between and self._last and not isinstance(pass_, Pipeline):
            print(f"IR after {self._last.name}:\n{module!s}\n\n\n")
        if self._shown.has("before", pass_):
            self._dump("Before", pass_, module)
        compared = self._shown.after_change and self._shown.has("after", pass_)
        return str(module) if compared else None

    def _after(self, pass_: ModulePass, module: ModuleOp, took: float) -> None:
        if isinstance(pass_, Pipeline):
            parts = f", {took - self._inside} of them outside its passes"
        else:
            parts, self._last = "", pass_
        if self._depth == 0 or self._shown.verify_each:
            self.verify(module, pass_)
        if self._shown.times:
            print(f"Pass {pass_.name} took {took} seconds{parts}")

    def _dump(self, when: str, pass_: ModulePass, module: ModuleOp) -> None:
        """Print IR under a heading as mlir-opt does."""
        heading = f"// -----// IR Dump {when} {pass_.name} //----- //"
        text = with_type_aliases(module) if self._shown.aliases else str(module)
        print(f"{heading}\n{text}\n", file=sys.stderr)
