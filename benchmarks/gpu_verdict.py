"""Whether measured times reach the goals, and what the model's first choice loses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from statistics import geometric_mean

from gpu_figures import BASE, Condition, done_of, median
from gpu_model import spearman
from gpu_run.case import OURS, Case, Group
from gpu_run.results import Alternative, Result, Results
from markdown import markdown

FIRST = "candidate_1"
"""The tiling that comet chooses."""


@dataclass(frozen=True)
class Goal:
    """How much faster an op has to be than something else."""

    kind: str
    group: Group
    condition: Condition
    than: str
    """The alternative that it is compared with."""
    mean: float
    """What the geometric mean of the ratios has to reach."""
    worst: float = 0.0
    """What the ratio of each size has to reach."""
    sizes: Callable[[Case], bool] = lambda case: True
    label: str = ""
    """What the sizes have in common."""


def _few_rows(case: Case) -> bool:
    return case.extents["M"] <= 64


GOALS = (
    Goal("gemm_softmax", "speed", "cold", "compile", 1.25, 1.0),
    Goal("gemm_layernorm", "speed", "cold", "compile", 1.15, 1.0),
    Goal("gemm", "speed", "cold", "eager", 0.95),
    Goal("attention", "speed", "cold", "cudnn", 0.95),
    Goal("attention_causal", "speed", "cold", "cudnn", 0.95),
    Goal("ag_gemm", "ladder", "graph", BASE, 1.06),
    Goal("ag_gemm", "ladder", "graph", BASE, 1.25, sizes=_few_rows, label=", M <= 64"),
)
"""Ratios that are to be reached, on one H200 with Triton 3.6."""

OF_THE_BYTES = 1.03
"""How much longer than its bytes flash decode may take."""

Measured = tuple[Case, Mapping[str, Alternative]]


def goals(results: Results) -> Iterator[str]:
    """Yield a table of the goals: what was needed, and what was reached."""
    rows = [row for goal in GOALS if (row := _row(goal, results))]
    if (row := _decode(results)) is not None:
        rows.append(row)
    if rows:
        columns = ("goal", "sizes", "needed", "by choice", "by the best form", "worst")
        yield markdown(columns, rows)
        yield (
            "How much faster than the other one, geometric means; the worst of the "
            "best forms. Choice: what comet takes by default, `auto` of patterns. "
            "Decode: how much longer than its bytes at the measured rate of memory."
        )


def _row(goal: Goal, results: Results) -> list[str] | None:
    """Return the row of a goal, None where nothing of it was measured."""
    choices: list[float] = []
    bests: list[float] = []
    for case, found in _of(results, goal.group, goal.kind):
        other = median(found.get(goal.than, {}), goal.condition)
        own = {
            name: other / time
            for name in case.modules
            if name != goal.than and other is not None
            if (time := median(found.get(name, {}), goal.condition)) is not None
        }
        if own and goal.sizes(case):
            bests.append(max(own.values()))
            choices += _chosen(case, own)
    if not bests:
        return None
    needed = f"{goal.mean:.2f}" + f", each {goal.worst:.2f}" * bool(goal.worst)
    choice = f"{geometric_mean(choices):.2f}" if choices else "-"
    shown = (choice, f"{geometric_mean(bests):.2f}", f"{min(bests):.2f}")
    name = f"{goal.kind}{goal.label} than {goal.than}"
    return [name, str(len(bests)), needed, *shown]


def _chosen(case: Case, ratios: Mapping[str, float]) -> Iterator[float]:
    """Yield the ratio of what comet chooses by itself, if it is known."""
    name = OURS if case.ranks == 1 else case.same.get("auto", "auto")
    if case.ranks > 1 and name == BASE:
        yield 1.0
    elif name in ratios:
        yield ratios[name]


def _decode(results: Results) -> list[str] | None:
    """Return how much longer than its bytes flash decode takes."""
    rates = [r["calibration"] for r in results.done.values() if "calibration" in r]
    rate = rates[0].get("hbm_gb_per_s") if rates else None
    if not isinstance(rate, float):
        return None
    own: list[float] = []
    best: list[float] = []
    for case, found in _of(results, "speed", "flash_decode"):
        least = key_bytes(case.extents) / (rate * 1e9)
        times = [median(found.get(name, {}), "cold") for name in case.modules]
        ratios = [time / least for time in times if time is not None]
        mine = median(found.get(OURS, {}), "cold")
        if ratios and mine is not None and not case.ragged:
            own.append(mine / least)
            best.append(min(ratios))
    if not own:
        return None
    means = [f"{geometric_mean(each):.2f}" for each in (own, best)]
    worst = f"{max(best):.2f}"
    name = "flash_decode than its bytes"
    return [name, str(len(own)), f"at most {OF_THE_BYTES}", *means, worst]


def key_bytes(extents: Mapping[str, int]) -> int:
    """Return the bytes of all keys and values, in 16 bits."""
    positions = prod(extents[dim] for dim in "BHS")
    return 2 * positions * (extents["D"] + extents["E"])


def choices(results: Results) -> Iterator[str]:
    """Yield what the model's first choice loses against the tilings that follow it."""
    rows = [
        row
        for case, result in done_of(results, "candidates")
        if (row := _choice(case, result)) is not None
    ]
    if rows:
        columns = ("op", "size", "tilings", "first, us", "best, us", "which", "loses")
        yield markdown((*columns, "rank correlation"), rows)


