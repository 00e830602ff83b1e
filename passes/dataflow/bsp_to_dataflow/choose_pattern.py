"""
Chooses the pattern of a program and its tiles.

Every candidate is tried on a copy of the program and priced with its taxes, so the
choice depends only on the program that would be launched. All patterns are priced with
the tiles that kernels have. Then one choice after another is varied, always from the
cheapest candidate: the tiles of each kernel, then how each dimension of messages is
cut. No pattern with present tiles is cheaper than the result, but this search does not
prove that the result is the optimum. The result can be lowered to Triton: it has been,
on such a copy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from math import inf
from typing import Literal, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError
from comet.cost.from_ir.node_figures import KnownFigures
from comet.cost.from_ir.program import machine_for, read_plan
from comet.cost.gpu.bounds import plan_bound
from comet.cost.gpu.taxes import Taxes, price_plan
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound.dims import ceil_div, extents_of
from comet.dialects.dataflow import KernelOp, ProgramOp
from comet.dialects.dataflow.program import programs_in
from comet.dialects.reference import REFERENCE
from comet.passes.analysis.functions import compute_functions, function_names
from comet.passes.dataflow.bsp_to_dataflow.connect import ConnectPass
from comet.passes.dataflow.bsp_to_dataflow.kernel_tiles import other_tiles
from comet.passes.dataflow.bsp_to_dataflow.plan import collective_kernels, moved_result
from comet.passes.dataflow.lower_channels import LowerChannelsPass
from comet.passes.schedule.plan_string import Numbers, PlanEntry, format_plan
from comet.passes.search import Candidate, Cost, Found, cheapest, vary
from comet.passes.triton.lower_to_triton import LowerToTritonPass
from comet.recent import Recent

PatternName: TypeAlias = Literal["bsp", "wait", "pull", "push", "fused"]

PATTERNS: tuple[PatternName, ...] = ("push", "wait", "pull", "fused", "bsp")
"""In order of preference: of equal prices the first is taken."""

TILES = (16, 64, 256)
"""Extents of communication tiles that are tried along each dimension."""

SENT_AS_MADE: tuple[PatternName, ...] = ("pull", "fused")
"""Patterns in which no kernel copies the results of another one."""

MAX_DIMS = 2
"""How many dimensions of messages are varied, the longest ones."""

TRIES = 40
"""The most candidates that are priced, besides each pattern with present tiles."""


FREE = ConnectPass(pattern="auto")
"""The options of a user who has set none: all but the tiles of kernels are varied."""


@dataclass(frozen=True)
class PatternOptions:
    """One config that turns collectives into channels: options of `bsp-to-dataflow`."""

    pattern: PatternName
    persistent: bool = False
    blocks: Numbers = ()
    """How often messages are cut along dimensions."""
    tiles: tuple[PlanEntry, ...] = ()
    """The tiles of kernels that get new ones."""
    sources: Literal["each", "all"] | None = None
    """How consumers visit sources, None: as is usual for the pattern."""

    def options(self, fixed: ConnectPass) -> ConnectPass:
        """Return the pass of this config, with the options that the user has set."""
        tiles = None if fixed.tiles == "auto" else fixed.tiles
        return replace(
            fixed,
            pattern=self.pattern,
            blocks=fixed.blocks or self._cuts or None,
            persistent=self.persistent or None,
            tiles=tiles or format_plan(self.tiles) or None,
            inputs=fixed.inputs if self.pattern == "pull" else "copied",
            sources=fixed.sources or self.sources,
        )

    @property
    def label(self) -> str:
        """The candidate as options."""
        tiles = format_plan(self.tiles)
        sources = "all sources at once" if self.sources == "all" else ""
        parts = ("persistent" if self.persistent else "", sources, self._cuts, tiles)
        return ", ".join((self.pattern, *filter(None, parts)))

    @property
    def _cuts(self) -> str:
        return " ".join(f"{dim}={factor}" for dim, factor in self.blocks)

    def with_tiles(self, entry: PlanEntry) -> PatternOptions:
        """Return the same with other tiles in one kernel."""
        others = {tiles.name: tiles for tiles in self.tiles}
        return replace(self, tiles=tuple({**others, entry.name: entry}.values()))

    def with_block(self, dim: str, factor: int) -> PatternOptions:
        """Return the same with another cut of messages along one dimension."""
        return replace(self, blocks=tuple({**dict(self.blocks), dim: factor}.items()))


@dataclass(frozen=True)
class PatternChoice:
    """The cheapest candidate, and the prices of all that apply."""

    best: PatternOptions
    costs: Mapping[PatternOptions, Taxes]


def choose_pattern(
    module: ModuleOp,
    patterns: Sequence[PatternName] = PATTERNS,
    fixed: ConnectPass = FREE,
) -> PatternChoice:
    """
    Return the cheapest config that connects the ranks of the programs of a module.

    The module has programs of kernels, collectives and barriers, and hardware; it is
    not changed. Options that are set (`fixed`) are not varied, except tiles that are
    `auto`. Raises `PassFailedException` if no pattern applies.
    """
    variations = list(_variations(module, fixed))
    seconds = {
        entry: t for variation in variations for entry, t in variation.kernels.items()
    }
    prices = _Prices(_without_references(module), fixed, seconds)
    kinds = _kinds(module, patterns, fixed)
    varied = [variation.of for variation in variations]
    tried = vary(kinds, varied, prices.cost, TRIES, prices.bound)
    candidates = [Candidate(plan.label, partial(prices.found, plan)) for plan in tried]
    place = function_names(module)
    try:
        best = cheapest("pattern", place, candidates, confirm=prices.lowered).result
    except PassFailedException as error:
        reasons = "; ".join(prices.refused.values())
        raise PassFailedException(f"no pattern applies: {reasons}") from error
    return PatternChoice(best, prices.taxes)


def _kinds(
    module: ModuleOp, patterns: Sequence[PatternName], fixed: ConnectPass
) -> Iterator[PatternOptions]:
    """Yield the patterns, `fused` also with persistent kernels if that is free."""
    produced = any(moved_result(kernel) is not None for kernel in _collectives(module))
    for pattern in patterns:
        if pattern != "fused" or not fixed.persistent:
            yield PatternOptions(pattern)
        if pattern == "fused" and (
            fixed.persistent or (fixed.persistent is None and produced)
        ):
            yield PatternOptions(pattern, persistent=True)


@dataclass(frozen=True)
class Variation:
    """One difference between candidates, with its possible values."""

    kernels: Mapping[PlanEntry, float] = field(default_factory=dict[PlanEntry, float])
    """Other tiles of one kernel, each with the seconds of the kernel with them."""
    cuts: Numbers = ()
    """Factors of one dimension of messages."""
    produced: bool = False
    """Whether kernels compute all messages, so that some patterns copy none."""
    sources: bool = False
    """Whether consumers visit all sources at once."""

    def of(self, candidate: PatternOptions) -> Iterator[PatternOptions]:
        """Yield the candidates that differ from this one only in this."""
        if self.sources and candidate.pattern != "bsp":
            yield replace(candidate, sources="all")
        for entry in self.kernels:
            yield candidate.with_tiles(entry)
        if not (self.produced and candidate.pattern in SENT_AS_MADE):
            for dim, factor in self.cuts:
                yield candidate.with_block(dim, factor)


def _variations(module: ModuleOp, fixed: ConnectPass) -> Iterator[Variation]:
    """Yield the variations in the order in which they are tried."""
    collectives = _collectives(module)
    if fixed.sources is None:
        yield Variation(sources=True)
    if fixed.tiles == "auto":
        for program in _programs(module):
            for kernel in program.kernels():
                if kernel not in collectives:
                    entries = other_tiles(kernel, attached_system(module))
                    yield Variation(kernels=dict(entries))
    if fixed.blocks is None:
        produced = all(moved_result(kernel) is not None for kernel in collectives)
        for dim, extent in _longest_sent(collectives):
            cuts = [ceil_div(extent, tile) for tile in reversed(TILES) if tile < extent]
            loops = tuple((dim, factor) for factor in (1, *cuts))
            yield Variation(cuts=loops, produced=produced)


def _collectives(module: ModuleOp) -> list[KernelOp]:
    """Return the kernels of all programs that are collectives."""
    return [k for program in _programs(module) for k in collective_kernels(program)]


def _longest_sent(collectives: Sequence[KernelOp]) -> list[tuple[str, int]]:
    """Return the longest dimensions of messages, with their extents."""
    extents: dict[str, int] = {}
    for kernel in collectives:
        extents |= extents_of(kernel.ins[0])
    return sorted(extents.items(), key=lambda item: -item[1])[:MAX_DIMS]


@dataclass(frozen=True)
class Priced:
    """The price of a candidate."""

    taxes: Taxes
    least: float
    """A lower bound (seconds) for any cut of messages, 0 if they are cut already."""


MOST_PRICED = 128
"""Prices that are remembered: the last search for a module has those of its trials."""

_PRICED = Recent[Hashable, Priced](MOST_PRICED)
"""Prices by the text of the module, the options, and whether messages are cut."""


class _Prices:
    """The prices of candidates, each computed once."""

    def __init__(
        self,
        module: ModuleOp,
        fixed: ConnectPass,
        kernel_seconds: Mapping[PlanEntry, float],
    ):
        system = attached_system(module)
        self._module, self._text, self._fixed = module, str(module), fixed
        self._kernel_seconds = kernel_seconds
        """The seconds of the kernel that an entry gives other tiles."""
        levels = gpu_levels(system)
        self._machines = [machine_for(program, system) for program in _programs(module)]
        self._figures = [
            KnownFigures(machine.device, levels) for machine in self._machines
        ]
        self._uncut: dict[PatternOptions, float] = {}
        """Lower bounds in seconds: the price of a candidate without cut messages."""
        self.taxes: dict[PatternOptions, Taxes] = {}
        self.refused: dict[PatternName, str] = {}
        """Why the first candidate of each pattern that was refused does not apply."""
        self._reasons: dict[PatternOptions, str] = {}

    def cost(self, candidate: PatternOptions) -> float:
        """Return the nanoseconds of a candidate; infinite if it does not apply."""
        try:
            self.taxes[candidate] = self._price(candidate)
        except (PassFailedException, CostError) as error:
            self._refuse(candidate, error)
            return inf
        return round(self.taxes[candidate].total * 1e9)

    def bound(self, candidate: PatternOptions) -> float:
        """
        Return the nanoseconds that a candidate takes at least.

        That is the slowest kernel with other tiles, or what was found when the same
        candidate was priced with messages that are not cut.
        """
        kernels = [self._kernel_seconds[entry] for entry in candidate.tiles]
        uncut = self._uncut.get(replace(candidate, blocks=()), 0.0)
        return round(max(*kernels, 0.0, uncut) * 1e9)

    def found(self, candidate: PatternOptions) -> Found[PatternOptions]:
        """Return the price of a candidate, or raise why it has none."""
        if candidate in self._reasons:
            raise PassFailedException(self._reasons[candidate])
        if candidate not in self.taxes:
            raise PassFailedException(
                f"takes at least {self.bound(candidate) * 1e-3:,.3f} us, longer than "
                "another candidate"
            )
        taxes = self.taxes[candidate]
        return Found(candidate, Cost(round(taxes.total * 1e9) * 1e-9), taxes.bound)

    def lowered(self, candidate: PatternOptions) -> None:
        """Raise PassFailedException if a candidate cannot be lowered to Triton."""
        lower = PassPipeline((LowerChannelsPass(), LowerToTritonPass()))
        try:
            lower.apply(Context(), with_pattern(self._module, candidate, self._fixed))
        except PassFailedException as error:
            self._refuse(candidate, error)
            del self.taxes[candidate]
            raise

    def _refuse(self, candidate: PatternOptions, error: Exception) -> None:
        self._reasons[candidate] = str(error)
        self.refused.setdefault(candidate.pattern, str(error))

    def _price(self, candidate: PatternOptions) -> Taxes:
        """Return the sum over the programs of the module, and note its lower bound."""
        options, cut = candidate.options(self._fixed), bool(candidate.blocks)
        key = self._text, options, cut
        if (known := _PRICED.get(key)) is None:
            known = _PRICED.keep(key, self._priced(options, cut=cut))
        if not cut:
            self._uncut[candidate] = known.least
        return known.taxes

    def _priced(self, options: ConnectPass, *, cut: bool) -> Priced:
        """Return the price with the channels of a pass, and without cuts its bound."""
        changed = _programs(_connected(self._module, options))
        plans = [
            (read_plan(program, machine.device, figures.of), machine)
            for program, machine, figures in zip(
                changed, self._machines, self._figures, strict=True
            )
        ]
        least = 0.0 if cut else sum(starmap(plan_bound, plans))
        found = list(starmap(price_plan, plans))
        taxes = Taxes(
            sum(taxes.busy for taxes in found),
            sum(taxes.launch for taxes in found),
            sum(taxes.synchronization for taxes in found),
            sum(taxes.locality for taxes in found),
        )
        return Priced(taxes, least)


def with_pattern(
    module: ModuleOp, candidate: PatternOptions, fixed: ConnectPass = FREE
) -> ModuleOp:
    """Return a copy in which the collectives are channels, by the candidate."""
    return _connected(module, candidate.options(fixed))


def _connected(module: ModuleOp, options: ConnectPass) -> ModuleOp:
    """Return a copy in which the collectives are channels, by the options."""
    copy = module.clone()
    options.apply(Context(), copy)
    return copy


def _without_references(module: ModuleOp) -> ModuleOp:
    """Return a copy without reference functions."""
    ops = (op for op in module.ops if REFERENCE not in op.attributes)
    return ModuleOp([op.clone() for op in ops])


def _programs(module: ModuleOp) -> list[ProgramOp]:
    return [p for func in compute_functions(module) for p in programs_in(func)]
