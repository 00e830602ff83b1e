"""The guide for several GPUs: its commands run, and print what it shows."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from paths import ROOT
from tool_run import comet_opt, comet_opt_command

from comet.runtime.command import argument_parser
from comet.runtime.request import MANY_RANKS

PAGE = (ROOT / "docs/multi-gpu.md").read_text()
README = (ROOT / "README.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(
    r"^```([^\n]+)\n(.*?)^```$", PAGE, re.M | re.S
)
COMMANDS = [text for kind, text in BLOCKS if kind == "sh"][1:]
"""All but the first, which enters the environment."""


@dataclass(frozen=True)
class Shown:
    """A command, and what the page says it writes."""

    command: str
    text: str


SHOWN = [
    Shown(command, text)
    for (before, command), (kind, text) in pairwise(BLOCKS)
    if before == "sh" and kind in ("mlir", "diff", "python", "json", "text")
]


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


def flat(text: str) -> str:
    """Return a text without indentation and space at its ends."""
    return "\n".join(line.strip() for line in text.strip().splitlines()) + "\n"


def run(command: str) -> str:
    """
    Run a command and return what it wrote: a file, or else to the terminal.

    Compilations alone on their line run in this process, which takes half the time.
    """
    words = shlex.split(command)
    if words[0] == "comet-opt" and not re.search("&&|;", command):
        done = comet_opt_command(words[1:])
        output = done.out + done.err
    else:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        output = subprocess.run(
            command,
            shell=True,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        ).stdout
    written = Path(words[-1]) if words[-2] == "-o" else None
    return output if written is None else output + written.read_text()


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Run all commands in order; return what each wrote."""
    folder = tmp_path_factory.mktemp("guide")
    (folder / "samples").symlink_to(ROOT / "samples")
    (folder / "out").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield {command: run(command) for command in COMMANDS}


def test_every_command_shows_what_it_does():
    assert {shown.command for shown in SHOWN} == set(COMMANDS)
    assert len(SHOWN) == len(COMMANDS) > 12


@pytest.mark.parametrize("shown", SHOWN, ids=range(len(SHOWN)))
def test_it_writes_what_is_shown(shown: Shown, outputs: dict[str, str]):
    written = flat(outputs[shown.command])
    assert pattern(shown.text).fullmatch(written), written


def test_what_is_left_is_what_the_tables_say():
    found = re.findall(r"^@ag_gemm on 4 ranks of @h200x8: (\d[\d.]+) us$", PAGE, re.M)
    before, after, _ = map(float, found)
    assert f"Of {before:.1f} us {after:.1f} are left" in PAGE


def test_every_way_to_run_is_one_that_comet_run_knows():
    lines = re.findall(r"`(?:comet-run|torchrun --nproc-per-node \d) (out/.*?)`", PAGE)
    assert len(lines) == 4
    for line in lines:
        argument_parser().parse_args(shlex.split(line))
    named = {*re.findall(r"--backend (\w+)", PAGE), "processes", "virtual"}
    assert named == set(MANY_RANKS)


def test_the_sample_is_shown_whole():
    (text,) = (text for kind, text in BLOCKS if kind == "mlir sample")
    assert (ROOT / "samples/ag_gemm.mlir").read_text().endswith(f"\n{text}")


def test_what_is_left_out_is_all_that_may_differ():
    shown = "first ... end\n...\n  last"
    assert pattern(shown).fullmatch(flat("first and end\n\n  more\n    last"))
    assert pattern(shown).fullmatch(flat("first end\nlast")) is None
    assert pattern(shown).fullmatch(flat("first an end\nlast\nmore")) is None


@pytest.mark.parametrize("name", ["bsp", "push", "fused"])
def test_the_readme_shows_the_taxes(name: str):
    hardware = ROOT / "samples/hardware/h200x8.yaml"
    options = f"ranks=4 pattern={name} to=dataflow"
    passes = f'attach-hardware{{path="{hardware}"}},triton-distributed{{{options}}}'
    done = comet_opt((ROOT / "samples/ag_gemm.mlir").read_text(), passes, "taxes")
    (totals,) = re.findall(r"^total +(.*)$", done.out, re.M)
    (shown,) = re.findall(rf"^{name} +(.*)$", README, re.M)
    assert shown.split() == totals.split()


def test_the_readme_shows_what_the_guide_runs():
    (guide,) = (shown for shown in SHOWN if shown.text.startswith('{"ok"'))
    (shown,) = re.findall(r'^{"ok".*"ranks": 4.*}$', README, re.M)
    wanted = guide.text.replace('"epochs": 2', '"epochs": 5')
    assert pattern(wanted).fullmatch(flat(shown))
