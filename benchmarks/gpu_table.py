"""What `benchmarks/gpu.py table` prints of some results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import geometric_mean
from typing import TypeAlias

import gpu_model
from gpu_figures import BASE, Ratio, both, done_of, others, ratio_of
from gpu_goals import LADDER, MICROSECONDS, SOURCE
from gpu_run.case import GROUPS, OURS, Case
from gpu_run.results import Alternative, Result, Results, is_lost, is_wrong
from gpu_summary import summary
from gpu_verdict import choices, goals
from markdown import markdown

Done: TypeAlias = tuple[Case, Result]
"""A case of which something is known."""


def tables(results: Results) -> str:
    """Return the summary, the tables of each group, and what is missing."""
    sections = {
        "Summary": summary(results),
        "Goals": goals(results),
        "Machine": machine(results),
        "Correctness": correctness(results),
        "Speed on one rank": speed(results),
        "The model's first choice": choices(results),
        "The ladder: all ranks on one GPU": ladder(results),
        "The model": gpu_model.section(gpu_model.pairs(results)),
        "Failures": failures(results),
        "Not reached": not_reached(results),
    }
    parts = [title(results)]
    for name, paragraphs in sections.items():
        parts += [f"## {name}", *(list(paragraphs) or ["None."])]
    return "\n\n".join(parts)


def title(results: Results) -> str:
    """Return the heading, with the name of the machine."""
    runs = results.report["runs"]
    names = dict.fromkeys(str(run["machine"]["name"]) for run in runs)
    heading = f"# The kernels on {', '.join(names) or 'nothing'}"
    if any(run["dry_run"] for run in runs):
        heading += "\n\nA dry run: interpreted at tiny sizes; its times mean nothing."
    return heading


def machine(results: Results) -> Iterator[str]:
    """Yield what machine each run was on, and its rates."""
    runs = results.report["runs"]
    names = dict.fromkeys(name for run in runs for name in run["machine"])
    rows = [[name, *(str(run["machine"].get(name)) for run in runs)] for name in names]
    if runs:
        yield markdown(("", *(run["started"] for run in runs)), rows)
    for result in results.done.values():
        if "calibration" in result:
            facts = result["calibration"].items()
            yield markdown(("rate", "measured"), ([n, _shown(v)] for n, v in facts))
        if "exchanges" in result:
            times = result["exchanges"].items()
            yield markdown(("exchange", "us"), ([n, _shown(v)] for n, v in times))


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def correctness(results: Results) -> Iterator[str]:
    """Yield how many modules of each op were right, and how near to the tolerance."""
    by_kind: dict[tuple[str, str], list[Alternative]] = {}
    lost: Counter[tuple[str, str]] = Counter()
    for case, result in done_of(results, "correctness"):
        key = (case.kind, case.task)
        lost[key] += is_lost(result)
        found = result.get("alternatives", {}).values()
        by_kind.setdefault(key, []).extend(each for each in found if "ok" in each)
    rows = [_judged(*key, found, lost[key]) for key, found in by_kind.items()]
    if rows:
        columns = ("op", "reference", "right", "wrong", "lost", "error / tolerance")
        yield markdown(columns, rows)


def _judged(kind: str, task: str, found: Sequence[Alternative], lost: int) -> list[str]:
    right = sum(each.get("ok", False) for each in found)
    parts = [
        error / each.get("tolerance", 1.0)
        for each in found
        if (error := each.get("error")) is not None
    ]
    largest = f"{max(parts):.2f}" if parts else "-"
    reference = "numpy, small" if task == "check" else "torch, as timed"
    return [kind, reference, str(right), str(len(found) - right), str(lost), largest]


def by_op(ratios: Sequence[Ratio]) -> str:
    """Return a table of geometric means: a row for each op, a column for each other."""
    names = list(dict.fromkeys(ratio.name for ratio in ratios))
    found: dict[str, dict[str, list[float]]] = {}
    for ratio in ratios:
        own = found.setdefault(ratio.case.kind, {})
        own.setdefault(ratio.name, []).append(ratio.value)
    rows = (
        [kind, *(_mean(own.get(name, [])) for name in names)]
        for kind, own in found.items()
    )
    return markdown(("op", *names), rows)


def _mean(values: Sequence[float]) -> str:
    return f"{geometric_mean(values):.2f}" if values else "-"


def _by_kind(found: Iterable[Done]) -> dict[str, list[Done]]:
    kinds: dict[str, list[Done]] = {}
    for case, result in found:
        kinds.setdefault(case.kind, []).append((case, result))
    return kinds


def _alternatives(found: Sequence[Done], but: str) -> list[str]:
    """Return the names of all alternatives of some cases but one."""
    names = (name for _, result in found for name in result.get("alternatives", {}))
    return [name for name in dict.fromkeys(names) if name != but]


def speed(results: Results) -> Iterator[str]:
    """Yield a table for each op: times of comet, and how much longer others take."""
    ratios = list(others(results))
    if ratios:
        yield "How much faster comet is than others, cold L2, geometric means:"
        yield by_op(ratios)
    kinds = _by_kind(done_of(results, "speed"))
    for kind, found in kinds.items():
        names = _alternatives(found, OURS)
        yield f"### {kind}"
        columns = ("size", "comet, us", "predicted", *names, "before")
        yield markdown(columns, (_speed_row(*each, names) for each in found))
    if kinds:
        yield (
            "Times are medians in microseconds, with a cold / a warm L2. Behind those "
            "of others stands how much longer they take than comet, cold; a `*` does a "
            f"part of the work. Before: what is to be beaten, {SOURCE}."
        )


def _speed_row(case: Case, result: Result, names: Sequence[str]) -> list[str]:
    found = result.get("alternatives", {})
    ours = found.get(OURS, {})
    predicted = case.predicted.get(OURS)
    goals = MICROSECONDS.get(case.kind, {}).get(case.about)
    return [
        case.about,
        both(ours, "cold", "warm"),
        "-" if predicted is None or case.ragged else f"{predicted.eager * 1e6:.1f}",
        *(_beside(found.get(name, {}), ours) for name in names),
        ", ".join(f"{name} {time:.0f}" for name, time in (goals or {}).items()) or "-",
    ]


def _beside(found: Alternative, ours: Alternative) -> str:
    ratio = ratio_of(found, ours, "cold")
    times = both(found, "cold", "warm") + " *" * found.get("partial", False)
    return times if ratio is None else f"{times} = {ratio:.2f}"


def ladder(results: Results) -> Iterator[str]:
    """Yield a table for each op: how much faster each pattern is than `bsp`."""
    kinds = _by_kind(done_of(results, "ladder"))
    for kind, found in kinds.items():
        names = _alternatives(found, BASE)
        goal = ("prototype",) if kind == "ag_gemm" else ()
        yield f"### {kind}"
        columns = ("case", "bsp, us", *names, *goal)
        yield markdown(columns, (list(_rung(*each, names)) for each in found))
    if kinds:
        yield (
            "Launched one by one / as a graph, with a cold L2. Patterns: how much "
            "faster than `bsp`, in brackets what the model says. Others: microseconds "
            "of what torch does for all ranks together. Prototype: how much faster "
            f"pulling was, as a graph, {SOURCE}."
        )


def _rung(case: Case, result: Result, names: Sequence[str]) -> Iterator[str]:
    found = result.get("alternatives", {})
    base = found.get(BASE, {})
    yield from (case.about, both(base, "eager", "graph"))
    for name in names:
        yield _step(case, found.get(name, {}), base, name)
    if case.kind == "ag_gemm":
        goal = LADDER.get(case.about)
        yield "-" if goal is None else f"{goal:.2f}"


def _step(case: Case, found: Alternative, base: Alternative, name: str) -> str:
    if name not in case.predicted or BASE not in case.predicted:
        return both(found, "eager", "graph")
    ratios = [ratio_of(base, found, condition) for condition in ("eager", "graph")]
    measured = [f"{ratio:.2f}" for ratio in ratios if ratio is not None]
    shown = " / ".join(measured) or both(found, "eager", "graph")
    own, first = case.predicted[name], case.predicted[BASE]
    return f"{shown} ({first.eager / own.eager:.2f} / {first.graph / own.graph:.2f})"


def failures(results: Results) -> Iterator[str]:
    """Yield what was lost, wrong, refused or missing, each with its reason."""
    lines = list(_failures(results))
    if lines:
        yield "\n".join(f"* {line}" for line in lines)


def _failures(results: Results) -> Iterator[str]:
    for case in results.manifest.cases:
        result = results.done.get(case.id, Result())
        if is_lost(result):
            yield f"{case.id}: lost: {result.get('reason')}"
        if is_wrong(result):
            yield f"{case.id}: wrong: {', '.join(_wrong(result))}"
        for name, reason in case.refused.items():
            yield f"{case.id}: no module for {name}: {reason}"
        for name, found in result.get("alternatives", {}).items():
            if "missing" in found and name in case.modules:
                yield f"{case.id}: {name} is missing: {found['missing']}"
            if "remark" in found:
                yield f"{case.id}: {name}: {found['remark']}"


def _wrong(result: Result) -> Iterator[str]:
    for name, found in result.get("alternatives", {}).items():
        if not found.get("ok", True):
            error = found.get("error")
            shown = "not finite" if error is None else f"{error:.1e}"
            yield f"{name} {shown} of {found.get('tolerance', 0.0):.1e}"


def not_reached(results: Results) -> Iterator[str]:
    """Yield the cases that were not run, group by group."""
    pending = results.pending(list(results.manifest.cases))
    for group in GROUPS:
        own = [case.id for case in pending if case.group == group]
        if own:
            yield f"{group}: {len(own)}"
            yield "\n".join(f"* {id}" for id in own)
