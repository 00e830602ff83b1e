"""benchmarks/gpu.py: every step at tiny sizes, where there is no compiler."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import gpu
import gpu_cases
import pytest
from covering import EVERY_CASE, exhaustive
from gpu_cases import TINY
from gpu_emit import emitted_program, file_of
from gpu_programs import of_one_rank
from gpu_run.case import MODULES, manifest_in
from gpu_run.results import is_lost, is_wrong, results_in
from torch_python import run_python

COMPILER = re.compile(r"(?:from|import) (?:xdsl|yaml|comet\.(?!runtime)\w+)")
"""Imports that need the compiler."""

MISSING = 'raise ImportError("this machine has no compiler")\n'

FEW = ("gemm_softmax",)
"""Samples whose kernels are checked; `make exhaustive` checks those of all samples."""
CASES = (
    replace(TINY, in_all_forms=(*TINY.in_all_forms, "gemm_softmax", "attention_causal"))
    if EVERY_CASE
    else replace(
        TINY,
        squares=(16,),
        row_samples=(),
        tokens=(),
        attention=(),
        decode=(),
        element_types=(),
        in_all_forms=(),
        ranked=(),
        shared=replace(TINY.shared, columns=16, depth=32),
        ladder_rows=(8,),
        ladder_decode=(),
        checked={},
    )
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a part of the tiny cases; `make exhaustive` has more."""
    path = tmp_path_factory.mktemp("gpu") / "cases"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_cases, "TINY", CASES)
        if not EVERY_CASE:
            patch.setattr(gpu_cases, "SAMPLES", FEW)
        assert gpu.main(["emit", str(path), "--dry-run", "--jobs", "1"]) == 0
    return path


