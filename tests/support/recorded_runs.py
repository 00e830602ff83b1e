"""The recorded runs of the COMET tool: its input files, and what it answered."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from paths import COST_DATA
from xdsl.dialects.builtin import ModuleOp

from comet.codegen.comet.reader import read_files
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.problem import Problem
from comet.cost.from_ir.mapping import problem_of, system_hardware

ARCHS: dict[str, str] = json.loads((COST_DATA / "archs.json").read_text())
"""Hardware files by name."""
RUNS: list[dict[str, Any]] = json.loads((COST_DATA / "runs.json").read_text())["items"]
REJECTED: list[dict[str, Any]] = json.loads((COST_DATA / "rejected.json").read_text())[
    "items"
]
"""Runs whose mapping the tool refuses."""


def texts_of(run: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a run's four files, by the kind of file."""
    names = ("problem", "mapping", "constants")
    return {"arch": ARCHS[run["arch"]], **{name: run[name] for name in names}}


def module_of(run: Mapping[str, Any]) -> ModuleOp:
    """The files of a run as IR."""
    return read_files({f"{kind}.yaml": text for kind, text in texts_of(run).items()})


def parsed(run: Mapping[str, Any]) -> tuple[Problem, Hardware]:
    """The problem and machine of a run."""
    return _parsed(tuple(texts_of(run).items()))


@cache
def _parsed(texts: tuple[tuple[str, str], ...]) -> tuple[Problem, Hardware]:
    module = read_files({f"{kind}.yaml": text for kind, text in texts})
    return problem_of(module), system_hardware(module)


def run_of(family: str, place: int = 0) -> dict[str, Any]:
    """A run of a family."""
    return [run for run in RUNS if run["family"] == family][place]


def recorded(family: str, place: int = 0) -> tuple[Problem, Hardware]:
    """The problem and machine of a run of a family."""
    return parsed(run_of(family, place))


def numbered(number: str) -> tuple[Problem, Hardware]:
    """The problem and machine of a run by its number."""
    return parsed(next(run for run in RUNS if run["id"] == number))
