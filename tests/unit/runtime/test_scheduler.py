"""Several ranks in one process: right programs are right, broken ones are noticed."""

import math
import re
from collections.abc import Mapping

import pytest
from rank_scenarios import SEEDS, Outcome, play
from shim_mutations import MUTATIONS

RIGHT = (
    "ping-pong",
    "long ping-pong",
    "gather",
    "pull",
    "gemm",
    "parts",
    "counted",
    "launches",
    "plain interpreter",
    "aligned rebase",
    "gather, 1 rank",
    "gather, 4 ranks, 5 epochs",
    "gemm, 4 ranks",
    "atomics",
    "atomics, 1 rank",
    "parts, little room",
    "consumer first",
)
MANY_SEEDS = ("ping-pong", "gather", "pull", "gemm", "parts", "counted", "launches")
RACES = {
    "count too low": ("recv", "push_all_gather"),
    "one buffer": ("recv", "push_all_gather"),
    "relaxed": ("recv", "push_all_gather"),
    "gpu scope": ("recv", "push_all_gather"),
    "without barrier": ("recv", "push_all_gather"),
    "pull without wait": ("staged", "pull_when_ready"),
    "parts too few": ("recv", "receive_parts"),
}
DEADLOCKS = {
    "missing signal": "flags[0] of rank 0 to reach 1; it is 0",
    "count too high": "flags[0] of rank 0 to reach 2; it is 1",
    "wait before own produce": "flags[0] of rank 0 to reach 1; it is 0",
    "parts too many": "counts[0] of rank 0 to reach 3; it is 2",
    "consumer first, little room": "counts[0] of rank 0 to reach 2; it is 0",
    "spin": "reads flag[0] of rank 0 again and again",
    "early return": "rank 1, the host, host: waits at barrier 1 for rank 2",
}
ERRORS = {
    "out of bounds": ("ProgramError", r"store_at, .*write out of bounds"),
    "private memory": ("ProgramError", r"tensor belongs to rank 1 alone"),
    "raising kernel": ("ProgramError", r"rank_kernels.py:\d+: .*divide by zero"),
    "misaligned rebase": (
        "ProgramError",
        r"store_rebased, .*rebase: the pointer is less aligned",
    ),
    "unequal heaps": ("SymmetryError", r"rank 0 .* shape \(8,\) .* rank 2 .*\(9,\)"),
    "unequal counts": ("SymmetryError", r"rank 0 .* 1 tensors, rank 1 2;"),
    "failing host": ("ValueError", r"the input of rank 1 is empty"),
    "full heap": ("MemoryError", r"give it at least 4194304"),
    "no room": ("ValueError", r"resident=0: at least 1 program has to run"),
    "no kernel": ("ValueError", r"is no kernel of Triton's interpreter"),
}
OTHERS = (
    "one buffer, unwatched",
    "allocate without barrier",
    "same seed",
    "other seeds",
)


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, Outcome]:
    """Run all scenarios in one process."""
    return play([*RIGHT, *RACES, *DEADLOCKS, *ERRORS, *OTHERS, *MUTATIONS])


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_are_right(name: str, outcomes: Mapping[str, Outcome]):
    outcome = outcomes[name]
    assert outcome.error == "", outcome.message
    if name in MANY_SEEDS:
        assert len(outcome.result) == len(SEEDS)
    assert max(outcome.result) <= 1e-4


@pytest.mark.parametrize("name", RACES)
def test_races_are_found_with_every_seed(name: str, outcomes: Mapping[str, Outcome]):
    buffer, kernel = RACES[name]
    outcome = outcomes[name]
    assert outcome.error == "RaceError", outcome.result
    head, *operations = outcome.message.splitlines()
    assert re.fullmatch(
        rf"race on {buffer}\[\d+:\d+\] of rank \d "
        r"\(addresses 0x[0-9a-f]+ to 0x[0-9a-f]+\):",
        head,
    )
    programs: set[str] = set()
    for operation in operations[:2]:
        found = re.fullmatch(
            r"  (?:read|write) by (rank \d, \w+, program \(\d, 0, 0\)), "
            r"rank_kernels.py:\d+",
            operation,
        )
        assert found is not None, operation
        programs.add(found[1])
    assert kernel in "".join(programs)
    assert len(programs) == 2


@pytest.mark.parametrize("name", DEADLOCKS)
def test_deadlocks_say_who_waits_for_what(name: str, outcomes: Mapping[str, Outcome]):
    outcome = outcomes[name]
    assert outcome.error == "DeadlockError", outcome.result
    assert outcome.message.startswith("deadlock: no program can go on\n  rank 0, ")
    assert DEADLOCKS[name] in outcome.message


def test_a_deadlock_names_kernel_program_and_line(outcomes: Mapping[str, Outcome]):
    lines = outcomes["missing signal"].message.splitlines()
    assert len(lines) == 1 + 4  # two programs on each of two ranks
    assert re.fullmatch(
        r"  rank 1, push_all_gather, program \(1, 0, 0\), rank_kernels.py:\d+: "
        r"waits for flags\[3\] of rank 1 to reach 1; it is 0",
        lines[-1],
    )


def test_a_deadlock_names_what_had_no_room(outcomes: Mapping[str, Outcome]):
    message = outcomes["consumer first, little room"].message
    assert "send_parts, program (0, 0, 0)" in message
    assert "has no room yet, nor have 1 after it" in message


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_where(name: str, outcomes: Mapping[str, Outcome]):
    error, pattern = ERRORS[name]
    assert outcomes[name].error == error
    assert re.search(pattern, outcomes[name].message), outcomes[name].message


def test_seeds_reach_what_the_race_spoils(outcomes: Mapping[str, Outcome]):
    """
    The interleavings are wild enough to make a single receive buffer give wrong values.
    """
    worst = outcomes["one buffer, unwatched"].result
    assert sum(error >= 1000.0 for error in worst) > len(SEEDS) / 2


def test_allocations_need_a_barrier(outcomes: Mapping[str, Outcome]):
    """A peer may touch an allocation before it is there, or before it is zero."""
    outcome = outcomes["allocate without barrier"]
    assert outcome.error in ("RaceError", "ProgramError"), outcome.result


def test_a_seed_decides_the_interleaving(outcomes: Mapping[str, Outcome]):
    first, again = outcomes["same seed"].result
    assert first == again
    assert not math.isnan(first)
    assert len(set(outcomes["other seeds"].result)) > len(SEEDS) / 2


@pytest.mark.parametrize("name", MUTATIONS)
def test_no_safeguard_of_the_shim_can_go(name: str, outcomes: Mapping[str, Outcome]):
    """Without it, programs that are right are reported, or give wrong results."""
    outcome = outcomes[name]
    if not outcome.error:
        assert max(outcome.result) > 1e-4
    assert outcome.error in ("", "RaceError", "DeadlockError")
