"""The `comet-accelerator` pipeline: named ops to the ops that mirror COMET files."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import attached_system
from comet.passes.analysis.functions import compute_functions, function_names
from comet.passes.analysis.hardware_kind import require_accelerator
from comet.passes.comet.known_meshes import KnownMeshesPass, narrowed
from comet.passes.dataflow.outline_mappings.cuts import cuts
from comet.passes.dataflow.outline_mappings.plan import Graph, check_graph
from comet.passes.explore.config import ChosenPasses, ShardingConfig
from comet.passes.explore.quick import AUTO_DIM, AcceleratorPipeline
from comet.passes.graph.decompose import DecomposePass
from comet.passes.graph.expansions import expansions_of
from comet.passes.graph.sink_casts import SinkCastsPass, shows_casts
from comet.passes.pipeline import AUTO, run_passes
from comet.passes.schedule.tile.misfit import NothingFits
from comet.passes.search import session
from comet.passes.search.record import Choice, Row
from comet.passes.sharding.dim_axes import parse_dims

if TYPE_CHECKING:
    from comet.passes.explore.constraints import Constraints

DECOMPOSE = DecomposePass(accumulator="input")

ONE = "one"
"""The value of `mappings` for one mapping: a graph is never cut."""


@dataclass(frozen=True)
class CometAcceleratorPass(AcceleratorPipeline):
    """
    Compile a named compound op for a spatial accelerator.

    Before: named or elementary ops, with the hardware attached. After: the `comet`
    dialect, ready for `-t comet`; a graph that one mapping cannot hold is a chain, with
    each mapping in a module of its own. Each of its passes can be run alone.
    """

    search: Literal["quick", "exact"] = "quick"
    """
    How open options are chosen: by sampling and descent (`quick`), or by the branch and
    bound of `comet-explore`, which begins with the mapping of `quick`.
    """

    time_limit: int | float = 60
    """Seconds after which `exact` takes the best mapping so far."""

    mappings: str = AUTO
    """
    See `outline-mappings`; `auto` compares ways to cut a graph that one mapping cannot
    hold, or whose tiles do not fit in one, and `merged` also merges neighbours while
    that makes the chain cheaper, which takes several times as long. `one` never cuts.
    """

    def __post_init__(self) -> None:
        """Check the options, and that an exact search knows them."""
        super().__post_init__()
        if self.search == "quick":
            return
        if not 0 < self.time_limit < inf:
            raise PassFailedException(
                f"{self.name}: time_limit is a positive number of seconds"
            )
        for option, only in (("op", None), ("factors", AUTO), ("bind", "sequential")):
            if getattr(self, option) != only:
                raise PassFailedException(
                    f"{self.name}: search=exact has no choice of '{option}'; leave it "
                    "out, or use search=quick"
                )

    def passes(self, ctx: Context, module: ModuleOp) -> Generator[ModulePass]:
        """Yield the passes of the pipeline for `module`, in order."""
        require_accelerator(self.name, attached_system(module))
        if any(narrowed(attached_system(module))):
            yield KnownMeshesPass()
        expansions, is_chain = self.needs(ctx, module)
        if expansions or is_chain:
            yield DECOMPOSE
        yield from expansions
        if is_chain:
            if shows_casts(module):
                yield SinkCastsPass()
            (func,) = compute_functions(module)
            yield from self.chain(ctx, Graph(func), self.mappings)
        elif self.search == "quick":
            yield from super().passes(ctx, module)
        else:
            yield from self.best_or_chain(ctx, module)

    def needs(
        self, ctx: Context, module: ModuleOp
    ) -> tuple[tuple[ModulePass, ...], bool]:
        """Return the passes that expand functions, and whether the graph is cut."""
        elementary = module.clone()
        run_passes([DECOMPOSE], ctx, elementary)
        expansions = expansions_of(elementary)
        graphs = [Graph(func) for func in compute_functions(elementary)]
        if len(graphs) != 1:
            return expansions, False
        if self.mappings in (AUTO, ONE):
            return expansions, self.mappings == AUTO and not graphs[0].is_one_mapping
        return expansions, True

    def chosen(
        self, ctx: Context, module: ModuleOp, configs: Sequence[ShardingConfig]
    ) -> ChosenPasses:
        """
        Return the passes that make the cheapest mapping, or a chain where none fits.

        Raises PassFailedException, with what one mapping needs, if no chain fits.
        """
        graph = self.divisible(module)
        if graph is None:
            return super().chosen(ctx, module, configs)
        try:
            if len(configs) == 1:
                return self.found(ctx, module, configs).result
            return super().chosen(ctx, module, configs)
        except NothingFits as error:
            return ChosenPasses(tuple(self.chain(ctx, graph, AUTO, error)), {})

    def chain(
        self,
        ctx: Context,
        graph: Graph,
        mappings: str,
        misfit: NothingFits | None = None,
    ) -> Iterator[ModulePass]:
        """
        Yield the passes of the chain that `mappings` says, or of the cheapest one.

        `misfit` says why one mapping does not hold the graph, if that was tried.
        """
        from comet.passes.pipelines.mapping_chain import ChainSearch

        search = ChainSearch(ctx, graph, replace(self, mappings=ONE), misfit)
        yield from search.passes(mappings)

    def divisible(self, module: ModuleOp) -> Graph | None:
        """Return the graph of a program that `auto` may cut into several mappings."""
        funcs = tuple(compute_functions(module))
        if self.mappings != AUTO or self.factors != AUTO or len(funcs) != 1:
            return None
        (graph,) = map(Graph, funcs)
        try:
            check_graph(graph)
        except PassFailedException:
            return None
        return graph if any(len(chain) > 1 for _, chain in cuts(graph)) else None

    def best_or_chain(self, ctx: Context, module: ModuleOp) -> Iterator[ModulePass]:
        """Yield the passes of the best mapping, or of a chain where none fits."""
        try:
            yield from self.best(ctx, module)
            return
        except NothingFits as error:
            nothing = error
        yield DECOMPOSE
        if (graph := self.divisible(module)) is None:
            raise nothing
        yield from self.chain(ctx, graph, AUTO, nothing)

    def best(self, ctx: Context, module: ModuleOp) -> tuple[ModulePass, ...]:
        """
        Return the passes of the best mapping that an exact search finds; record its
        bound.

        Raises PassFailedException if there is none, or none in time.
        """
        from comet.passes.explore.lowering import lowered
        from comet.passes.explore.search import Exploration
        from comet.passes.explore.space import StructureSpace

        require_accelerator(self.name, attached_system(module))
        self.check_names(module, attached_system(module))
        space = StructureSpace(
            ctx,
            module,
            self.goal,
            self.constraints(),
            allow_artifacts=self.allow_artifacts,
            name=self.name,
        )
        found = Exploration(space, time_limit=self.time_limit)
        with session() as current:
            found.run()
            if (best := found.best) is None:
                raise PassFailedException(
                    f"{self.name}: no valid mapping was found in {self.time_limit:g} "
                    "s; raise time_limit, or set more options"
                )
            row = Row(best.label, best.cost, found.proof)
            names = function_names(module)
            choice = Choice("exact search", names, current.within, (row,), 0)
            current.choices.append(choice)
            best, _ = lowered(found, best)
        return best.passes

    def constraints(self) -> Constraints:
        """Return the values that options leave open to an exact search."""
        from comet.passes.explore.constraints import Constraints

        dim = None if self.dim in (None, AUTO_DIM) else (parse_dims(self.dim or ()),)
        return Constraints(
            dim=dim,
            stream=None if self.stream == AUTO else (self.stream,),
            strategy=None if self.strategy == AUTO else (self.strategy,),
            chunks=None if self.chunks == AUTO else (self.chunks,),
            loops=None if self.loops == AUTO else (self.loops,),
            kind=None if self.kind == AUTO else (self.kind,),
            at=None if self.at is None else (self.at,),
            pad=self.pad,
        )
