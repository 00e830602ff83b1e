"""What `benchmarks/gpu.py table` prints of some results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import geometric_mean
from typing import TypeAlias, cast

import gpu_model
from gpu_figures import BASE, Ratio, both, done_of, one, others, ratio_of
from gpu_goals import LADDER, MICROSECONDS, SOURCE
from gpu_run.case import GROUPS, OURS, Case
from gpu_run.results import Alternative, Result, Results, is_lost, is_wrong
from gpu_summary import summary
from gpu_verdict import by_hand, choices, goals
from markdown import markdown

SHOWN = 3
"""Places that are named of those where the same failed, or was not reached."""

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
        "Tilings by hand": by_hand(results),
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
        same = all(len(set(facts)) == 1 for _, *facts in rows)
        started = [run["started"] for run in runs]
        if same:
            started = [", ".join(started)]
            rows = [row[:2] for row in rows]
        yield markdown(("", *started), rows)
    for result in results.done.values():
        for name, facts in (
            ("rate", result.get("calibration")),
            ("exchange, us", result.get("exchanges")),
        ):
            if facts:
                yield markdown((name, "measured"), _numbers(facts))


def _numbers(facts: Mapping[str, object]) -> Iterator[list[str]]:
    """Yield the name and the value of each number, those of element types, too."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            inner = cast("Mapping[str, object]", value)
            yield from _numbers({f"{name}, {key}": rate for key, rate in inner.items()})
        elif isinstance(value, float):
            yield [name, f"{value:.4g}"]


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
    """Return a table of geometric means: a row for each other, a column for each op."""
    kinds = list(dict.fromkeys(ratio.case.kind for ratio in ratios))
    found: dict[str, dict[str, list[float]]] = {}
    for ratio in ratios:
        own = found.setdefault(ratio.name, {})
        own.setdefault(ratio.case.kind, []).append(ratio.value)
    rows = (
        [name, *(_mean(own.get(kind, [])) for kind in kinds)]
        for name, own in found.items()
    )
    return markdown(("than", *kinds), rows)


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
    cases = list(done_of(results, "speed"))
    for beside, among in (
        ("", [each for each in cases if each[0].baselines != "compiled"]),
        (", beside torch.compile", [c for c in cases if c[0].baselines == "compiled"]),
    ):
        for kind, found in _by_kind(among).items():
            yield f"### {kind}{beside}"
            yield markdown(("", *(case.about for case, _ in found)), _speed_rows(found))
    if cases:
        yield (
            "Times are medians in microseconds, with a cold L2. Behind those of others "
            "stands how much longer they take than comet; a `*` does a part of the "
            f"work. Before: what is to be beaten, {SOURCE}."
        )


def _speed_rows(found: Sequence[Done]) -> Iterator[list[str]]:
    """Yield a row for each alternative of an op, with a column for each size."""
    known = [result.get("alternatives", {}) for _, result in found]
    ours = [each.get(OURS, Alternative()) for each in known]
    yield [OURS, *(one(each, "cold") for each in ours)]
    yield ["with a warm L2", *(one(each, "warm") for each in ours)]
    yield ["predicted", *(_predicted(case) for case, _ in found)]
    for name in _alternatives(found, OURS):
        others = [each.get(name, Alternative()) for each in known]
        yield [name, *map(_beside, others, ours)]
    yield ["before", *(_before(case) for case, _ in found)]


def _predicted(case: Case) -> str:
    predicted = case.predicted.get(OURS)
    if predicted is None or case.ragged:
        return "-"
    return f"{predicted.eager * 1e6:.1f}"


def _before(case: Case) -> str:
    goals = MICROSECONDS.get(case.kind, {}).get(case.about.removesuffix(" compiled"))
    shown = (f"{name} {time:.0f}" for name, time in (goals or {}).items())
    return ", ".join(shown) or "-"


def _beside(found: Alternative, ours: Alternative) -> str:
    ratio = ratio_of(found, ours, "cold")
    time = one(found, "cold") + " *" * found.get("partial", False)
    return time if ratio is None else f"{time} ({ratio:.2f})"


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
    where: dict[str, list[str]] = {}
    for place, sentence in _failures(results):
        where.setdefault(sentence, []).append(place)
    if where:
        yield "\n".join(f"* {why}: {_few(places)}" for why, places in where.items())


def _few(places: Sequence[str]) -> str:
    """Return the first of some places, and how many there are beyond."""
    more = len(places) - SHOWN
    return ", ".join(places[:SHOWN]) + f", and {more} more" * (more > 0)


def _failures(results: Results) -> Iterator[tuple[str, str]]:
    """Yield where something failed, and what."""
    for case in results.manifest.cases:
        result = results.done.get(case.id, Result())
        if is_lost(result):
            yield case.id, f"lost: {result.get('reason')}"
        if is_wrong(result):
            yield case.id, f"wrong: {', '.join(_wrong(result))}"
        for name, reason in case.refused.items():
            yield f"{case.id} {name}", f"no module: {reason}"
        for name, found in result.get("alternatives", {}).items():
            if "missing" in found and name in case.modules:
                yield f"{case.id} {name}", f"missing: {found['missing']}"
            if "remark" in found:
                yield f"{case.id} {name}", found["remark"]


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
            yield f"{group}: {len(own)}: {_few(own)}"
