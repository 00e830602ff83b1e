"""Where a graph is cut into the mappings of a chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.blocks import captured_by, yielded_by
from comet.dialects.compound import CastOp, ContractOp
from comet.dialects.compound.copied import origin_of
from comet.dialects.compound.views import sources
from comet.passes.analysis.op_groups import (
    defining_ops,
    extents_conflict,
    extents_of_op,
)
from comet.passes.analysis.stored_values import named_values, value_names
from comet.passes.dataflow.outline_mappings.plan import (
    NAME,
    ROOT_VIEWS,
    Chain,
    Graph,
    PlannedMapping,
    is_repeated,
)

Places: TypeAlias = Mapping[Operation, int]
"""The number of the mapping that computes each op."""


def cuts(graph: Graph) -> Iterator[tuple[str, Chain]]:
    """
    Yield ways to cut a graph, each with its name.

    Each product begins a mapping; or there are as few mappings as possible, whose ops
    are as late as possible, or where that cannot be as early.
    """
    early = earliest(graph)
    places = latest(graph, early) or early
    yield "products", mappings_at(graph, at_products(graph, places))
    yield "fewest", mappings_at(graph, places)


def mappings_at(graph: Graph, places: Places) -> Chain:
    """Return the mappings, in the order of their numbers."""
    return tuple(
        graph.mapping(op for op in graph.computing if places[op] == number)
        for number in sorted(set(places.values()))
    )


def earliest(graph: Graph) -> dict[Operation, int]:
    """
    Return the first mapping that can compute each op, which makes them the fewest.

    A mapping reads views of results of earlier mappings only, and has one extent of
    each dimension. A cast is in the mapping that computes its operand.
    """
    ready: dict[SSAValue, int] = {}
    places: dict[Operation, int] = {}
    extents = _Extents()
    for op in graph.needed:
        if isinstance(op, ROOT_VIEWS):
            shown = (ready.get(v, 0) + (v.owner in places) for v in op.operands)
            ready[op.results[0]] = max(shown)
        elif not is_repeated(op):
            read = map(origin_of, captured_by(op))
            place = max((ready.get(value, 0) for value in read), default=0)
            while not _follows(op, places) and not extents.fit(op, place):
                place += 1
            extents.add(op, place)
            places[op] = place
            ready |= dict.fromkeys(op.results, place)
    return places


def latest(graph: Graph, early: Places) -> dict[Operation, int] | None:
    """
    Return the last of as many mappings that can compute each op, None if none can.

    So what crosses the root memory is mostly what a view shows.
    """
    count = max(early.values()) + 1
    last: dict[SSAValue, int] = dict.fromkeys(yielded_by(graph.func.body.block), count)
    places: dict[Operation, int] = {}
    extents = _Extents()
    for op in reversed(graph.needed):
        place = min((last.get(result, count) for result in op.results), default=count)
        shows = isinstance(op, ROOT_VIEWS)
        if not shows and not is_repeated(op):
            place = min(place, count - 1)
            while not isinstance(op, CastOp) and not extents.fit(op, place):
                place -= 1
            if place < early[op]:
                return None
            extents.add(op, place)
            places[op] = place
        for value in captured_by(op):
            before = place - (shows and value.owner in early)
            last[value] = min(last.get(value, count), before)
    return _with_casts(graph, places)


def at_products(graph: Graph, places: Places) -> dict[Operation, int]:
    """Return mappings that also begin at each product, with what follows it."""
    ordered = sorted(graph.computing, key=lambda op: places[op])
    found: dict[Operation, int] = {}
    number, before = 0, 0
    for op in ordered:
        product = any(isinstance(inner, ContractOp) for inner in op.walk())
        if found and (product or places[op] != before):
            number += 1
        found[op], before = number, places[op]
    return _with_casts(graph, found)


def joined(
    graph: Graph, first: PlannedMapping, second: PlannedMapping
) -> PlannedMapping | None:
    """Return two mappings that follow each other as one, None if they cannot be."""
    stored, ops = set(first.writes), (*first.ops, *second.ops)
    views = (value for value in second.reads if value not in stored)
    if any(stored & set(sources(value)) for value in views):
        return None
    if any(extents_conflict(ops, (op,)) for op in ops):
        return None
    return graph.mapping(op for op in ops if not is_repeated(op))


def given_mappings(graph: Graph, text: str) -> Chain:
    """
    Return the mappings that store what `text` names, in this order.

    Raises PassFailedException for a name that no value has, for what no mapping stores
    and others read, and for a mapping that cannot be one.
    """
    named = value_names(graph.computing)
    remaining, chain = set(graph.computing), list[PlannedMapping]()
    repeated = set(filter(is_repeated, graph.needed))
    for values in named_values(text, named, NAME, "mapping"):
        for value in values:
            if value.owner not in remaining:
                raise PassFailedException(
                    f"{NAME}: an earlier mapping than its own needs %{named[value]}; "
                    "name it there, or before"
                )
        ops = remaining & defining_ops(values, remaining | repeated)
        remaining -= ops
        chain.append(graph.mapping(ops))
    if remaining:
        last = next(op for op in reversed(graph.computing) if op in remaining)
        raise PassFailedException(
            f"{NAME}: no mapping computes %{named[last.results[-1]]}; name it, or a "
            "value that is computed from it"
        )
    found = tuple(chain)
    _check_mappings(found, named)
    return found


def _check_mappings(chain: Chain, named: Mapping[SSAValue, str]) -> None:
    """Raise PassFailedException for what one mapping cannot hold."""
    stored: set[SSAValue] = set()
    for planned in chain:
        name = named[planned.writes[-1]]
        for value in planned.reads:
            for source in sources(value):
                if source in named and source not in stored:
                    raise PassFailedException(
                        f"{NAME}: the mapping of %{name} sees %{named[source]} under "
                        "other names, in part or joined, and no mapping before it "
                        f"stores %{named[source]}; name that before"
                    )
        if any(extents_conflict(planned.ops, (op,)) for op in planned.ops):
            raise PassFailedException(
                f"{NAME}: the mapping of %{name} has a dimension with two extents; "
                "store a value in between in another mapping"
            )
        stored |= set(planned.writes)


def _follows(op: Operation, places: Places) -> bool:
    """Return whether `op` is a cast of a value that the mapping computes."""
    return isinstance(op, CastOp) and op.input.owner in places


def _with_casts(graph: Graph, places: dict[Operation, int]) -> dict[Operation, int]:
    """Return `places` with each cast where its operand is computed."""
    for op in graph.computing:
        if isinstance(op, CastOp) and isinstance(op.input.owner, Operation):
            places[op] = places.get(op.input.owner, places[op])
    return places


class _Extents:
    """The extents of the dimensions of each mapping."""

    def __init__(self) -> None:
        self._known: dict[int, dict[str, int]] = {}

    def fit(self, op: Operation, place: int) -> bool:
        """Return whether the dimensions of `op` have the same extents there."""
        extents = self._known.get(place, {})
        return all(extents.get(dim, n) == n for dim, n in extents_of_op(op).items())

    def add(self, op: Operation, place: int) -> None:
        """Note the extents of `op`."""
        self._known.setdefault(place, {}).update(extents_of_op(op))
