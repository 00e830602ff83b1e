"""
The choices of a structure that are passes with options.

Each class here is one choice. Its `options` yields the passes of each option that
`Constraints` leave open, the default first; it changes no module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from comet.dialects.arch import attached_system
from comet.dialects.collective.base import CollectiveOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.memory_chain import memory_chain
from comet.passes.comet.known_meshes import KnownMeshesPass, narrowed
from comet.passes.explore.constraints import ALL, Constraints, KindOrAuto
from comet.passes.schedule.bind import (
    SEQUENTIAL,
    BindPass,
    Kinds,
    bodies_of,
    can_bind,
    format_bodies,
    siblings_in,
)
from comet.passes.search import Goal
from comet.passes.sharding.place_collectives import PlaceCollectivesPass

Option: TypeAlias = tuple[str, tuple[ModulePass, ...]]
"""An option: its part of a structure's label, and the passes that realize it."""


@dataclass(frozen=True)
class Meshes:
    """The instances that are used, on machines with meshes that are unknown."""

    constraints: Constraints

    def options(self, module: ModuleOp) -> Iterator[Option]:
        """
        Yield all instances, and those of meshes that the COMET tool knows.

        On a machine with known meshes only, these are the same.
        """
        differ = any(narrowed(attached_system(module)))
        if not differ or "whole" in self.constraints.mesh:
            yield "", ()
        if differ and "known" in self.constraints.mesh:
            yield "mesh=known ", (KnownMeshesPass(),)


@dataclass(frozen=True)
class Placements:
    """Kinds and levels of the collectives of a sharded module."""

    constraints: Constraints
    goal: Goal

    def options(self, module: ModuleOp) -> Iterator[Option]:
        """
        Yield each pair of a kind and a level, for all collectives of `module`.

        With the constraint `each`, also each choice of one pair per collective.
        """
        count = sum(isinstance(op, CollectiveOp) for op in module.walk())
        levels, kinds = self.levels(module), self.constraints.kinds
        pairs = list(product(levels, kinds))
        shared = memory_chain(attached_system(module)).shared
        for at, kind in pairs if count else pairs[:1]:
            label = "" if at == shared else f" at={at}"
            label += "" if kind == kinds[0] else f" kind={kind}"
            yield label, (self._pass(kind=kind, at=at),)
        if self.constraints.each and count > 1:
            for chosen in product(pairs, repeat=count):
                if len({*chosen}) > 1:
                    each = "; ".join(f"{kind} {at}" for at, kind in chosen)
                    yield f" each={each}", (self._pass(each=each),)

    def levels(self, module: ModuleOp) -> Sequence[str]:
        """Return the open levels of explicit collectives."""
        system = attached_system(module)
        shared = memory_chain(system).shared
        if self.constraints.at == (ALL,):
            return tuple(dict.fromkeys((shared, *system.axis_levels.values())))
        return self.constraints.at or (shared,)

    def _pass(
        self, kind: KindOrAuto = "auto", at: str | None = None, each: str | None = None
    ) -> PlaceCollectivesPass:
        model, objective = self.goal.model, self.goal.objective
        return PlaceCollectivesPass(
            at=at, kind=kind, each=each, model=model, objective=objective
        )


@dataclass(frozen=True)
class Bindings:
    """How the children of each node of a tile tree are bound."""

    constraints: Constraints

    @property
    def is_sequential(self) -> bool:
        """Whether no other binding is open."""
        return self.constraints.bindings == SEQUENTIAL

    def options(self, module: ModuleOp) -> Iterator[Option]:
        """
        Yield each choice of one kind per node, for the tile tree in `module`.

        With the constraint `mixed`, also each choice of one kind per child.
        """
        (func,) = compute_functions(module)
        open_ = {name: self._kinds(block) for name, block in bodies_of(func)}
        for chosen in product(*open_.values()):
            bodies = format_bodies(dict(zip(open_, chosen, strict=True)))
            if not bodies:
                yield "", ()
            else:
                yield f" bind={bodies}", (BindPass(bodies=bodies),)

    def _kinds(self, block: Block) -> list[Kinds]:
        """Return the legal kinds of bindings of the children in `block`."""
        bindings = self.constraints.bindings
        found: list[Kinds] = [(kind,) for kind in bindings]
        if self.constraints.mixed:
            count = len(siblings_in(block)) - 1
            several = product(bindings, repeat=count)
            found += [kinds for kinds in several if len({*kinds}) > 1]
        return [kinds for kinds in found if can_bind(block, kinds)]