def by_hand(results: Results) -> Iterator[str]:
    """Yield what comet's choice loses against the best of the tilings by hand."""
    ours = {
        _what(case): time
        for case, result in done_of(results, "speed")
        if (time := median(result.get("alternatives", {}).get(OURS, {}), "cold"))
        and case.baselines != "compiled"
        and not case.ragged
    }
    rows: list[list[str]] = []
    for case, result in done_of(results, "candidates"):
        times, own = _times(case, result), ours.get(_what(case))
        if own is not None and times and FIRST not in times:
            best = min(times, key=lambda name: times[name])
            shown = [f"{time * 1e6:.1f}" for time in (own, times[best])]
            lost = f"{own / times[best] - 1:.1%}"
            rows.append([case.kind, case.about, str(len(times)), *shown, best, lost])
    if rows:
        columns = ("op", "size", "tilings", "comet, us", "best, us", "which", "loses")
        yield markdown(columns, rows)


def _what(case: Case) -> tuple[str, frozenset[tuple[str, int]]]:
    """Return the op and the sizes of a case."""
    return case.kind, frozenset(case.extents.items())


def _times(case: Case, result: Result) -> dict[str, float]:
    """Return the time of each module of a case that was timed, with a cold L2."""
    found = result.get("alternatives", {})
    return {
        name: time
        for name in case.modules
        if (time := median(found.get(name, {}), "cold")) is not None
    }


def _choice(case: Case, result: Result) -> list[str] | None:
    """Return the row of an op; None where its first choice was not timed."""
    times = _times(case, result)
    if FIRST not in times:
        return None
    best = min(times, key=lambda name: times[name])
    shown = [f"{times[name] * 1e6:.1f}" for name in (FIRST, best)]
    lost = f"{times[FIRST] / times[best] - 1:.1%}"
    order = spearman(*_pairs(case, times))
    row = [case.kind, case.about, str(len(times)), *shown, best, lost, f"{order:.2f}"]
    return row


def _pairs(
    case: Case, times: Mapping[str, float]
) -> tuple[Sequence[float], Sequence[float]]:
    """Return what was predicted and what was measured, in one order."""
    known = [name for name in times if name in case.predicted]
    return [case.predicted[n].eager for n in known], [times[n] for n in known]


def _of(results: Results, group: Group, kind: str) -> Iterator[Measured]:
    """Yield the cases of an op of which something is known."""
    for case, result in done_of(results, group):
        if case.kind == kind:
            yield case, result.get("alternatives", {})
