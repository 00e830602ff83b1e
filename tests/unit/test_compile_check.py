"""Compiling emitted kernels for GPUs that are not there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from triton_modules import LOWER, compile_all, emitted
from triton_schedules import schedule

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


def test_spills_are_seen(tmp_path: Path):
    """A block far too large for the registers of one warp."""
    sizes, tiles = {"M": 512, "N": 256}, {"M": 256, "N": 128}
    source = emitted(schedule("welford", sizes, tiles), LOWER)
    greedy, changed = re.subn(r"num_warps=\d+", "num_warps=1", source)
    assert changed
    usage = compile_all({"greedy": greedy}, tmp_path)
    spilled = {kernel["target"] for kernel in usage if kernel["spills"]}
    assert spilled == {"sm_90", "gfx942"}
    assert all(bool(kernel["slow"]) == bool(kernel["spills"]) for kernel in usage)


def test_interpreting_process_is_refused(tmp_path: Path):
    environment = dict(os.environ, TRITON_INTERPRET="1")
    done = subprocess.run(
        [sys.executable, "-m", "comet.runtime.compile_check", "module.py"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "compile_check: error: TRITON_INTERPRET is set\n"


def test_one_json_object_a_line(tmp_path: Path):
    path = tmp_path / "module.py"
    path.write_text(emitted(schedule("welford", SIZES, TILES), LOWER))
    done = subprocess.run(
        [sys.executable, "-m", "comet.runtime.compile_check", str(path)],
        env=dict(os.environ, TRITON_INTERPRET="0"),
        capture_output=True,
        text=True,
        check=True,
    )
    keys = ["module", "kernel", "target", "registers", "spills", "shared"]
    keys += ["matrix", "programs", "resident", "faults", "slow"]
    assert [list(json.loads(line)) for line in done.stdout.splitlines()] == [keys] * 2
