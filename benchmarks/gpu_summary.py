"""The results in a minute: who is faster by how much, and what failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import geometric_mean

from gpu_figures import Ratio, others, rungs
from gpu_run.results import Results, is_lost, is_wrong
from markdown import markdown

COLUMNS = ("cases", "geometric mean", "worst", "where")


def summary(results: Results) -> Iterator[str]:
    """Yield the paragraphs of the summary."""
    yield _counts(results)
    ratios = list(others(results))
    own = [ratio for ratio in ratios if ratio.name in ratio.case.modules]
    for what, found in (
        ("what torch does on one rank", [each for each in ratios if each not in own]),
        ("the forms that it does not take by default", own),
    ):
        if found:
            yield f"How much faster comet is than {what}, cold L2:"
            yield markdown(("than", *COLUMNS), _rows(found))
    rows = list(_rows(rungs(results, "graph")))
    if rows:
        yield "How much faster a pattern is than `bsp`, as a graph on one GPU:"
        yield markdown(("pattern", *COLUMNS), rows)
    missing = _missing(results)
    if missing:
        lines = (f"{name}: {reason}" for name, reason in missing.items())
        yield "\n".join(["Not there:", "", *(f"* {line}" for line in lines)])


def _counts(results: Results) -> str:
    """Return how many cases are what."""
    cases, done = list(results.manifest.cases), results.done.values()
    lost, wrong = (sum(map(rule, done)) for rule in (is_lost, is_wrong))
    compiled = [case for case in cases if case.group == "correctness"]
    refused = sum(len(case.refused) for case in compiled)
    inapplicable = sum(len(case.inapplicable) for case in compiled)
    return (
        f"Cases: {len(done)} run, **{lost} lost, {wrong} wrong**, "
        f"{len(results.pending(cases))} not reached. Programs: {refused} refused by "
        f"the compiler, {inapplicable} to which their pattern does not apply."
    )


def _rows(ratios: Iterable[Ratio]) -> Iterator[list[str]]:
    """Yield a row for each alternative or pattern."""
    by_name: dict[str, list[Ratio]] = {}
    for ratio in ratios:
        by_name.setdefault(ratio.name, []).append(ratio)
    for name, found in by_name.items():
        mean = geometric_mean(ratio.value for ratio in found)
        worst = min(found, key=lambda ratio: ratio.value)
        where = f"{worst.case.kind} {worst.case.about}"
        yield [name, str(len(found)), f"{mean:.2f}", f"{worst.value:.2f}", where]


def _missing(results: Results) -> dict[str, str]:
    """Return the baselines that were never there, with the reason of the first time."""
    reasons: dict[str, str] = {}
    there: set[str] = set()
    for case in results.manifest.cases:
        found = results.done.get(case.id, {}).get("alternatives", {})
        for name, each in found.items():
            if "times" in each:
                there.add(name)
            elif "missing" in each and name not in {**case.modules, **case.refused}:
                reasons.setdefault(name, each["missing"])
    return {name: reason for name, reason in reasons.items() if name not in there}
