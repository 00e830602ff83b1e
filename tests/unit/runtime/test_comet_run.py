"""The command comet-run: reports, exit codes, and errors of one sentence."""

import json
import subprocess
from pathlib import Path

import pytest
import torch
from covering import one_of
from torch_python import run_python
from triton_modules import LOWER, emitted, hardware
from triton_schedules import schedule

from comet.runtime import command
from comet.runtime.child import as_text, expect_gpu, prints
from comet.runtime.compile_check import Compiled
from comet.runtime.compile_report import text_of
from comet.runtime.request import Request

SIZES = {"M": 5, "N": 7}


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Emit a small module."""
    path = tmp_path_factory.mktemp("run") / "normalize.py"
    path.write_text(emitted(schedule("welford", SIZES, {"N": 4}), LOWER))
    return path


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run comet-run in a process of its own."""
    return run_python(["-m", "comet.tools.comet_run", *arguments])


def test_report(module: Path):
    done = run(module, "--seed", "7", "--check", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert list(report) == [
        "ok",
        "max_error",
        "tolerance",
        "ranks",
        "backend",
        "seed",
        "seconds",
    ]
    assert report["ok"] is True
    assert 0 < report["max_error"] <= report["tolerance"]
    assert (report["ranks"], report["seed"]) == (1, 7)
    assert report["backend"] == ("gpu" if command.has_gpu() else "interpreter")
    assert report["seconds"] > 0


def test_compiling_needs_no_gpu(module: Path):
    done = run(module, "--compile", "sm_90", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is True
    (kernel,) = report["kernels"]
    assert (kernel["target"], kernel["spills"]) == ("sm_90", 0)
    assert kernel["faults"] == kernel["slow"] == []


def test_faults_of_kernels_are_reported():
    kernel = Compiled(
        "f",
        "gfx942",
        registers=9,
        spills=4,
        shared=8,
        matrix=0,
        bulk=0,
        remote=0,
        programs=6,
        resident=5,
        faults=("bad",),
        slow=("late",),
    )
    assert text_of([kernel]).splitlines() == [
        "WRONG: f on gfx942: 9 registers, 4 bytes spilled, 8 bytes of shared memory, 0 "
        "matrix instructions, 0 copies by descriptors; 6 programs, of which 5 fit at a "
        "time",
        "  fault: bad",
        "  slow: late",
    ]


def test_loads_from_other_thread_blocks_are_reported():
    kernel = Compiled("f", "sm_90", 9, 0, 8, 4, 0, 2, 6, 5, faults=(), slow=())
    assert (
        ", 0 copies by descriptors, 2 loads from other thread blocks of a cluster; 6"
    ) in text_of([kernel])


def test_module_runs_itself(module: Path):
    done = run_python([module])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("right: largest relative error ")


def test_infinite_numbers_are_no_warnings(tmp_path: Path):
    path, tensor = tmp_path / "infinite.py", "tensor<5xf32, #compound.dims<M>>"
    text = f"""
    func.func @infinite(%x: {tensor}) -> {tensor} {{
      %none = compound.map sub %x, %x : {tensor}, {tensor} -> {tensor}
      %y = compound.map div %x, %none : {tensor}, {tensor} -> {tensor}
      func.return %y : {tensor}
    }}"""
    path.write_text(emitted(text, f"{hardware('h200x1.yaml')},triton-distributed"))
    done = run(path, "--backend", "interpreter")
    assert done.stdout.startswith("right: ")
    assert not done.stderr


@one_of(2)
@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("x.sum(axis=1)", "x.max(axis=1)", float),
        ("x_tile - mt[:, None]", "x_tile / 0.0", type(None)),
    ],
)
def test_wrong_result_fails(
    module: Path, tmp_path: Path, old: str, new: str, error: type
):
    source = module.read_text()
    assert old in source
    path = tmp_path / "wrong.py"
    path.write_text(source.replace(old, new))
    done = run(path, "--check", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["ok"] is False
    assert isinstance(report["max_error"], error)
    assert as_text(report).startswith("WRONG: ")


@one_of(2)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "defines no PROGRAM; emit one with -t triton"),
        ("x = (\n", "bad.py:1 is not Python: '(' was never closed"),
        (
            "import no_such_package\n",
            "needs the package no_such_package, which is not installed; install "
            "comet-compiler[run]",
        ),
    ],
)
def test_bad_module_is_one_sentence(tmp_path: Path, text: str, message: str):
    path = tmp_path / "bad.py"
    path.write_text(text)
    done = run(path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("comet-run: error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def exit_code(arguments: list[str]) -> object:
    try:
        return command.main(arguments)
    except SystemExit as ended:  # the parser of the flags
        return ended.code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py"], "there is no file nowhere.py"),
        (["--seed", "-1"], "--seed -1 is negative"),
        (["--ranks", "4"], "--ranks 4: the module was compiled for 1 rank"),
        (
            ["--backend", "gpus"],
            "--backend gpus is unknown; choose interpreter or scheduler or gpu",
        ),
        (["--backend", "gpu"], "--backend gpu: this machine has no GPU"),
        (["--bench"], "--bench measures on a GPU only"),
        (["--compile", "sm_80"], "--compile sm_80 is unknown; choose sm_90 or gfx942"),
        (["--bench", "--compile", "sm_90"], "--compile runs nothing, so --bench means"),
        (["--seed", "x"], "argument --seed: invalid int value: 'x'; see comet-run "),
        (["--compile"], "argument --compile: expected at least one argument; see "),
    ],
)
def test_bad_arguments_are_one_sentence(
    module: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
):
    monkeypatch.setattr(command, "has_gpu", lambda: False)
    given = arguments if arguments[0] == "nowhere.py" else [str(module), *arguments]
    assert exit_code(given) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"comet-run: error: {message}")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "gpu", "message"),
    [
        (["--ranks", "3"], False, "--ranks 3: the module was compiled for 4 ranks"),
        (
            ["--backend", "gpus"],
            False,
            "--backend gpus is unknown; choose scheduler or processes or virtual or "
            "gpu or distributed",
        ),
        (
            ["--backend", "interpreter"],
            False,
            "--backend interpreter: MODULE is for several ranks; choose scheduler or ",
        ),
        (
            ["--backend", "gpu"],
            False,
            "--backend gpu: this machine has no GPU; use --backend scheduler",
        ),
        (
            ["--backend", "distributed"],
            False,
            "--backend distributed: this machine has no GPU; use --backend scheduler",
        ),
        (
            ["--backend", "distributed"],
            True,
            "--backend distributed needs a process for each rank; type: torchrun "
            "--nproc-per-node 4 MODULE --backend distributed",
        ),
        (
            ["--backend", "gpu", "--resident", "2"],
            True,
            "--resident limits scheduler and processes and virtual, not --backend gpu",
        ),
        (
            ["--backend", "scheduler", "--graph"],
            False,
            "--graph is for several ranks with --backend virtual or gpu or distributed",
        ),
        (
            ["--graph", "--epochs", "1"],
            True,
            "--graph replays from the second launch on; give --epochs 2 or more",
        ),
        (["--bench"], True, "--bench is for one rank; benchmarks/gpu.py times"),
        (
            ["--compile", "sm_90", "--backend", "processes"],
            False,
            "--compile is for the launches of --backend gpu or distributed, not",
        ),
    ],
)
def test_bad_arguments_for_several_ranks_are_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    gpu: bool,
    message: str,
):
    path = tmp_path / "module.py"
    path.write_text("PROGRAM = RankProgram(\n    plan=Plan,\n    ranks=4,\n)\n")
    monkeypatch.setattr(command, "has_gpu", lambda: gpu)
    monkeypatch.delenv("RANK", raising=False)
    assert command.main([str(path), *arguments]) == 1
    error = capsys.readouterr().err
    message = message.replace("MODULE", str(path))
    assert error.startswith(f"comet-run: error: {message}")
    assert error.count("\n") == 1


