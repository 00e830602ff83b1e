"""Compiling emitted kernels for GPUs that are not there."""

import json
import re
from pathlib import Path

import pytest
from covering import exhaustive, one_of
from gpu_ranks import H200X8, SHARED_TEXTS
from torch_python import run_python
from triton_modules import LOWER, compile_all, emitted
from triton_schedules import schedule

from comet.runtime.coresidency import DEVICES

SIZES = {"M": 64, "N": 96, "K": 64}
TILES = {"M": 32, "N": 32, "K": 32}


def test_every_launch_is_compiled_for_every_target(tmp_path: Path):
    source = emitted(schedule("two_kernels", SIZES, TILES), LOWER)
    usage = compile_all({"functions": source}, tmp_path)
    assert [(kernel["kernel"], kernel["target"]) for kernel in usage] == [
        (kernel, target)
        for kernel in ("functions_c_kernel", "functions_y_kernel")
        for target in ("sm_90", "gfx942")
    ]
    for kernel in usage:
        assert isinstance(kernel["registers"], int)
        assert 0 < kernel["registers"] <= 512
        assert kernel["spills"] == 0
    assert usage[0]["shared"] != 0


@one_of(2)
@pytest.mark.parametrize(("target", "rows"), [("sm_90", 128), ("gfx942", 256)])
def test_spills_are_seen(target: str, rows: int, tmp_path: Path):
    """The smallest block that is too large for the registers of one warp."""
    sizes, tiles = {"M": 2 * rows, "N": 256}, {"M": rows, "N": 128}
    source = emitted(schedule("welford", sizes, tiles), LOWER)
    greedy, changed = re.subn(r"num_warps=\d+", "num_warps=1", source)
    assert changed
    (usage,) = compile_all({"greedy": greedy}, tmp_path, target)
    assert (usage["target"], bool(usage["spills"])) == (target, True)
    assert usage["slow"]


@exhaustive
def test_the_launches_of_one_gpu_hold_the_programs_of_all_ranks(tmp_path: Path):
    options = "triton-distributed{ranks=3 pattern=push}"
    text = SHARED_TEXTS["ag_gemm"].format(M=32, N=48, K=48)
    path = tmp_path / "module.py"
    path.write_text(emitted(text, f"{H200X8},{options}"))
    command = ["-m", "comet.tools.comet_run", path, "--json"]
    command += ["--compile", "sm_90"]
    programs: list[list[int]] = []
    for together in ([], ["--backend", "gpu"]):
        done = run_python([*command, *together])
        assert done.returncode == 0, done.stderr
        kernels = json.loads(done.stdout)["kernels"]
        assert not any(kernel["faults"] for kernel in kernels)
        assert all(kernel["resident"] % 132 == 0 for kernel in kernels)
        programs.append([kernel["programs"] for kernel in kernels])
    alone, all_ranks = programs
    assert all_ranks == [3 * count for count in alone]


def test_launches_know_which_tensors_take_less_than_two_gigabytes(tmp_path: Path):
    """Triton asks of AMD GPUs, which have shorter addresses for them."""
    sizes = {"M": 65536, "N": 96, "K": 32768}
    path = tmp_path / "module.py"
    path.write_text(emitted(schedule("two_kernels", sizes, TILES), LOWER))
    script = (
        "import sys; from comet.runtime.compile_check import recorded_launches\n"
        "for launch in recorded_launches(sys.argv[1]):\n"
        "    print(*(p for p in launch.kernel.arg_names if p in launch.small))"
    )
    done = run_python(["-c", script, path], {"TRITON_INTERPRET": "0"})
    assert done.returncode == 0, done.stderr
    first, second = (line.split() for line in done.stdout.splitlines())
    assert first == ["b_ptr", "c_ptr"]
    assert second == ["c_ptr", "scale_ptr", "y_ptr"]


def test_programs_share_a_multiprocessor_until_something_runs_out():
    """Figures of NVIDIA's occupancy calculator, and by hand for CDNA 3."""
    h200, mi300 = DEVICES["sm_90"], DEVICES["gfx942"]
    assert h200.programs_with(warps=4, registers=32, shared=0) == 16
    assert h200.programs_with(warps=4, registers=128, shared=0) == 4
    assert h200.programs_with(warps=1, registers=32, shared=0) == 32
    assert h200.programs_with(warps=4, registers=32, shared=100 * 1024) == 2
    assert h200.programs_with(warps=8, registers=255, shared=147456) == 1
    assert h200.programs_with(warps=4, registers=32, shared=228 * 1024) == 0
    assert h200.resident(warps=8, registers=255, shared=147456) == 132
    assert mi300.programs_with(warps=4, registers=64, shared=0) == 8
    assert mi300.programs_with(warps=4, registers=256, shared=0) == 2
    assert mi300.programs_with(warps=4, registers=64, shared=20 * 1024) == 3
    assert mi300.programs_with(warps=1, registers=64, shared=0) == 16
