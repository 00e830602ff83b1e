"""Half a minute of `make fuzz` with fixed seeds."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz import Worker
from fuzz_families import FAMILIES
from fuzz_judge import spoken
from fuzz_worker import Task
from tool_run import ToolRun

CASES = {
    "mlir": 80,
    "hardware": 30,
    "cost": 40,
    "pipeline": 40,
    "plan": 20,
    "elementary": 22,
    "named": 8,
    "sync": 5,
}
"""How many cases of each family are tried."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as found:
        yield found


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_found(family: str, worker: Worker) -> None:
    seeds = [f"fixed-{number}" for number in range(CASES[family])]
    tasks = [Task(family, seed, reducing=0) for seed in seeds]
    verdicts = {task.seed: worker.ask(task).verdict for task in tasks}
    assert {seed: v for seed, v in verdicts.items() if v.is_finding} == {}
    assert any(verdict.kind == "accepted" for verdict in verdicts.values())


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("there is no operation builtin.modules", "refused"),
        ("builtin.module { }", "message"),
        ('"builtin.module"() ({ })', "message"),
    ],
)
def test_an_error_quotes_no_module(what: str, kind: str) -> None:
    error = f"in.mlir:1:1: error: {what}; mend its name"
    assert spoken(ToolRun(1, "", error), Path("folder")).kind == kind
