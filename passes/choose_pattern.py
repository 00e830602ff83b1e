"""
Chooses how the ranks of a program talk: pattern and communication tiles together.

Every candidate is tried on a copy of the module and priced with its taxes, so that the
choice rests on nothing but the program that would be launched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError
from comet.cost.launch_plan import Plan
from comet.cost.taxes import Taxes, price_plan
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.compound_dims import extents_of
from comet.dialects.dataflow import ProgramOp
from comet.passes.functions import compute_functions
from comet.passes.gpu_levels import gpu_levels
from comet.passes.launch_plans import in_place, machine_for, plan_of

PatternName: TypeAlias = Literal["bsp", "wait", "pull", "push", "fused"]

PATTERNS: tuple[PatternName, ...] = ("push", "wait", "pull", "fused", "bsp")
"""The ladder; of equals the first is taken."""

TILES = (16, 64, 256)
"""Extents of communication tiles that are tried along each dimension."""

MAX_DIMS = 2
"""Dimensions that communication tiles are varied along, the longest ones."""


@dataclass(frozen=True)
class Candidate:
    """One way to turn collectives into channels: options of `bsp-to-dataflow`."""

    pattern: PatternName
    blocks: str | None = None
    persistent: bool = False


@dataclass(frozen=True)
class Choice:
    """The candidate that is cheapest, and what the others cost."""

    best: Candidate
    costs: Mapping[Candidate, Taxes]
    refused: Mapping[PatternName, str]
    """Patterns that apply with no tiles, and why not."""

    def of_pattern(self, pattern: PatternName) -> tuple[Candidate, Taxes] | None:
        """Return the cheapest candidate of one pattern, None if it does not apply."""
        found = [(c, t) for c, t in self.costs.items() if c.pattern == pattern]
        return min(found, key=lambda pair: pair[1].total, default=None)


def choose_pattern(
    module: ModuleOp,
    patterns: Sequence[PatternName] = PATTERNS,
    *,
    graph: bool = False,
    resident: bool = False,
    persistent: bool = False,
) -> Choice:
    """
    Return the cheapest way to connect the ranks of the programs of a module.

    The module holds programs of kernels, collectives and barriers, and hardware; it is
    not changed. `graph` and `resident` say how it will run: as a captured graph, and
    with inputs that lie in symmetric memory. Raises `PassFailedException` if no
    pattern applies.
    """
    costs: dict[Candidate, Taxes] = {}
    refused: dict[PatternName, str] = {}
    for pattern in patterns:
        for candidate in candidates(module, pattern, persistent=persistent):
            try:
                taxes = _cost(module, candidate, graph=graph, resident=resident)
            except (PassFailedException, CostError) as error:
                refused.setdefault(pattern, str(error))
                continue
            costs[candidate] = taxes
    applied = {candidate.pattern for candidate in costs}
    refused = {name: why for name, why in refused.items() if name not in applied}
    if not costs:
        reasons = "; ".join(refused.values())
        raise PassFailedException(f"no pattern does: {reasons}")
    best = min(costs, key=lambda candidate: costs[candidate].total)
    return Choice(best, costs, refused)


def candidates(
    module: ModuleOp, pattern: PatternName, *, persistent: bool = False
) -> Iterator[Candidate]:
    """Yield a pattern with its own tiles, then with others along the longest dims."""
    extents: dict[str, int] = {}
    for program in _programs(module):
        extents |= _sent_extents(program)
    longest = sorted(extents, key=lambda dim: -extents[dim])[:MAX_DIMS]
    options = [_factors(extents[dim]) for dim in longest]
    kinds = (False, True) if persistent and pattern == "fused" else (False,)
    for kind in kinds:
        yield Candidate(pattern, persistent=kind)
        for factors in product(*options) if longest else ():
            rows = zip(longest, factors, strict=True)
            blocks = " ".join(f"{dim}={factor}" for dim, factor in rows)
            yield Candidate(pattern, blocks, kind)


def _factors(extent: int) -> list[int]:
    """Return how often a dimension is cut, whole first."""
    return [1, *(-(-extent // tile) for tile in reversed(TILES) if tile < extent)]


def program_cost(
    program: ProgramOp, system: SystemOp, *, graph: bool = False, resident: bool = False
) -> Taxes:
    """Return the taxes of a program; raises `CostError` if it cannot be priced."""
    machine = machine_for(program, system, graph=graph)
    plan: Plan = plan_of(program, machine, gpu_levels(system))
    return price_plan(in_place(plan) if resident else plan, machine)


def _cost(
    module: ModuleOp, candidate: Candidate, *, graph: bool, resident: bool
) -> Taxes:
    """Return the sum over the programs of a module."""
    changed = with_pattern(module, candidate)
    system = attached_system(changed)
    found = [
        program_cost(program, system, graph=graph, resident=resident)
        for program in _programs(changed)
    ]
    return Taxes(
        sum(taxes.busy for taxes in found),
        sum(taxes.launch for taxes in found),
        sum(taxes.synchronization for taxes in found),
        sum(taxes.locality for taxes in found),
    )


def with_pattern(module: ModuleOp, candidate: Candidate) -> ModuleOp:
    """Return a copy in which the collectives are channels as the candidate says."""
    from comet.passes.bsp_to_dataflow import BspToDataflowPass

    copy = module.clone()
    options = (candidate.pattern, candidate.blocks, candidate.persistent)
    BspToDataflowPass(*options).apply(Context(), copy)
    return copy


def _programs(module: ModuleOp) -> list[ProgramOp]:
    return [
        op
        for function in compute_functions(module)
        for op in function.walk()
        if isinstance(op, ProgramOp)
    ]


def _sent_extents(program: ProgramOp) -> dict[str, int]:
    """Return the extents of what collectives send, by dimension."""
    from comet.passes.bsp_to_dataflow_plan import collective_of

    extents: dict[str, int] = {}
    for kernel in program.kernels():
        if (collective := collective_of(kernel)) is not None:
            extents |= extents_of(collective.input)
    return extents
