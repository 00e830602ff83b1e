"""One process for each rank, over shared memory."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from covering import EVERY_CASE
from rank_scenarios import Outcome, play

FURTHER = ("gather", "parts", "counted")
"""They exchange as the others do."""
RIGHT = ("ping-pong", "pull", "gemm", "atomics", *(FURTHER if EVERY_CASE else ()))
ERRORS = {
    "missing signal": ("DeadlockError", "no rank could go on for 1 s"),
    "unequal heaps": ("SymmetryError", "the heaps of ranks 0 and 1 differ"),
    "failing host": ("ValueError", "the input of rank 1 is empty"),
    "early return": ("DeadlockError", "rank 0, the host, host: waits for rank 1"),
}


def shared_folders() -> set[Path]:
    """Return the folders in shared memory that processes of this user have made."""
    found = Path("/dev/shm").glob("comet-*")
    return {path for path in found if path.stat().st_uid == os.getuid()}


BEFORE = shared_folders()
"""What processes that were killed have left behind."""


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, Outcome]:
    """Run all scenarios, one after another."""
    names = [*RIGHT, *ERRORS]
    played = play(f"processes: {name}" for name in names)
    return dict(zip(names, played.values(), strict=True))


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_are_right(name: str, outcomes: Mapping[str, Outcome]):
    outcome = outcomes[name]
    assert outcome.error == "", outcome.message
    assert len(outcome.result) >= 2
    assert max(outcome.result) <= 1e-4


@pytest.mark.parametrize("name", ERRORS)
def test_errors_reach_the_caller(name: str, outcomes: Mapping[str, Outcome]):
    error, text = ERRORS[name]
    assert outcomes[name].error == error
    assert text in outcomes[name].message


def test_an_attached_rank_runs_one_host_program_after_another():
    (outcome,) = play(["attached"]).values()
    assert outcome.error == "", outcome.message
    assert len(outcome.result) == 3
    assert max(outcome.result) <= 1e-4


def test_a_deadlock_names_the_programs_of_all_ranks(outcomes: Mapping[str, Outcome]):
    message = outcomes["missing signal"].message
    for rank, flag in ((0, 2), (1, 3)):
        assert (
            f"rank {rank}, push_all_gather, program (1, 0, 0), rank_kernels.py:"
        ) in message
        assert f"waits for flags[{flag}] of rank {rank} to reach 1; it is 0" in message


@pytest.mark.usefixtures("outcomes")
def test_no_shared_memory_is_left_behind():
    assert not shared_folders() - BEFORE
