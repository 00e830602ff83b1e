"""The guide for several GPUs: its commands run, and print what it shows."""

import re
import shlex

import pytest
from paths import ROOT
from shown_pages import Shown, flat, page, pattern, run_all
from tool_run import comet_opt

from comet.runtime.command import argument_parser
from comet.runtime.request import MANY_RANKS

GUIDE = page("multi-gpu.md")
PAGE, SHOWN = GUIDE.text, GUIDE.shown
README = (ROOT / "README.md").read_text()
COMMANDS = GUIDE.commands[1:]
"""All but the first, which enters the environment."""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run all commands in order; return what each wrote."""
    return run_all(COMMANDS, tmp_path_factory.mktemp("guide"))


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
    (text,) = (text for kind, text in GUIDE.blocks if kind == "mlir sample")
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
