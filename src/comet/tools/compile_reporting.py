"""The report of `comet-opt --report`."""

from __future__ import annotations

import shlex
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from comet.api.program import installed_context, parsed
from comet.api.source import Source
from comet.dialects.comet import MappingOp
from comet.dialects.dataflow import ProgramOp
from comet.dialects.schedule import CopyOp
from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.pipeline import Around, spelled
from comet.passes.search.record import Choice, session
from comet.tools.diagnostics import UsageError
from comet.tools.reporting import Outputs

STDIN = "stdin"
"""The name of a program that no file has."""


class CompileReporting:
    """Watches a compilation, and writes the report on it."""

    def __init__(self, outputs: Outputs):
        self._outputs = outputs
        self._other = compared(outputs)
        self._choices: Sequence[Choice] = ()
        self._priced: ModuleOp | None = None
        """The program when it last was a launch plan without copies, or a mapping."""

    @contextmanager
    def recording(self, module: ModuleOp) -> Generator[None]:
        """Keep the input, and what passes choose from in the body."""
        self._keep(module)
        with session() as searched:
            yield
        self._choices = searched.choices

    def watching(self, around: Around) -> Around:
        """Return a context of passes that also keeps the program to report on."""

        @contextmanager
        def watched(pass_: ModulePass, module: ModuleOp) -> Generator[None]:
            with around(pass_, module):
                yield
            self._keep(module)

        return watched

    def _keep(self, module: ModuleOp) -> None:
        if _has_price(module):
            self._priced = module.clone()

    def write(self, program: str | None, passes: Sequence[ModulePass]) -> None:
        """
        Write the files; `program` is the name of the input file.

        Raises UsageError if the program never was something that has a price.
        """
        from comet.report.compiled_report import Compilation, page_of_compiled

        if self._priced is None:
            raise UsageError(
                "there is nothing to report on: --report needs a launch plan, as of "
                "triton-distributed, or a mapping, as of comet-accelerator"
            )
        hardware = [p.path for p in passes if isinstance(p, AttachHardwarePass)]
        compilation = Compilation(
            self._priced,
            program or STDIN,
            {"The same program, without a search": _command(program, passes)},
            [Source.read(path) for path in (program, *hardware) if path is not None],
            self._choices,
        )
        self._outputs.write(page_of_compiled(compilation, self._other))


def _has_price(module: ModuleOp) -> bool:
    ops = list(module.walk())
    if any(isinstance(op, MappingOp) for op in ops):
        return True
    copies = any(isinstance(op, CopyOp) for op in ops)
    return not copies and any(isinstance(op, ProgramOp) for op in ops)


def _command(program: str | None, passes: Sequence[ModulePass]) -> str:
    """Return the command that compiles a program with passes."""
    pipeline = spelled(passes)
    chosen = ("-p", pipeline) if pipeline else ()
    return shlex.join(("comet-opt", program or STDIN, *chosen))


def compared(outputs: Outputs) -> tuple[str, ModuleOp] | None:
    """Return the program to compare with, and the name of its file, if there is one."""
    if (path := outputs.compare) is None:
        return None
    return path, parsed(Source.read(path).text, path, installed_context())
