"""What the cost model predicted beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from gpu_run.results import Alternative, Results
from markdown import markdown

SHOWN = 20
"""Predictions that are shown, of all that were wrong."""


@dataclass(frozen=True)
class Pair:
    """One time, as it was predicted and as it was measured, in seconds."""

    kind: str
    about: str
    """Size, ranks, pattern and how it was launched."""
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """How much longer it was predicted to take, as a fraction of what it took."""
        return self.predicted / self.measured - 1

    @property
    def surprise(self) -> float:
        """By which factor the prediction was wrong, either way."""
        return math.exp(abs(math.log(self.predicted / self.measured)))


def pairs(results: Results) -> list[Pair]:
    """Return all that was predicted and measured."""
    return list(_pairs(results))


def _pairs(results: Results) -> Iterator[Pair]:
    """
    Yield what was predicted and measured.

    One rank is compared cold, launched by itself; lengths that are ragged are not known
    to the model.
    """
    for case in results.manifest.cases:
        found = results.done.get(case.id, {}).get("alternatives", {})
        for name, predicted in case.predicted.items():
            each = found.get(name, Alternative())
            times = each.get("times", {}) if each.get("ok", True) else {}
            expected = {"eager": predicted.eager, "graph": predicted.graph}
            if case.ranks == 1:
                expected = {} if case.ragged else {"cold": predicted.graph}
            for condition in filter(times.__contains__, expected):
                about = f"{case.about} {name} {condition}"
                measured = times[condition]["median"]
                yield Pair(case.kind, about, expected[condition], measured)


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value from 1; equal values share the mean of theirs."""
    places = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    start = 0
    while start < len(places):
        end = start
        while end < len(places) and values[places[end]] == values[places[start]]:
            end += 1
        for place in places[start:end]:
            found[place] = (start + 1 + end) / 2
        start = end
    return found


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """
    Return the correlation of the ranks of two samples; nan where one does not vary.

    C. Spearman, "The proof and measurement of association between two things", American
    Journal of Psychology 15, 1904.
    """
    x, y = ranks(first), ranks(second)
    mean_x, mean_y = fmean(x), fmean(y)
    across = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    spread = math.sqrt(
        sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y)
    )
    return across / spread if spread else math.nan


def section(found: Sequence[Pair]) -> Iterator[str]:
    """Yield the paragraphs on the model, the largest surprise first."""
    if not found:
        yield "Nothing was both predicted and measured."
        return
    kinds = dict.fromkeys(pair.kind for pair in found)
    rows = [_row(kind, [pair for pair in found if pair.kind == kind]) for kind in kinds]
    columns = ("op", "times", "rank correlation", "mean error", "worst", "where")
    yield markdown(columns, [*rows, _row("all", found)])
    yield (
        "An error is how much longer it was predicted to take than it took. The rank "
        f"correlation is Spearman's. The {SHOWN} largest surprises:"
    )
    surprising = sorted(found, key=lambda pair: -pair.surprise)[:SHOWN]
    columns = ("op", "size", "predicted, us", "measured, us", "predicted / measured")
    yield markdown(columns, map(_surprise, surprising))


def _row(name: str, found: Sequence[Pair]) -> list[str]:
    correlation = spearman(
        [pair.predicted for pair in found], [pair.measured for pair in found]
    )
    mean = fmean(abs(pair.error) for pair in found)
    worst = max(found, key=lambda pair: pair.surprise)
    shown = "-" if math.isnan(correlation) else f"{correlation:.2f}"
    errors = (f"{mean:.0%}", f"{worst.error:+.0%}")
    return [name, str(len(found)), shown, *errors, f"{worst.kind} {worst.about}"]


def _surprise(pair: Pair) -> list[str]:
    times = (f"{pair.predicted * 1e6:.1f}", f"{pair.measured * 1e6:.1f}")
    return [pair.kind, pair.about, *times, f"{pair.predicted / pair.measured:.2f}"]
