"""Measured times in little space: for tests of the cost model, and to be kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from gpu_run.case import Case
from gpu_run.results import Facts, Results

from comet.passes.pipelines.triton_distributed import TritonDistributedPass

DEFAULT = TritonDistributedPass()

MACHINE = ("name", "driver", "torch", "triton")
"""What a record says of the machine."""


def record(results: Results) -> str:
    """
    Return the medians of all timed cases, as JSON with a line for each alternative.

    A line has the name; microseconds with a cold and a warm L2, or on several ranks
    launched one by one and as a graph; what the model predicted of the first; and the
    options of `triton-distributed`, with fusion and tiles as they were chosen, where
    they differ from those of the case. A baseline in torch has times alone.
    """
    first = results.report["runs"][0]
    facts: Facts = {name: first["machine"][name] for name in MACHINE}
    facts["date"] = first["started"][:10]
    timed = [case for case in results.manifest.cases if case.task == "time"]
    found = (part for case in timed if (part := _of_case(case, results)))
    cases = ",\n".join(found)
    return f'{{"machine": {json.dumps(facts)},\n"cases": [\n{cases}\n]}}'


def _of_case(case: Case, results: Results) -> str:
    """Return what is known of a case, or nothing."""
    first = next(iter(case.options.values()), dict[str, object]())
    lines = ",\n".join(map(_line, _times(case, results, first)))
    if not lines:
        return ""
    facts: Facts = {"id": case.id, "sample": case.kind, "extents": case.extents}
    facts |= {"dtype": case.dtype, "ragged": case.ragged, "options": first}
    return f'{_line(facts)[:-1]},"times":[\n{lines}]}}'


def _changed(
    first: Mapping[str, object], own: Mapping[str, object]
) -> dict[str, object]:
    """Return the options in which an alternative differs from the first one."""
    names = dict.fromkeys((*own, *first))
    values = {name: own.get(name, getattr(DEFAULT, name)) for name in names}
    return {name: value for name, value in values.items() if value != first.get(name)}


def _times(
    case: Case, results: Results, first: Mapping[str, object]
) -> Iterator[list[object]]:
    """Yield the line of each alternative of a case."""
    found = results.done.get(case.id, {}).get("alternatives", {})
    for name, each in found.items():
        if "times" not in each or not each.get("ok", True):
            continue
        medians = [_microseconds(times["median"]) for times in each["times"].values()]
        line: list[object] = [name, *medians]
        if name in case.predicted:
            options = _changed(first, case.options.get(name, {}))
            line += [_microseconds(case.predicted[name].eager), options]
        yield line


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 1)
