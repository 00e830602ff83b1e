"""Runs the tools in this process: faster than a new one for each mistake."""

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from comet.tools.comet_cost import main as price_files
from comet.tools.comet_opt import TOOL, CometOptMain
from comet.tools.diagnostics import one_sentence_errors


@dataclass(frozen=True)
class ToolRun:
    """What a run left behind."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line of a run that failed as it should."""
        assert self.code == 1, self.out[:500]
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert "error: " in line
        assert "Traceback" not in line
        assert "a bug in comet" not in line, line
        assert "builtin.module" not in line
        return line


def comet_opt(text: str, passes: str = "", target: str = "mlir") -> ToolRun:
    """Run comet-opt on a module given as text; its file is called `in.mlir`."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "in.mlir"
        file.write_text(text)
        done = comet_opt_command([str(file), "-p", passes, "-t", target])
        return replace(done, err=done.err.replace(f"{folder}/", ""))


def comet_opt_command(arguments: Sequence[str]) -> ToolRun:
    """Run comet-opt with these arguments; every pass of a pipeline is verified."""

    def run() -> None:
        with one_sentence_errors(TOOL):
            CometOptMain(["--verify-each", *arguments]).run()

    return _finished(run)


def comet_cost(files: Mapping[str, str], *more: str) -> ToolRun:
    """Run comet-cost on files given as texts, named `arch`, `problem` and so on."""
    with TemporaryDirectory() as folder:
        arguments: list[str] = [*more]
        for name, text in files.items():
            path = Path(folder) / f"{name}.yaml"
            path.write_text(text)
            arguments += [f"--{name}_file", str(path)]
        done = comet_cost_command(arguments)
        return replace(done, err=done.err.replace(f"{folder}/", ""))


def comet_cost_command(arguments: Sequence[str]) -> ToolRun:
    """Run comet-cost with these arguments."""
    return _finished(lambda: price_files(list(arguments)))


def _finished(work: Callable[[], None]) -> ToolRun:
    """Run `work`, which may end the process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            work()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 2
    return ToolRun(code, out.getvalue(), err.getvalue())
