"""comet-opt: runs passes on a module, then prints it or emits it for a target."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from inspect import signature
from io import StringIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, ClassVar, NoReturn, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import xDSLOptMain

from comet.api.plugins import known_dialects, load_plugin, passes_in, plugin_at
from comet.garbage import short_lived
from comet.passes.pipeline import run_settled, spelled
from comet.passes.search.ahead import processes_here
from comet.passes.search.record import session
from comet.tools.diagnostics import UsageError, one_sentence_errors
from comet.tools.located_parser import LONG_NUMBER, LocatedParser
from comet.tools.option_check import checked, named_passes
from comet.tools.pass_list import listed
from comet.tools.pass_watch import Watch, add_flags, shown
from comet.tools.reporting import Outputs, add_report_flags, expect_writable
from comet.tools.type_aliases import with_type_aliases
from comet.universe import installed

if TYPE_CHECKING:
    from comet.tools.compile_reporting import CompileReporting

TOOL = "comet-opt"


class _PendingText(StringIO):
    """Text that stays readable after xDSL has closed its output."""

    def close(self) -> None:
        """Do nothing."""


class CometOptMain(xDSLOptMain):
    """
    xDSL's driver with our universe, located errors, and plug-ins in single files.

    Everything else, all flags included, is xDSL's.
    """

    version_format: ClassVar[str] = (
        f"{TOOL} {version('comet-compiler')} on xDSL {{xdsl_version}}"
    )

    def __init__(self, args: Sequence[str] | None = None):
        self._line_offset = 0
        self._pending_output = _PendingText()
        super().__init__(__doc__ or "", args)
        for name in ("input_file", "output_file"):
            if getattr(self.args, name) == "-":  # as in mlir-opt
                setattr(self.args, name, None)

    def run(self) -> None:
        """Run the stages; an output file appears only if all of them succeed."""
        if self.args.list_passes:
            print(listed(self.available_passes))
            return
        super().run()
        if self._reporting is not None:
            self._reporting.write(self.args.input_file, self._done)
        if (path := self.args.output_file) is not None:
            Path(path).write_text(self._pending_output.getvalue(), encoding="utf-8")

    def register_all_arguments(self, arg_parser: ArgumentParser) -> None:
        """Add our own flags, and report mistakes in the flags like all others."""
        super().register_all_arguments(arg_parser)
        arg_parser.add_argument(
            "--load-pass-plugin",
            metavar="FILE.py",
            action="append",
            default=[],
            help="Make the passes defined in a Python file available to -p",
        )
        arg_parser.add_argument(
            "--load-dialect-plugin",
            metavar="FILE.py",
            action="append",
            default=[],
            help="Make the dialects defined in a Python file known to the input",
        )
        arg_parser.add_argument(
            "--list-passes",
            action="store_true",
            help="Print all passes with their options, and do nothing else",
        )
        arg_parser.add_argument(
            "--expand",
            action="store_true",
            help="Print, in place of the program, the passes that -p expands to, with "
            "the options that were chosen",
        )
        arg_parser.add_argument(
            "--explain",
            action="store_true",
            help="Print on stderr, for each choice, the candidates with their prices "
            "and what limits them",
        )
        arg_parser.add_argument(
            "--jobs",
            metavar="N",
            type=int,
            help="The processes that search for kernels of a GPU, one for each core by "
            "default; the program is the same with any number",
        )
        add_flags(arg_parser)
        add_report_flags(arg_parser, "what -o wrote, at the same level")
        arg_parser.error = _reject_arguments

    def register_all_dialects(self) -> None:
        """Make all dialects known that are installed."""
        for name, dialect in installed().all_dialects.items():
            self.ctx.register_dialect(name, dialect)

    def register_all_passes(self) -> None:
        """Make all passes known that are installed."""
        for name, factory in installed().all_passes.items():
            self.register_pass(name, factory)

    def register_all_targets(self) -> None:
        """Make all targets known that are installed."""
        self.available_targets.update(installed().all_targets)

    def register_all_frontends(self) -> None:
        """Read MLIR text with a parser that records locations, and COMET file sets."""
        super().register_all_frontends()
        self.available_frontends["mlir"] = self._parse_mlir
        self.available_frontends["comet"] = _read_comet

    def _parse_mlir(self, stream: IO[bytes]) -> ModuleOp:
        text = stream.read().decode("utf-8-sig")
        parser = LocatedParser(self.ctx, text, self.get_input_name(), self._line_offset)
        return parser.parse_module(not self.args.no_implicit_module)

    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        """Parse one chunk of the input, which starts at line `start_offset` + 1."""
        self._line_offset = start_offset
        try:
            return super().parse_chunk(chunk, file_extension, start_offset)
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{self.get_input_name()}: the file is not UTF-8 text"
            ) from error

    def setup_pipeline(self) -> None:
        """Load the plug-ins, then check passes and target before any work."""
        for path in self.args.load_dialect_plugin:
            load_plugin(plugin_at(path))
        for name, dialect in known_dialects().items():
            if name not in self.ctx.registered_dialect_names:
                self.ctx.register_dialect(name, dialect)
        for path in self.args.load_pass_plugin:
            self._register_passes(path)
        for flag, text in (("-p", self.args.passes), ("-t", self.args.target)):
            _check_numbers(flag, text)
        self._check_target()
        expect_writable("-o", self.args.output_file)
        self._shown = shown(self.args, self.available_passes)
        passes = named_passes(self.args.passes, self.available_passes)
        self.pipeline = PassPipeline(passes)
        self._reporting = self._new_reporting()

    def apply_passes(self, prog: ModuleOp) -> None:
        """Apply passes in order, with what the flags request around each."""
        watch, reporting = Watch(self._shown), self._reporting
        watch.verify(prog)
        around, recording = watch.around, nullcontext()
        if reporting is not None:
            around, recording = reporting.watching(around), reporting.recording(prog)
        explaining = _explaining(prog) if self.args.explain else nullcontext()
        with session() as searched, recording, explaining:
            searched.processes = self._processes()
            self._done = run_settled(self.pipeline.passes, self.ctx, prog, around)
        for sentence in searched.warnings:
            print(f"{TOOL}: warning: {sentence}", file=sys.stderr)

    def _processes(self) -> int:
        """Return how many processes search: only one if its choices are shown."""
        if self.args.jobs is not None and self.args.jobs < 1:
            raise UsageError("--jobs is a number of processes, 1 or more")
        if self.args.explain or self._reporting is not None:
            return 1
        return self.args.jobs or processes_here()

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """Return the output: the passes that have run, or the program."""
        if self.args.expand:
            return spelled(self._done) + "\n"
        if self.args.print_type_aliases and parse_spec(self.args.target).name == "mlir":
            return with_type_aliases(prog, self.args.print_op_generic) + "\n"
        return super().output_resulting_program(prog)

    def _new_reporting(self) -> "CompileReporting | None":
        """Return the report that the flags request, None without one."""
        if (outputs := Outputs.of(self.args)) is None:
            return None
        if self.args.split_input_file:
            raise UsageError("--report is about one program; leave --split-input-file")
        from comet.tools.compile_reporting import CompileReporting

        return CompileReporting(outputs)

    def _register_passes(self, path: str) -> None:
        for name, pass_class in passes_in(plugin_at(path)).items():
            if name in self.available_passes:
                raise UsageError(f"{path}: there is already a pass named '{name}'")
            self.register_pass(name, lambda found=pass_class: found)

    def _check_target(self) -> None:
        spec = parse_spec(self.args.target)
        factory = self.available_targets[spec.name]
        if not signature(factory).parameters:  # else a plain function, without options
            target = cast(Callable[[], type[Target]], factory)()
            checked("target", spec, target)

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        """Open the input; reject an unknown file extension."""
        try:
            return super().prepare_input()
        except ValueError as error:
            endings = ", ".join(f".{name}" for name in self.available_frontends)
            raise UsageError(
                f"{self.get_input_name()}: the file name must end in one of {endings}, "
                "or -f must name the format"
            ) from error

    def prepare_output(self) -> IO[str]:
        """Buffer what is written to a file, so that no incomplete file appears."""
        if self.args.output_file is None:
            return super().prepare_output()
        return self._pending_output


def _read_comet(stream: IO[bytes]) -> ModuleOp:
    from comet.codegen.comet import read_stream

    return read_stream(stream)


def _explaining(module: ModuleOp) -> AbstractContextManager[None]:
    from comet.tools.explain import explaining

    return explaining(module)


def _check_numbers(flag: str, text: str) -> None:
    if LONG_NUMBER.search(text) is not None:
        raise UsageError(
            f"{flag} has a number of over 1000 digits; write a smaller one"
        )


def _reject_arguments(message: str) -> NoReturn:
    raise UsageError(f"{message}; '{TOOL} --help' lists what there is")


def main() -> None:
    """Run comet-opt on the arguments of the process."""
    with short_lived(), one_sentence_errors(TOOL):
        CometOptMain().run()


if __name__ == "__main__":
    main()
