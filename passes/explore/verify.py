"""
The checker of certificates: it shares the space, bounds and prices with the search.

It walks the space in its own order. Each part of a structure must have a bound that is
not below the claim, or be cut into parts that have; each plan whose price is below the
claim must be illegal. `tool` has no bounds, so each plan is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from comet.cost.accelerator.bindings import lanes_of
from comet.cost.accelerator.bounds import completion_bound
from comet.cost.accelerator.legality import check_tool
from comet.cost.accelerator.model import price, price_many
from comet.cost.estimate import CostError
from comet.cost.from_ir.mapping import estimate_module
from comet.passes.explore.certificate import (
    Certificate,
    CertificateError,
    Claim,
    key_text,
)
from comet.passes.explore.space import Group, StructureSpace
from comet.passes.explore.structure import REJECTED, Structure
from comet.passes.schedule.tile.factor_space import FactorSpace, Parts
from comet.passes.schedule.tile.template import Key
from comet.passes.search import Cost, Goal, cost_of

ROWS = 20_000
"""About how many parts are checked at once."""

EXACT = 1e-9
"""The relative tolerance between two evaluations of one formula."""

Bound = Callable[[Parts], NDArray[np.float64]]


def verify(
    certificate: Certificate,
    space: StructureSpace,
    mapped: ModuleOp,
) -> None:
    """
    Check every line of a certificate.

    `mapped` is the program after the certificate's pipeline. Raises CertificateError
    that names the first false line.
    """
    winner = _check_winner(certificate, space.goal, mapped)
    lowest = min(
        _check_claims(certificate, space, winner), _check_rest(certificate, space)
    )
    if certificate.lower_bound > lowest * (1 + EXACT):
        raise CertificateError(
            f"the lower bound {certificate.lower_bound:g}: the claims give {lowest:g}"
        )


def _claims_by_structure(certificate: Certificate) -> dict[str, Claim]:
    """Return the claims; raises CertificateError for one that cannot be true."""
    claims: dict[str, Claim] = {}
    for claim in certificate.claims:
        if claims.setdefault(claim.structure, claim) is not claim:
            raise CertificateError(f"the claim for {claim.structure} is there twice")
        if claim.bound > certificate.value * (1 + EXACT):
            raise CertificateError(
                f"the claim for {claim.structure}: a bound of {claim.bound:g}, more "
                "than the best mapping has"
            )
    return claims


def _check_claims(
    certificate: Certificate, space: StructureSpace, winner: Cost
) -> float:
    """
    Return the lowest bound of all claims, at most the value of the certificate.

    Raises CertificateError for a false claim, for a claim of no structure, and for a
    structure without a claim if there is no bound for such ones.
    """
    claims, lowest = _claims_by_structure(certificate), certificate.value

    def is_closed(group: Group) -> bool:
        nonlocal lowest
        if (claim := claims.pop(group.label, None)) is None:
            return False
        lowest = min(lowest, _check_group(group, space.goal, claim, certificate.value))
        return True

    for structure in space.structures(is_closed):
        if certificate.rest is not None and not claims:
            break
        claim = claims.pop(structure.label, None)
        if claim is None:
            if certificate.rest is None:
                raise CertificateError(f"the structure {structure.label} is missing")
            continue
        bound = _Structure(structure, space, claim, certificate.value, winner).check()
        lowest = min(lowest, bound)
    if claims:
        raise CertificateError(f"there is no structure {next(iter(claims))}")
    return lowest


def _check_rest(certificate: Certificate, space: StructureSpace) -> float:
    """Return the bound of the structures without a claim, infinite if all have one."""
    if certificate.rest is None:
        return inf
    if certificate.rest > space.bound() * (1 + EXACT):
        raise CertificateError(
            f"the bound {certificate.rest:g} of the structures without a claim: "
            f"that of the program is {space.bound():g}"
        )
    return certificate.rest


def _check_winner(certificate: Certificate, goal: Goal, mapped: ModuleOp) -> Cost:
    """
    Return the cost of the pipeline's mapping.

    Raises CostError if it is illegal, CertificateError if its value is another one.
    """
    found = estimate_module(mapped, goal.model)
    value = goal.rank(found.latency, found.energy)[0]
    if abs(value - certificate.value) > EXACT * value:
        raise CertificateError(
            f"the best mapping has the value {value:g}, not {certificate.value:g}"
        )
    return cost_of(found)


def _check_group(group: Group, goal: Goal, claim: Claim, value: float) -> float:
    """
    Return the bound of a claim, at most `value`.

    Raises CertificateError if the bound of the group does not prove it.
    """
    claimed = min(claim.bound, value)
    bound = goal.order(group.bound)[0]
    if bound < claimed * (1 - EXACT):
        raise CertificateError(f"the claim for {group.label}: its bound is {bound:g}")
    return claimed


@dataclass
class _Structure:
    """The check of one claim."""

    structure: Structure
    space: StructureSpace
    claim: Claim
    value: float
    """The objective of the best mapping, above which a claim need not be proven."""
    winner: Cost
    """The cost of the best mapping."""

    def check(self) -> float:
        """
        Return the bound of the claim, at most `value`; infinite without a tile tree.

        Raises CertificateError if it is false.
        """
        claimed = min(self.claim.bound, self.value)
        if self.space.goal.order(self.structure.bound)[0] >= claimed * (1 - EXACT):
            return claimed
        try:
            factors = self.structure.factor_space(self.space.constraints)
        except REJECTED:
            return inf
        keys = tuple(key for nest in factors.nests for key in nest.keys)
        factors = FactorSpace(factors.template, keys, factors.fixed)
        floors = self._floors(factors)
        self._check(factors, self._bounds(factors, floors), claimed, self._plans)
        return claimed

    def _floors(
        self, factors: FactorSpace
    ) -> Mapping[frozenset[Key], tuple[float, float]]:
        """Return the floors of the claim by nest; raise CertificateError if false."""
        found: dict[frozenset[Key], tuple[float, float]] = {}
        lanes = lanes_of(factors.template.problem.root)
        if self.claim.floors and sum(map(len, lanes)) > 1:
            raise self._false("it has floors, and its nests overlap")
        nests = {
            tuple(sorted(map(key_text, nest.keys))): nest for nest in factors.nests
        }
        for floor in self.claim.floors:
            if (nest := nests.pop(floor.keys, None)) is None:
                raise self._false(f"there is no nest {', '.join(floor.keys)}")
            for position, raised in enumerate((floor.cycles, floor.energy)):
                if raised:
                    self._check_floor(nest, position, raised)
            found[frozenset(nest.keys)] = (floor.cycles, floor.energy)
        return found

    def _check_floor(self, nest: FactorSpace, position: int, raised: float) -> None:
        """
        Check that a nest raises the bound by `raised` with any loops.

        `position` is 0 for cycles, 1 for pJ.
        """

        def bound(parts: Parts) -> NDArray[np.float64]:
            figure = self._figures(nest, parts)[position]
            return np.broadcast_to(figure, parts.count)

        def plans(space: FactorSpace, parts: Parts, limit: float) -> None:
            low = bound(parts) < limit
            if (low & space.room(parts)).any():
                raise self._false(f"a nest adds less than {raised:g}")

        limit = (float(bound(nest.whole)[0]) + raised) * (1 - EXACT)
        self._check(nest, bound, limit, plans)

    def _figures(
        self, factors: FactorSpace, parts: Parts
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        latency, energy = completion_bound(
            factors.mappings(parts),
            factors.template.hardware,
            factors.open_loops(parts),
            self.space.goal.model,
        )
        return np.asarray(latency), np.asarray(energy)

    def _bounds(
        self,
        factors: FactorSpace,
        floors: Mapping[frozenset[Key], tuple[float, float]],
    ) -> Bound:
        def bound(parts: Parts) -> NDArray[np.float64]:
            latency, energy = self._figures(factors, parts)
            looped = factors.looped_keys(parts)
            for keys, (cycles, spent) in floors.items():
                if not keys & looped:
                    latency, energy = latency + cycles, energy + spent
            rank = self.space.goal.rank(latency, energy)[0]
            return np.broadcast_to(rank, parts.count)

        return bound

    def _check(
        self,
        factors: FactorSpace,
        bound: Bound,
        limit: float,
        plans: Callable[[FactorSpace, Parts, float], None],
    ) -> None:
        """Check that no plan of a space is below `limit`."""
        limit = limit * (1 - EXACT)
        if factors.is_plan(factors.whole):
            plans(factors, factors.whole, limit)
            return
        waiting = [factors.whole] if bound(factors.whole)[0] < limit else []
        while waiting:
            parts = waiting.pop()
            for child in factors.cut(parts):
                if factors.is_plan(child):
                    plans(factors, child, limit)
                    continue
                low = child.where(bound(child) < limit)
                low = low.where(factors.room(low)) if low.count else low
                step = max(1, ROWS // factors.width(low))
                for first in range(0, low.count, step):
                    last = min(first + step, low.count)
                    waiting.append(low.where(np.arange(first, last)))

    def _plans(self, factors: FactorSpace, parts: Parts, limit: float) -> None:
        """Check that plans priced below `limit` are illegal."""
        template, goal = factors.template, self.space.goal
        if goal.model == "tool":
            self._all_plans(factors, parts)
            return
        prices = price_many(factors.mappings(parts), template.hardware, goal.model)
        low = np.broadcast_to(
            goal.rank(prices.latency, prices.energy)[0] < limit, parts.count
        )
        if not low.any():
            return
        below = parts.where(low)
        for index in np.flatnonzero(factors.legal(below)):
            try:
                problem = template.problem_for(factors.plan(below, int(index)))
                check_tool(problem, template.hardware)
                price(problem, template.hardware, goal.model)
            except CostError:
                continue
            raise self._false(f"it has a mapping below {limit:g}")

    def _all_plans(self, factors: FactorSpace, parts: Parts) -> None:
        """Check that each plan is illegal, or no better than the best mapping."""
        template, order = factors.template, self.space.goal.order
        for index in np.flatnonzero(factors.legal(parts)):
            try:
                problem = template.problem_for(factors.plan(parts, int(index)))
                cost = cost_of(price(problem, template.hardware, "tool"))
            except CostError:
                continue
            if order(cost)[0] < order(self.winner)[0] or (
                self.winner.artifact and order(cost) < order(self.winner)
            ):
                raise self._false(f"it has a mapping below {self.value:g}")

    def _false(self, reason: str) -> CertificateError:
        return CertificateError(f"the claim for {self.structure.label}: {reason}")
