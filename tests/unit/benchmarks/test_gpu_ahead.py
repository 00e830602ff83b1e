"""benchmarks/gpu_run/ahead.py: modules are compiled while cases run."""

import time
from pathlib import Path

import pytest
from gpu_run import ahead
from worker_tasks import LONG, compile_or_hang


def test_a_case_waits_for_its_own_modules_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are compiled meanwhile, and not any more when all cases are done."""
    monkeypatch.setattr(ahead, "compile_module", compile_or_hang)
    first, second = tmp_path / "first", tmp_path / "hang"
    start = time.monotonic()
    with ahead.Ahead([first, second], 1, tmp_path / "log", start + LONG) as modules:
        modules.start()
        modules.start()
        modules.wait([first])
    assert time.monotonic() - start < LONG / 2
    assert capsys.readouterr().out == "compiling 2 modules in 1 processes\n"


def test_time_that_is_up_ends_the_waiting(tmp_path: Path) -> None:
    module = tmp_path / "module"
    with ahead.Ahead([module], 1, tmp_path / "log", time.monotonic() - 1) as modules:
        modules.start()
        modules.wait([module])
