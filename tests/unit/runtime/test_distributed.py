"""A process for each rank under torchrun, and what can be known of it without GPUs."""

import inspect
import json
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed._symmetric_memory as symmetric
from gpu_ranks import H200X8, SHARED_TEXTS
from paths import SUPPORT
from torch_python import run_python
from triton_modules import emitted

from comet.runtime.distributed import Process, own_gpu, this_process
from comet.runtime.peer_memory import IrisMemory, peer_memory

PATTERNS = ("bsp", "pull", "push", "pull inputs=symmetric")
SIZES = {"M": 5, "N": 7, "K": 6}
SCRIPT = SUPPORT / "distributed_ranks.py"


def test_torchrun_with_stand_ins_for_symmetric_memory(tmp_path: Path) -> None:
    """The libraries are played by files that the processes share; the rest is ours."""
    paths: list[str] = []
    for pattern in PATTERNS:
        options = f"triton-distributed{{ranks=2 pattern={pattern}}}"
        text = SHARED_TEXTS["ag_gemm"].format(**SIZES)
        path = tmp_path / f"{pattern}.py"
        path.write_text(emitted(text, f"{H200X8},{options}"))
        paths.append(str(path))
    torchrun = ["-m", "torch.distributed.run", "--standalone"]
    done = run_python(
        [*torchrun, "--nproc-per-node", "2", SCRIPT, tmp_path, *paths],
        {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["right"] == {
        f"{library}, {pattern}": True
        for library in ("torch", "iris")
        for pattern in PATTERNS
    }
    assert found["unequal"].startswith("the heaps of ranks 0 and 1 differ; every rank")


def test_torch_has_what_is_called() -> None:
    assert {"dtype", "device"} <= set(inspect.signature(symmetric.empty).parameters)
    assert list(inspect.signature(symmetric.rendezvous).parameters) == [
        "tensor",
        "group",
    ]
    handle = vars(symmetric)["_SymmetricMemory"]
    assert isinstance(inspect.getattr_static(handle, "buffer_ptrs"), property)
    assert "channel: " in handle.barrier.__doc__


def started(monkeypatch: pytest.MonkeyPatch, rank: int, world: int) -> None:
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", str(world))
    monkeypatch.setenv("LOCAL_RANK", str(rank % 2))


def test_the_environment_says_which_rank_this_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started(monkeypatch, rank=3, world=4)
    assert this_process(4) == Process(rank=3, world=4, local_rank=1)


def test_other_numbers_of_processes_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started(monkeypatch, rank=0, world=2)
    message = (
        "torchrun started 2 processes, but the module was compiled for 4 ranks; use "
        "--nproc-per-node 4"
    )
    with pytest.raises(ValueError, match=message):
        this_process(4)


def test_a_rank_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    message = "rank 5 has no GPU, since this machine has 2; use --backend gpu"
    with pytest.raises(ValueError, match=message):
        own_gpu(Process(rank=5, world=8, local_rank=5), 1024)


def test_amd_gpus_take_iris(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "7.0")
    monkeypatch.setitem(sys.modules, "iris", None)
    with pytest.raises(ValueError, match="on AMD GPUs needs the package iris of ROCm"):
        peer_memory(1024, torch.device("cuda", 0))
    assert IrisMemory.write_through == ".wt"
