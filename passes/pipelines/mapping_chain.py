"""The chain of mappings of a graph that one mapping cannot hold, and its price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError
from comet.dialects.errors import OpError, about
from comet.passes.analysis.named_numbers import format_numbers
from comet.passes.annotate_cost import AnnotateCostPass
from comet.passes.comet.lower_to_comet.build import check_expressible
from comet.passes.dataflow.nested import NestedPass
from comet.passes.dataflow.outline_mappings import (
    OutlineMappingsPass,
    mapping_module,
    mapping_names,
)
from comet.passes.dataflow.outline_mappings.cuts import cuts, given_mappings, joined
from comet.passes.dataflow.outline_mappings.plan import (
    Chain,
    Graph,
    PlannedMapping,
    check_graph,
)
from comet.passes.explore.quick import AUTO_DIM, UNPADDED, AcceleratorPipeline, priced
from comet.passes.graph.pad.extents import parse_extents
from comet.passes.pipeline import AUTO, run_settled, spelled
from comet.passes.schedule.tile.misfit import NothingFits
from comet.passes.search import (
    FREE,
    Candidate,
    Cost,
    Found,
    cheapest,
    refuse,
    session,
)
from comet.passes.sharding.dim_axes import dims_in, format_dims, parse_dims

MERGED = "merged"
"""The option for chains whose mappings are merged, too."""

Mapped = Found[tuple[ModulePass, ...]]
"""The passes that make a mapping without a search, and its cost."""


@dataclass(frozen=True)
class Rejected:
    """Why a search found no mapping below a ceiling."""

    error: Exception
    ceiling: Cost | None

    def holds_below(self, ceiling: Cost | None) -> bool:
        """Return whether there is no mapping below another ceiling, either."""
        if self.ceiling is None or ceiling is None:
            return self.ceiling is None
        cheaper = ceiling.latency <= self.ceiling.latency
        return cheaper and ceiling.energy <= self.ceiling.energy


@dataclass(frozen=True)
class ChainSearch:
    """The search for the cheapest chain; each mapping is searched once."""

    ctx: Context
    graph: Graph
    pipeline: AcceleratorPipeline
    """The pipeline of each mapping."""
    misfit: NothingFits | None = None
    """Why one mapping does not hold the graph, if its tiles are the reason."""
    _mapped: dict[tuple[Operation, ...], Mapped | Rejected] = field(
        default_factory=dict[tuple[Operation, ...], "Mapped | Rejected"]
    )

    def passes(self, mappings: str) -> Iterator[ModulePass]:
        """Yield the passes that make the chain of an option, or the cheapest."""
        self.check()
        func, pipeline = self.graph.func, self.pipeline
        goal = pipeline.goal
        place = f"@{func.sym_name.data}"
        with about(func):
            chain = cheapest("chain", place, self.candidates(mappings), goal).result
        names = tuple(mapping_names(func, len(chain)))
        yield OutlineMappingsPass(self.graph.text(chain))
        for planned, name in zip(chain, names, strict=True):
            yield NestedPass(name, spelled(self.mapped(planned, name).result))
        yield AnnotateCostPass(pipeline.model)

    def check(self) -> None:
        """
        Raise PassFailedException for a graph or options that no chain has.

        What COMET files cannot say is found before any search.
        """
        func = self.graph.func
        if self.pipeline.factors != AUTO:
            raise OpError(
                func,
                f"{self.pipeline.name}: factors name the nodes of one mapping, and "
                f"@{func.sym_name.data} is a chain; give them to tile inside one of "
                "its modules, as --expand prints it",
            )
        check_graph(self.graph)
        check_expressible(func)

    def candidates(self, mappings: str) -> Iterator[Candidate[Chain]]:
        """Yield the chains that the option leaves open."""
        if mappings not in (AUTO, MERGED):
            chain = given_mappings(self.graph, mappings)
            yield Candidate("given", partial(self.price, chain))
            return
        for label, chain in self.different_cuts():
            yield Candidate(label, partial(self.price, chain))
        if mappings == MERGED:
            _, chain = next(cuts(self.graph))
            yield Candidate(MERGED, partial(self.merged, chain))
        if self.misfit is not None:
            yield Candidate("one mapping", partial(refuse, self.misfit))

    def different_cuts(self) -> Iterator[tuple[str, Chain]]:
        """Yield the different ways to cut the graph whose mappings may fit."""
        seen: list[Chain] = []
        for label, chain in cuts(self.graph):
            if chain not in seen and (self.misfit is None or len(chain) > 1):
                seen.append(chain)
                yield f"{label}: {len(chain)} mappings", chain

    def price(self, chain: Chain) -> Found[Chain]:
        """
        Price a chain: the sums of the latencies and energies of its mappings.

        Raises PassFailedException or CostError if one has no mapping, or none that is
        cheap enough.
        """
        names = mapping_names(self.graph.func, len(chain))
        total, found = FREE, list[Mapped]()
        for planned, name in zip(chain, names, strict=True):
            found.append(self.mapped(planned, name, total))
            total = both(total, found[-1].cost)
        latencies = [mapping.cost.latency for mapping in found]
        longest = latencies.index(max(latencies))
        limit = f"mapping {longest + 1} of {len(chain)}: {found[longest].limit}"
        return Found(tuple(chain), total, limit)

    def merged(self, chain: Chain) -> Found[Chain]:
        """
        Merge two mappings that follow each other while that makes the chain cheaper.

        The merge that saves most comes first. Raises what `price` does.
        """
        found = self.price(chain)
        while (better := self._merge(found)) is not None:
            found = better
        return found

    def _merge(self, found: Found[Chain]) -> Found[Chain] | None:
        """Return a chain with two mappings merged, None if none is cheaper."""
        goal, best = self.pipeline.goal, found
        for index in range(1, len(found.result)):
            before, after = found.result[: index - 1], found.result[index + 1 :]
            pair = joined(self.graph, *found.result[index - 1 : index + 1])
            if pair is None:
                continue
            with suppress(PassFailedException, CostError), session() as current:
                with current.trying(f"merging {index} and {index + 1}", found.cost):
                    trial = self.price((*before, pair, *after))
                    best = min(best, trial, key=lambda priced: goal.order(priced.cost))
        return None if best is found else best

    def mapped(self, planned: PlannedMapping, name: str, spent: Cost = FREE) -> Mapped:
        """
        Return the passes that make a mapping, called `name`; it is searched once.

        `spent` is the cost of the mappings before it. One that was too expensive then
        is searched again where more is left. Raises what `price` does.
        """
        with session() as current:
            ceiling = self._remaining(current.ceilings, spent)
        found = self._mapped.get(planned.ops)
        if found is None or (
            isinstance(found, Rejected) and not found.holds_below(ceiling)
        ):
            found = self._mapped[planned.ops] = self._search(planned, name, ceiling)
        if isinstance(found, Rejected):
            raise found.error
        return found

    def _search(
        self, planned: PlannedMapping, name: str, ceiling: Cost | None
    ) -> Mapped | Rejected:
        module = mapping_module(self.graph.func, planned, name)
        try:
            with session() as current, current.trying(f"mapping @{name}", ceiling):
                pipeline = options_for(self.pipeline, module)
                done = run_settled([pipeline], self.ctx, module)
            return priced(done, module)
        except (PassFailedException, CostError) as error:
            return Rejected(error, ceiling)

    def _remaining(self, ceilings: Sequence[Cost], spent: Cost) -> Cost | None:
        """Return the last ceiling less `spent`, None without one, or for `edp`."""
        if not ceilings or self.pipeline.objective == "edp":
            return None
        ceiling = ceilings[-1]
        return Cost(
            max(0.0, ceiling.latency - spent.latency),
            max(0.0, ceiling.energy - spent.energy),
        )


def both(first: Cost, second: Cost) -> Cost:
    """
    Return the cost of two mappings of a chain.

    The second one reads results of the first one from the root memory, and starts when
    that has ended. So both latencies and energies add up.
    """
    return Cost(
        first.latency + second.latency,
        first.energy + second.energy,
        first.artifact or second.artifact,
    )


def options_for(pipeline: AcceleratorPipeline, module: ModuleOp) -> AcceleratorPipeline:
    """
    Return the pipeline with the options for the dimensions of one mapping.

    A mapping that has none of the named dimensions chooses its own.
    """
    present, dim, pad = set(dims_in(module)), pipeline.dim, pipeline.pad
    if dim not in (None, AUTO_DIM) and (named := parse_dims(dim)):
        entries = [entry for entry in named if entry.dim in present]
        dim = (format_dims(entries),) if entries else None
    if pad not in (AUTO, UNPADDED):
        extents = {d: n for d, n in parse_extents(pad).items() if d in present}
        pad = format_numbers(extents) if extents else UNPADDED
    return replace(pipeline, dim=dim, pad=pad)