@pytest.fixture(scope="module")
def results(folder: Path) -> Path:
    """Run the cases in a process that can import neither xDSL nor yaml."""
    blocked = folder.parent / "blocked"
    for package in ("xdsl", "yaml"):
        (blocked / package).mkdir(parents=True)
        (blocked / package / "__init__.py").write_text(MISSING)
    environment = {"PYTHONPATH": str(blocked), "OMP_NUM_THREADS": "1"}
    path = folder.parent / "R.json"
    command = [folder / "run.py", "--dry-run", "--out", path]
    done = run_python(command, environment, folder.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return path


@exhaustive
def test_the_folder_needs_no_compiler(folder: Path) -> None:
    manifest = manifest_in(folder)
    assert manifest.tiny
    used = {file for case in manifest.cases for file in case.modules.values()}
    assert used == {path.name for path in (folder / MODULES).iterdir()}
    assert not [
        str(path) for path in folder.rglob("*.py") if COMPILER.search(path.read_text())
    ]


@exhaustive
def test_all_cases_are_done_and_right(results: Path) -> None:
    found = results_in(results)
    assert not found.pending(list(found.manifest.cases))
    assert not [
        id for id, each in found.done.items() if is_lost(each) or is_wrong(each)
    ]
    for case in found.manifest.cases:
        if case.modules and case.task == "time":
            alternatives = found.done[case.id].get("alternatives", {})
            assert all(alternatives[name].get("times") for name in case.modules)
            compared = [alternatives[name].get("ok") for name in case.modules]
            assert all(compared) or case.ranks > 1


ELSEWHERE = """
import sys
from pathlib import Path
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

class Absent:
    def get_current_target(self): return GPUTarget("cuda", 90, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device): return 0

driver.set_active(Absent())
from gpu_run.work import compile_module
print(*(compile_module(Path(path)) for path in sys.argv[1:]))
"""
"""Compiles modules as if there were a GPU."""


def test_modules_are_compiled_before_they_are_run(folder: Path) -> None:
    """Of one rank, and for all ranks together; with kernels in Triton's cache."""
    timed = [case for case in manifest_in(folder).cases if case.task == "time"]
    cases = {case.kind: case for case in timed if case.group != "candidates"}
    files = (cases["gemm"].modules["comet"], cases["ag_gemm"].modules["push"])
    paths = [str(folder / MODULES / file) for file in files]
    cache = folder.parent / "cache"
    environment = {
        "PYTHONPATH": str(folder),
        "TRITON_CACHE_DIR": str(cache),
        "TRITON_DEFAULT_FP_FUSION": "1",
        "TRITON_INTERPRET": "0",
    }
    done = run_python(["-c", ELSEWHERE, *paths], environment)
    assert done.stdout == "1 2\n", done.stderr
    assert len(list(cache.rglob("*.cubin"))) == 3


@exhaustive
def test_tables_of_a_dry_run(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["table", str(results)]) == 0
    text = capsys.readouterr().out
    assert "A dry run: interpreted at tiny sizes; its times mean nothing." in text
    assert "**0 lost, 0 wrong**, 0 not reached. Programs: 0 refused" in text
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles[:4] == ["Summary", "Goals", "Machine", "Correctness"]
    for op in ("gemm_softmax", "attention_causal", "flash_decode", "ag_gemm"):
        assert f"### {op}\n" in text
    assert "| grid_barrier_us | " in text
    assert re.search(r"^\| gemm \| 16x32x16 candidates \| 2 \|", text, re.MULTILINE)
    assert "| ag_gemm than bsp | 1 | 1.06 |" in text


@exhaustive
def test_a_record_says_how_each_module_is_compiled(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tiles and fusion as they were chosen give the same module without a search."""
    assert gpu.main(["record", str(results)]) == 0
    cases = {case["id"]: case for case in json.loads(capsys.readouterr().out)["cases"]}
    found = cases["speed/time/gemm/8x32x16"]
    times = {name: other for name, *other in found["times"]}
    assert [len(times[name]) for name in ("comet", "eager")] == [4, 2]
    manifest = manifest_in(results.parent / "cases").cases
    (case,) = (each for each in manifest if each.id == found["id"])
    program = of_one_rank("gemm", found["extents"], found["dtype"])
    for name, file in case.modules.items():
        compiler = replace(program.compiler, **found["options"], **times[name][-1])
        again = emitted_program(replace(program, compiler=compiler))
        assert file_of(again.text) == file


@exhaustive
def test_plots_need_matplotlib(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "gpu_plot", raising=False)
    assert gpu.main(["plot", str(results)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("gpu: error: matplotlib")
    assert error.endswith("is not installed; pip install comet-compiler[plot]\n")


def test_what_is_no_result_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "R.json"
    for text, reason in ((None, "cannot be read"), ("{", "is not JSON"), ("{}", "was")):
        if text is not None:
            path.write_text(text)
        assert gpu.main(["table", str(path)]) == 1
        assert f"gpu: error: {path} {reason}" in capsys.readouterr().err


def test_a_folder_with_other_things_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("dear")
    assert gpu.main(["emit", str(tmp_path), "--dry-run"]) == 1
    assert "has other things in it; name a new folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_folder_that_is_too_large_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import gpu_emit

    monkeypatch.setattr(gpu_emit, "LARGEST", 1000)
    emit = ["emit", str(tmp_path / "new"), "--dry-run", "--only", "machine"]
    assert gpu.main([*emit, "--jobs", "1"]) == 1
    assert "MB, more than 0; name fewer groups with" in capsys.readouterr().err


def test_the_manifest_is_what_was_asked_for(folder: Path) -> None:
    """Sizes, seeds, predictions and modules are all there, and ids are one each."""
    cases = json.loads((folder / "manifest.json").read_text())["cases"]
    assert len({case["id"] for case in cases}) == len(cases)
    assert len({case["seed"] for case in cases}) == len(cases)
    for case in cases:
        if case["group"] == "machine":
            continue
        assert case["extents"]
        assert case["modules"].keys() == case["predicted"].keys()
        assert case["modules"] or case["inapplicable"]
