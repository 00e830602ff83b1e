"""Groups of programs on several ranks, which exchange with each other: scheduler."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from covering import EVERY_CASE, one_of, some
from group_programs import Mutation, grouped, run_mutations
from rank_runs import outcomes_in
from triton_modules import compile_all

FURTHER = {"layernorm": ("layernorm", 2, "", 2), "rmsnorm": ("rmsnorm", 2, "", 4)}
PROGRAMS = {
    "softmax": ("softmax", 3, "", 2),
    **(FURTHER if EVERY_CASE else {}),
    "turns": (
        "softmax",
        2,
        'factors="p: M=1 warps=4 stages=2 group=1; p_m: M=3"',
        2,
    ),
    "rows over ranks": ("softmax", 2, 'dim="M:rank;N:cta"', 2),
}
SIGNAL = """signal_all(
            m_of_ranks_flags_ptr + (rank * 3 + start_m // 16),
            epoch,
            rank,
            heap_bases,
            WORLD,
        )"""
WAIT = "wait_all(m_of_ranks_flags_ptr + start_m // 16, epoch, 3, WORLD)"
OWN_WAIT = "wait_programs(m_flags_ptr + start_m // 16, awaited)"
MUTATIONS: Mapping[str, Mutation] = {
    "no wait for ranks": (WAIT, "pass", {"RaceError"}),
    "no wait for programs": (OWN_WAIT, "pass", {"RaceError"}),
    "no signal": (SIGNAL, "pass", {"DeadlockError"}),
    "every program sends": ("if is_root:", "if cta >= 0:", {"RaceError"}),
    "the last program sends": (
        "is_root = cta == 0",
        "is_root = cta == CTAS",
        {"DeadlockError"},
    ),
    "relaxed": (
        SIGNAL,
        "for dest in range(WORLD):\n"
        "            tl.atomic_xchg(rebase(m_of_ranks_flags_ptr + (rank * 3 + start_m "
        "// 16), rank, dest, heap_bases, 4), epoch, sem='relaxed', scope='sys')",
        {"RaceError"},
    ),
    "the scope of one GPU": (
        SIGNAL,
        "for dest in range(WORLD):\n"
        "            tl.atomic_xchg(rebase(m_of_ranks_flags_ptr + (rank * 3 + start_m "
        "// 16), rank, dest, heap_bases, 4), epoch, sem='release', scope='gpu')",
        {"RaceError"},
    ),
    "one slot": ("slot = epoch % 2", "slot = epoch * 0", {"RaceError", "wrong result"}),
    "the epoch before": (
        WAIT,
        WAIT.replace("epoch", "epoch - 1"),
        {"RaceError"},
    ),
    "the flags of another block": (
        WAIT,
        WAIT.replace("start_m // 16", "0"),
        {"RaceError"},
    ),
}
TRIED = dict(some(MUTATIONS.items(), 3))
RIGHT = some(PROGRAMS, 2)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Run the programs, right and mutated, in one child process."""
    sources = {name: grouped(*PROGRAMS[name]) for name in RIGHT}
    folder = tmp_path_factory.mktemp("modules")
    return run_mutations(sources, "softmax", TRIED, folder)


@pytest.mark.parametrize("name", RIGHT)
def test_groups_that_exchange_with_other_ranks_are_right(
    name: str, found: Mapping[str, str]
):
    assert found[name] == "right"


@pytest.mark.parametrize("name", TRIED)
def test_without_a_safeguard_they_are_not(name: str, found: Mapping[str, str]):
    assert found[name] in MUTATIONS[name][2]


@one_of(2)
@pytest.mark.parametrize(
    "name", ["softmax", "turns", *(["layernorm"] if EVERY_CASE else [])]
)
def test_a_group_of_each_rank_is_enough_and_one_program_less_is_not(
    name: str, tmp_path: Path
):
    how = PROGRAMS[name]
    source, ctas = {"module": grouped(*how)}, how[1]
    assert outcomes_in(source, tmp_path, [(3, ctas)]) == {"module": "right"}
    assert outcomes_in(source, tmp_path, [(3, ctas - 1)]) == {"module": "DeadlockError"}


def test_compiled_kernels_have_flags_of_both_scopes(tmp_path: Path):
    kernels = compile_all({"softmax": grouped("softmax", 3, ranks=2)}, tmp_path)
    assert [kernel["faults"] for kernel in kernels] == [[], []]
