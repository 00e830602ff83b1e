"""Pages whose commands run: what a page shows against what its commands write."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from paths import ROOT
from tool_run import comet_opt_command
from torch_python import torch_python

OUTPUTS = ("mlir", "diff", "python", "json", "text")
"""The kinds of blocks that show what the command before them wrote."""


@dataclass(frozen=True)
class Shown:
    """A command, and what the page says it writes."""

    command: str
    text: str


@dataclass(frozen=True)
class Page:
    """A page of `docs/` with its fenced blocks, kind and text."""

    text: str
    blocks: Sequence[tuple[str, str]]

    @property
    def commands(self) -> list[str]:
        """The commands of the page, in order."""
        return [text for kind, text in self.blocks if kind == "sh"]

    @property
    def shown(self) -> list[Shown]:
        """The commands with what is shown after them."""
        return [
            Shown(command, text)
            for (before, command), (kind, text) in pairwise(self.blocks)
            if before == "sh" and kind in OUTPUTS
        ]


def page(name: str) -> Page:
    """Return a page of `docs/` by its name."""
    text = (ROOT / "docs" / name).read_text()
    blocks = re.findall(r"^```([^\n]+)\n(.*?)^```$", text, re.M | re.S)
    return Page(text, blocks)


def pattern(text: str) -> re.Pattern[str]:
    """
    Return what a text means in which `...` stands for what is left out.

    A line of nothing else stands for any lines. Indentation does not count.
    """
    lines: list[str] = []
    for line in text.strip().splitlines():
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            parts = (re.escape(part) for part in line.strip().split("..."))
            lines.append(".*".join(parts) + r"\n")
    return re.compile("".join(lines))


PROGRESS = re.compile(r"^comet-run: .* so far\)\n", re.MULTILINE)
"""What `comet-run` says on a machine that is slow or busy."""


def flat(text: str) -> str:
    """Return a text without indentation and space at its ends."""
    return "\n".join(line.strip() for line in text.strip().splitlines()) + "\n"


def run(command: str) -> str:
    """
    Run a command and return what it wrote: a file, or else to the terminal.

    Compilations run in this process, which takes half the time.
    """
    *before, last = re.split(r"(?:&&|;) ", command)
    return "".join(map(_run_one, before)) + _run_one(last, shown=True)


def _run_one(command: str, shown: bool = False) -> str:
    """Return what one command of a line wrote; if `shown`, what it wrote to a file."""
    words = shlex.split(command)
    if words[0] == "comet-opt" and not {"|", ">"} & {*words}:
        done = comet_opt_command(words[1:])
        output = done.out + done.err
    else:
        folders = [Path(sys.executable).parent, os.environ["PATH"]]
        if "comet-run" in words:
            folders.insert(0, torch_python().parent)
        path = os.pathsep.join(map(str, folders))
        done = subprocess.run(
            command,
            shell=True,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        output = done.stdout + (done.stderr if done.returncode else "")
        output = PROGRESS.sub("", output)
    written = Path(words[-1]) if shown and words[-2] == "-o" else None
    return output if written is None else output + written.read_text()


def run_all(commands: Sequence[str], folder: Path) -> dict[str, str]:
    """Run commands in order, in a folder with `samples/` and `out/`; return outputs."""
    (folder / "samples").symlink_to(ROOT / "samples")
    (folder / "out").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return {command: run(command) for command in commands}
