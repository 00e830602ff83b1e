"""
Broken inputs in `tests/broken`, and the one sentence that each of them gets.

* `*.mlir`: a broken module; `// RUN:` gives the passes, `%hardware` the samples'.
* `hardware.yaml`: a hardware file with one mistake.
* `comet.yaml`: COMET files with one mistake, priced by comet-cost.
* `options.yaml`: passes and options that do not fit the program.

`messages.txt` holds the sentences.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import plain_yaml
import pytest
from covering import one_of
from paths import ROOT
from programs import graph_text
from tool_run import ToolRun, comet_cost, comet_opt

BROKEN = ROOT / "tests" / "broken"
HARDWARE = ROOT / "samples" / "hardware"
TOOL_FILES = ("problem", "mapping", "constants")

Case = dict[str, Any]


def cases() -> Iterator[tuple[str, Case]]:
    """Yield the name of every case, `group/name`, and what it says."""
    for group in ("hardware", "comet", "options"):
        table: dict[str, Case] = plain_yaml.load((BROKEN / f"{group}.yaml").read_text())
        for name, case in table.items():
            yield f"{group}/{name}", case
    for file in sorted(BROKEN.glob("*.mlir")):
        yield f"mlir/{file.stem}", {"text": file.read_text()}


CASES = dict(cases())


def attach(hardware: str) -> str:
    """Return the pass that attaches a hardware file of the samples."""
    return f'attach-hardware{{path="{HARDWARE}/{hardware}.yaml"}}'


def changed(text: str, case: Case) -> str:
    """Return a text with the mistake of a case in it."""
    if case["old"] == "all":
        return str(case["new"])
    assert case["old"] in text
    return text.replace(case["old"], case["new"], case.get("count", 1))


def run_hardware(case: Case, folder: Path) -> ToolRun:
    """Attach a hardware file to a program."""
    file = folder / "hw.yaml"
    file.write_text(changed((HARDWARE / "edge.yaml").read_text(), case))
    passes = [f'attach-hardware{{path="{file}"}}', *case.get("passes", "").split()]
    run = comet_opt(graph_text("gemm_softmax", (8, 4, 64)), ",".join(passes))
    return ToolRun(run.code, run.out, run.err.replace(f"{folder}/", ""))


def run_comet(case: Case, folder: Path) -> ToolRun:
    """Price COMET files."""
    texts = {
        "arch": (HARDWARE / "edge.yaml").read_text(),
        **{file: (BROKEN / "gemm" / f"{file}.yaml").read_text() for file in TOOL_FILES},
    }
    if case.get("missing"):
        del texts[case["file"]]
    else:
        for edit in (case, case.get("also")):
            if edit is not None:
                texts[edit["file"]] = changed(texts[edit["file"]], edit)
    return comet_cost(texts)


def run_options(case: Case, folder: Path) -> ToolRun:
    """Run passes on a program."""
    hardware = case.get("hardware", "edge")
    passes = [case["passes"]] if case["passes"] else []
    if hardware != "none":
        passes.insert(0, attach(hardware))
    rows, columns, depth = case.get("sizes", (8, 64, 4))
    text = graph_text("gemm_softmax", (rows, depth, columns))
    return comet_opt(text, ",".join(passes), case.get("target", "mlir"))


def run_mlir(case: Case, folder: Path) -> ToolRun:
    """Run the passes that a module names on it."""
    head, _, _ = case["text"].partition("\n")
    passes = head.removeprefix("// RUN:").strip()
    return comet_opt(case["text"], passes.replace("%hardware", str(HARDWARE)))


RUNNERS = {
    "hardware": run_hardware,
    "comet": run_comet,
    "options": run_options,
    "mlir": run_mlir,
}


def sentence(name: str, folder: Path) -> str:
    """Return the sentence that a case gets."""
    run = RUNNERS[name.partition("/")[0]](CASES[name], folder)
    return run.sentence.replace(f"{ROOT}/", "")


@cache
def messages() -> dict[str, str]:
    """Return the sentences that are expected."""
    lines = (BROKEN / "messages.txt").read_text().splitlines()
    return dict(line.split("\t") for line in lines)


def test_every_case_has_its_message() -> None:
    assert list(messages()) == list(CASES)
    assert len(CASES) > 100


@one_of(2)
@pytest.mark.parametrize("name", CASES)
def test_a_broken_input_gets_one_sentence(name: str, tmp_path: Path) -> None:
    assert sentence(name, tmp_path) == messages()[name]
