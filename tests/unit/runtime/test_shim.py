"""What the device functions become on GPUs that need not be there."""

import json
import os
from collections.abc import Mapping

import pytest
from paths import SUPPORT
from torch_python import run_python

SIGNALS = {
    "ping_pong": 2,
    "push_all_gather": 1,
    "pull_when_ready": 1,
    "push_gemm": 1,
    "send_parts": 1,
    "counted_gather": 1,
}
"""The kernels that signal, and how often at least."""
WAITS = (
    "ping_pong",
    "push_all_gather",
    "pull_when_ready",
    "push_gemm",
    "receive_parts",
    "counted_gather",
)
RELEASE = {"sm_90": ".sys.release.", "gfx942": "buffer_wbl2 sc0 sc1"}
STORE = {"sm_90": "st.global", "gfx942": "global_store"}
BARRIER = {"sm_90": "bar.sync", "gfx942": "s_barrier"}
TARGETS = sorted(STORE)

Compiled = Mapping[tuple[str, str], list[str]]
"""The memory operations of each kernel on each target, in order."""


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    """Compile all kernels in a process that does not interpret."""
    paths = [str(SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"TRITON_INTERPRET": "0", "PYTHONPATH": os.pathsep.join(paths)}
    done = run_python([SUPPORT / "rank_compile.py"], environment)
    assert done.returncode == 0, done.stderr
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        (entry["kernel"], entry["target"]): entry["operations"] for entry in entries
    }


def since_last_store(operations: list[str], target: str, index: int) -> list[str]:
    """Return what comes between an operation and the last store before it."""
    start = index
    while start > 0 and not operations[start - 1].startswith(STORE[target]):
        start -= 1
    return operations[start:index]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", SIGNALS)
def test_a_barrier_is_before_each_release(kernel: str, target: str, compiled: Compiled):
    operations = compiled[kernel, target]
    releases = [i for i, op in enumerate(operations) if RELEASE[target] in op]
    assert len(releases) >= SIGNALS[kernel]
    for index in releases:
        assert BARRIER[target] in since_last_store(operations, target, index)


@pytest.mark.parametrize(
    "kernel", ["push_all_gather", "push_gemm", "send_parts", "counted_gather"]
)
def test_amd_waits_for_pushed_data_before_the_barrier(kernel: str, compiled: Compiled):
    operations = compiled[kernel, "gfx942"]
    for index, operation in enumerate(operations):
        if operation == RELEASE["gfx942"]:
            between = since_last_store(operations, "gfx942", index)
            waits = [op.startswith("s_waitcnt vmcnt(0)") for op in between]
            assert any(waits[: between.index("s_barrier")])


@pytest.mark.parametrize("kernel", WAITS)
def test_waits_acquire_from_the_whole_system(kernel: str, compiled: Compiled):
    nvidia, amd = (compiled[kernel, target] for target in ("sm_90", "gfx942"))
    loads = [i for i, op in enumerate(nvidia) if ".acquire." in op]
    assert loads
    for index in loads:
        assert ".sys.acquire." in nvidia[index]
        assert nvidia[index + 1] == "bar.sync"
    assert "buffer_inv sc0 sc1" in amd


@pytest.mark.parametrize("kernel", WAITS)
def test_nothing_polls_with_a_plain_load(kernel: str, compiled: Compiled):
    assert not any("volatile" in op for op in compiled[kernel, "sm_90"])


def test_rebased_blocks_are_stored_as_vectors(compiled: Compiled):
    """A block after a rebased scalar keeps its alignment."""
    stores = [
        op for op in compiled["push_gemm", "sm_90"] if op.startswith("st.global.")
    ]
    assert any(".v4." in op for op in stores), stores


def test_a_hint_makes_loads_from_peers_vectors(compiled: Compiled):
    loads = [
        op
        for op in compiled["pull_when_ready", "sm_90"]
        if op.startswith("ld.global.v4")
    ]
    assert len(loads) >= 2  # the own shard, and the peers'
