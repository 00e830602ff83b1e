"""Programs whose last one to arrive merges partial results, on the scheduler."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from covering import EVERY_CASE, fraction, some
from rank_runs import outcomes
from shim_mutations import ARRIVALS, weakened
from split_programs import H200, MI300X, SPLITS, merging
from triton_modules import compile_all

MACHINES = {"h200": H200, "mi300x": MI300X}
RIGHT = fraction(SPLITS, [*MACHINES])
ARRIVE = "arrive_last(c_counters_ptr + (pid_m * 3 + pid_n), 3)"
ADD = "(tl.atomic_add(c_counters_ptr + (pid_m * 3 + pid_n), 1, {}) % 3) == 2"
SHIM = "from comet.runtime.shim import arrive_last"
FIRST = "    k_part = tl.program_id(2)\n"
EARLY = (
    "    early = arrive_last(c_counters_ptr + (tl.program_id(1) * 3 + "
    "tl.program_id(0)), 3)\n"
)
MUTATIONS: Mapping[str, tuple[tuple[tuple[str, str], ...], set[str]]] = {
    "no arrival": (((ARRIVE, "k_part == 2"),), {"RaceError"}),
    "all but one arrive": (((ARRIVE, ARRIVE[:-2] + "2)"),), {"RaceError"}),
    "one more arrives": (
        ((ARRIVE, ARRIVE[:-2] + "4)"),),
        {"wrong result", "RaceError"},
    ),
    "arrival before the stores": (
        ((FIRST, FIRST + EARLY), (ARRIVE, "early")),
        {"RaceError"},
    ),
    "no barrier before the addition": (
        ((ARRIVE, ADD.format('sem="acq_rel", scope="gpu"')),),
        {"RaceError"},
    ),
    "relaxed": (
        ((ARRIVE, ADD.format('sem="relaxed", scope="gpu"')),),
        {"RaceError"},
    ),
    "the scope of one program": (
        ((ARRIVE, ADD.format('sem="acq_rel", scope="cta"')),),
        {"RaceError"},
    ),
    "the counter of another tile": (
        ((ARRIVE, ARRIVE.replace("pid_m * 3 + pid_n", "pid_m * 3")),),
        {"RaceError", "wrong result"},
    ),
    "a counter that starts at one": (
        (("rank.zeros((9,), torch.int32)", "rank.zeros((9,), torch.int32) + 1"),),
        {"RaceError"},
    ),
}
"""Edits of the emitted product, and what the scheduler may say."""
TRIED = dict(some(MUTATIONS.items(), 3))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Run the programs, right and mutated, in one child process."""
    sources = {
        f"{name} {machine}": merging(name, passes)
        for name, machine in RIGHT
        for passes in [MACHINES[machine]]
    }
    right = sources["gemm h200"]
    for name, (edits, _) in TRIED.items():
        sources[name] = right
        for old, new in edits:
            assert old in right, name
            sources[name] = sources[name].replace(old, new)
    folder = tmp_path_factory.mktemp("modules")
    for index, name in enumerate(ARRIVALS):
        (folder / f"weak_shim_{index}.py").write_text(weakened(name))
        assert SHIM in right
        sources[name] = right.replace(
            SHIM, SHIM.replace("comet.runtime.shim", f"weak_shim_{index}")
        )
    numbered = {f"module_{i}": source for i, source in enumerate(sources.values())}
    became = outcomes(numbered, folder, seeds=4 if EVERY_CASE else 2)
    return dict(zip(sources, became.values(), strict=True))


@pytest.mark.parametrize(("name", "machine"), RIGHT)
def test_programs_that_merge_are_right_in_any_order(
    name: str, machine: str, found: Mapping[str, str]
):
    assert found[f"{name} {machine}"] == "right"


@pytest.mark.parametrize("name", TRIED)
def test_without_a_safeguard_they_are_not(name: str, found: Mapping[str, str]):
    assert found[name] in MUTATIONS[name][1]


@pytest.mark.parametrize("name", ARRIVALS)
def test_without_a_safeguard_of_the_shim_they_are_not(
    name: str, found: Mapping[str, str]
):
    assert found[name] in {"RaceError", "wrong result"}


def test_compiled_kernels_add_with_acquire_and_release(tmp_path: Path):
    source = merging("gemm")
    weak = source.replace(ARRIVE, ADD.format('sem="relaxed", scope="gpu"'))
    assert weak != source
    found = compile_all({"right": source, "weak": weak}, tmp_path)
    right, other = found[:2], found[2:]
    assert [kernel["faults"] for kernel in right] == [[], []]
    assert all(kernel["faults"] for kernel in other)
