"""Programs of one GPU that exchange in groups, on the scheduler."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from covering import EVERY_CASE, some
from group_programs import Mutation, grouped, run_mutations
from rank_runs import outcomes_in
from triton_modules import compile_all

from comet.runtime.gpu import Launcher
from comet.runtime.ranks import KernelCall

PROGRAMS = {
    "softmax": ("softmax", 3, ""),
    "layernorm": ("layernorm", 2, ""),
    **({"rmsnorm": ("rmsnorm", 4, "")} if EVERY_CASE else {}),
    "masked": ("masked", 3, ""),
    "two exchanges": ("softmax", 2, "stream=false"),
    "turns": ("softmax", 2, 'factors="p: M=1 warps=4 stages=2 group=1; p_m: M=3"'),
}
SIGNAL = "signal_programs(m_flags_ptr + start_m // 16)"
WAIT = "wait_programs(m_flags_ptr + start_m // 16, awaited)"
FLAG = "tl.atomic_add(m_flags_ptr + start_m // 16, 1, sem={}, scope={})"
MUTATIONS: Mapping[str, Mutation] = {
    "no wait": (WAIT, "pass", {"RaceError"}),
    "no signal": (SIGNAL, "pass", {"DeadlockError"}),
    "relaxed": (SIGNAL, FLAG.format('"relaxed"', '"gpu"'), {"RaceError"}),
    "the scope of one program": (
        SIGNAL,
        FLAG.format('"release"', '"cta"'),
        {"RaceError"},
    ),
    "signal before the stores": (
        "epoch = next_epoch(counters_ptr)",
        "epoch = next_epoch(counters_ptr)\n    signal_programs(m_flags_ptr + "
        "tl.program_id(0) // CTAS)",
        {"RaceError"},
    ),
    "a wait for the epoch before": (
        "awaited = epoch * 3",
        "awaited = (epoch - 1) * 3",
        {"RaceError"},
    ),
    "a wait for all but one": (
        "awaited = epoch * 3",
        "awaited = epoch * 3 - 1",
        {"RaceError"},
    ),
    "no epoch": ("awaited = epoch * 3", "awaited = 3", {"RaceError"}),
    "the flag of another block": (
        WAIT,
        WAIT.replace("start_m // 16", "0"),
        {"RaceError"},
    ),
    "one place for the values of all": (
        "m_message = m_recv_ptr + cta * M_ALL",
        "m_message = m_recv_ptr",
        {"RaceError", "wrong result"},
    ),
    "nobody ends the epoch": ("    finish_epoch(", "    pass  # (", {"RaceError"}),
}
TRIED = dict(some(MUTATIONS.items(), 2))
RIGHT = some(PROGRAMS, 2)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Run the programs, right and mutated, in one child process."""
    sources = {name: grouped(*PROGRAMS[name]) for name in RIGHT}
    folder = tmp_path_factory.mktemp("modules")
    return run_mutations(sources, "softmax", TRIED, folder)


@pytest.mark.parametrize("name", RIGHT)
def test_programs_that_exchange_are_right(name: str, found: Mapping[str, str]):
    assert found[name] == "right"


@pytest.mark.parametrize("name", TRIED)
def test_without_a_safeguard_they_are_not(name: str, found: Mapping[str, str]):
    assert found[name] in MUTATIONS[name][2]


@pytest.mark.parametrize(("name", "ctas", "options"), some(PROGRAMS.values(), 3))
def test_a_group_at_a_time_is_enough_and_one_less_is_not(
    name: str, ctas: int, options: str, tmp_path: Path
):
    source = {"module": grouped(name, ctas, options)}
    assert outcomes_in(source, tmp_path, [(3, ctas)]) == {"module": "right"}
    assert outcomes_in(source, tmp_path, [(3, ctas - 1)]) == {"module": "DeadlockError"}


UNEVEN = [(97, 3, 3, 48), (145, 2, 5, 80), (81, 2, 3, 48), (129, 3, 3, 48)]
"""Rows, groups of programs, blocks of 16 of each, and the rows of these."""


@pytest.mark.parametrize(("rows", "groups", "turns", "tile"), some(UNEVEN, 2))
@pytest.mark.parametrize("ranks", [1, 2])
def test_groups_of_uneven_rows_are_right(
    ranks: int, rows: int, groups: int, turns: int, tile: int, tmp_path: Path
):
    plan = f'factors="p: M={groups} warps=4 stages=2 group=1; p_m: M={turns}"'
    source = grouped("softmax", 2, plan, ranks, rows)
    assert f"start_m = pid * {tile}\n" in source
    rooms = [(seed, None) for seed in range(3)] + [(3, 2)]
    assert outcomes_in({"module": source}, tmp_path, rooms) == {"module": "right"}


def test_vectors_along_the_row_are_loaded_after_the_product():
    """Before the loop over rows, registers would hold them during the product."""
    _, product, after = grouped("layernorm", 2).partition("tl.dot(")
    assert product
    for name in "gh":
        assert f"{name}_tile = tl.load(" in after


def test_compiled_kernels_have_flags_of_gpu_scope(tmp_path: Path):
    source = grouped("softmax", 3)
    weak = source.replace(SIGNAL, FLAG.format('"relaxed"', '"gpu"'))
    assert weak != source
    found = compile_all({"right": source, "weak": weak}, tmp_path)
    right, other = found[:2], found[2:]
    assert [kernel["faults"] for kernel in right] == [[], []]
    assert all("is relaxed at scope gpu" in str(kernel["faults"]) for kernel in other)


def test_more_programs_than_a_gpu_runs_are_a_fault(tmp_path: Path):
    source = grouped("softmax", 3)
    crowded = source.replace("(9,)", "(9000,)")
    assert crowded != source
    for kernel in compile_all({"crowded": crowded}, tmp_path):
        assert 0 < int(str(kernel["resident"])) < 9000
        assert "its 9000 programs wait for each other" in str(kernel["faults"])


class Crowded:
    """A kernel of which no GPU runs all programs at the same time."""

    __name__ = "crowded"

    def __init__(self, reason: str):
        self._reason = reason

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., object]:
        def start(*_arguments: object, **keywords: object) -> None:
            assert keywords["launch_cooperative_grid"]
            raise RuntimeError(self._reason)

        return start


def test_too_many_programs_are_an_error():
    kernel = Crowded("Triton Error [CUDA]: too many blocks in cooperative launch")
    call = KernelCall(kernel, (64, 4), (), {"launch_cooperative_grid": True})
    with pytest.raises(ValueError, match="the 256 programs of crowded wait for each"):
        Launcher().launch(call)


def test_other_errors_of_a_launch_are_not_about_programs():
    call = KernelCall(
        Crowded("out of memory"), (1,), (), {"launch_cooperative_grid": True}
    )
    with pytest.raises(RuntimeError, match="out of memory"):
        Launcher().launch(call)