def test_only_rank_0_prints(monkeypatch: pytest.MonkeyPatch):
    printed: list[bool] = []
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        printed += [prints(Request("k.py", each)) for each in ("distributed", "gpu")]
    assert printed == [True, True, False, True]


def test_other_files_are_not_modules(tmp_path: Path):
    path = tmp_path / "module.mlir"
    path.write_text("builtin.module {}")
    done = run(path)
    assert done.returncode == 1
    assert "is not a Python file; emit one with -t triton" in done.stderr


@one_of(2)
@pytest.mark.parametrize("traced", [False, True])
def test_failing_kernel_is_one_sentence(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, traced: bool
):
    path = tmp_path / "crash.py"
    source = module.read_text()
    first = "mean = torch.empty("
    assert source.count(first) == 1
    path.write_text(source.replace(first, f"raise KeyError('nothing')\n    {first}"))
    if traced:
        monkeypatch.setenv("COMET_TRACEBACK", "1")
    done = run(path, "--json")
    assert done.returncode == 1
    assert ("Traceback" in done.stderr) == traced
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"comet-run: error: {path}:")
    assert "fails with KeyError: 'nothing'; set COMET_TRACEBACK=1" in last


def test_gpu_without_torch_for_it_is_one_sentence():
    if torch.cuda.is_available():
        pytest.skip("torch can use the GPU here")
    with pytest.raises(ValueError, match="this torch cannot use the GPU"):
        expect_gpu()


def test_bench_on_the_interpreter_is_refused(
    module: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(command, "has_gpu", lambda: True)
    arguments = [str(module), "--bench", "--backend", "interpreter"]
    assert command.main(arguments) == 1


def test_text_for_people():
    facts: dict[str, object] = {
        "ok": False,
        "max_error": None,
        "tolerance": 0.01,
        "backend": "gpu",
        "seed": 2,
        "seconds": 1.0,
        "microseconds": 12.5,
    }
    assert as_text(facts) == (
        "WRONG: largest relative error not finite, tolerance 0.01 "
        "(gpu, seed 2, 1.00 s); 12.50 us per call"
    )


def test_the_seconds_of_several_launches_are_those_of_one():
    facts = {"ok": True, "max_error": 0.001, "tolerance": 0.01, "ranks": 2}
    facts |= {"backend": "scheduler", "seed": 0, "seconds": 1.5, "epochs": 5}
    assert as_text(facts).endswith("(2 ranks, scheduler, seed 0, 1.50 s a launch)")


def test_a_gpu_is_known_by_its_device_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    device = tmp_path / "nvidiactl"
    monkeypatch.setattr(command, "DEVICE_FILES", (str(device),))
    assert not command.has_gpu()
    device.touch()
    assert command.has_gpu()
