"""What a search knows: the best mapping, and a lower bound for every structure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from xdsl.passes import ModulePass

from comet.cost.estimate import figure_text
from comet.passes.explore.space import Group, StructureSpace
from comet.passes.explore.structure import REJECTED, Structure
from comet.passes.schedule.tile.accelerator import TilePlan
from comet.passes.schedule.tile.exact import LOWER_BOUND, Exact, Floors
from comet.passes.schedule.tile.factor_space import FactorSpace
from comet.passes.search import Cost, Found, Goal, session

REFUSED = "refused by a pass"
"""The reason, besides bounds, why a structure is closed."""

CONSTRAINED = "factors of a constraint"
"""The reason, if fixed factors do not divide its extents."""


@dataclass(frozen=True)
class Best:
    """The best mapping that is known."""

    label: str
    """Its structure."""
    passes: tuple[ModulePass, ...]
    """The passes that make it, without a search."""
    cost: Cost


@dataclass
class Item:
    """The state of a structure, or of a group of closed ones, in the search."""

    label: str
    structure: Structure | None
    """None for a group."""
    bound: float
    """No mapping of it has a lower objective."""
    counted: str
    """The costs that the bound counts."""
    space: FactorSpace | None = None
    """Its factors and loop orders; None if it has not been realized."""
    finished: bool = False
    evaluated: int = 0
    """How many of its mappings were priced; each search starts with the same ones."""
    floors: Floors = ()
    """The minimum that its nests add, if the bound depends on it."""
    pruned: Counter[str] = field(default_factory=Counter[str])
    """How many parts of its search space were pruned, by the reason."""
    sampled: bool = False
    """Whether it was searched by samples and descent."""


def bound_text(
    objective: str, lower_bound: float | None, gap: float | None, *, proven: bool
) -> str:
    """
    Return the lower bound, the gap and whether the best mapping is proven, as text.

    The bound is in cycles, pJ, or their product, the gap a fraction; both are None if
    no bound is known.
    """
    if lower_bound is None or gap is None:
        return f"no lower bound of the {objective}, not proven"
    state = "proven" if proven else "not proven"
    bound = f"lower bound of the {objective}: {figure_text(lower_bound)}"
    return f"{bound}, gap {100 * gap:.2f} %, {state}"


@dataclass
class State:
    """The state of a search, for any order in which it visits structures."""

    space: StructureSpace
    tolerance: float = 0.0
    """The search ends when the gap is at most this fraction."""
    notify: Callable[[State], None] = lambda _: None
    """Called whenever a structure has been searched, or a mapping is better."""
    best: Best | None = field(default=None, init=False)
    items: list[Item] = field(default_factory=list[Item], init=False)
    refused: str = field(default="", init=False)
    """Why there is no mapping to start from, if a search for one failed."""
    rest: float = field(default=0.0, init=False)
    """A bound for the structures that are no items, infinite if there are none."""

    @property
    def goal(self) -> Goal:
        """The model, and what is minimized."""
        return self.space.goal

    @property
    def objective(self) -> float:
        """The best objective; infinite if there is no mapping, or only an artifact."""
        return inf if self.best is None else self.goal.order(self.best.cost)[0]

    @property
    def lower_bound(self) -> float:
        """No mapping of the space has a lower objective; 0 if nothing is known."""
        return min(self.objective, self.rest, *(item.bound for item in self.items))

    @property
    def known_bound(self) -> float | None:
        """
        The lower bound, None if none is known.

        That is so under `tool`, unless every mapping was priced.
        """
        if self.goal.model != "tool":
            return self.lower_bound
        if not self.proven or self.best is None:
            return None
        return self.goal.rank(self.best.cost.latency, self.best.cost.energy)[0]

    @property
    def gap(self) -> float:
        """By which fraction of its objective the best mapping may be improved."""
        best = self.objective
        return 1 - self.lower_bound / best if 0 < best < inf else 0.0

    @property
    def proven(self) -> bool:
        """Whether it is proven that no mapping of the space is better."""
        return self.best is not None and self.complete and self.gap <= 1e-12

    @property
    def proof(self) -> str:
        """The lower bound, the gap and whether it is closed, as text."""
        bound = self.known_bound
        return bound_text(self.goal.objective, bound, self.gap, proven=self.proven)

    @property
    def complete(self) -> bool:
        """Whether each structure was searched completely, or closed by its bound."""
        return self.is_above(self.rest) and all(item.finished for item in self.items)

    @property
    def size(self) -> int:
        """How many mappings the realized structures have, whether they fit or not."""
        return sum(item.space.size for item in self.items if item.space is not None)

    @property
    def evaluated(self) -> int:
        """How many of these were priced."""
        return sum(item.evaluated for item in self.items)

    @property
    def closed_by(self) -> dict[str, int]:
        """How many structures and groups are closed, by what their bound counts."""
        return _by_count(Counter(item.counted for item in self.items if item.finished))

    @property
    def pruned_by(self) -> dict[str, int]:
        """How many parts of the search spaces were pruned, by the reason."""
        return _by_count(sum((item.pruned for item in self.items), Counter[str]()))

    @property
    def rejected_by(self) -> dict[str, int]:
        """How many structures passes reject, by the reason."""
        return _by_count(Counter(self.space.rejected.values()))

    @property
    def rejection(self) -> str:
        """
        Why the first structure without a mapping has none, or else why the search for
        a mapping to start from found none; empty if all have one.
        """
        for label, reason in self.space.rejected.items():
            count = len(self.space.rejected)
            return f"the first of {count} structures, {label}, is rejected: {reason}"
        return self.refused

    def is_above(self, bound: float) -> bool:
        """Return whether no mapping with this lower bound can be better."""
        return bound >= self.objective * (1 - self.tolerance)

    def is_better(self, cost: Cost) -> bool:
        """Return whether a cost is below that of the best mapping, if there is one."""
        order = self.goal.order
        return self.best is None or order(cost) < order(self.best.cost)

    def start(self) -> None:
        """
        Bound all structures, and set `best` to the mapping to start from, if any.

        No time limit ends the search for this mapping, only Ctrl-C.
        """
        self.rest = self.space.bound()
        with session() as current, current.until(inf):
            try:
                found = self.space.default()
            except REJECTED as error:
                self.refused = str(error)
                return
        if found is not None and self.is_better(found.cost):
            name = "the start" if self.space.start else "comet-accelerator"
            self.best = Best(name, found.result, found.cost)

    def closes(self, group: Group) -> bool:
        """Return whether no mapping of a group can be better, and note it if so."""
        bound = self.goal.order(group.bound)[0]
        if self.is_above(bound):
            counted = self.goal.counted(group.bound)
            self.items.append(Item(group.label, None, bound, counted, finished=True))
            return True
        return False

    def noted(self, structure: Structure) -> Item:
        """Return a new item for a structure, also added to `items`."""
        bound = self.goal.order(structure.bound)[0]
        counted = self.goal.counted(structure.bound)
        self.items.append(Item(structure.label, structure, bound, counted))
        return self.items[-1]

    def is_closed(self, item: Item) -> bool:
        """Return whether a structure is finished, which its bound may make it."""
        if self.is_above(item.bound):
            item.finished = True
        return item.finished

    def open_items(self) -> Sequence[Item]:
        """Return the unfinished structures, the one with the lowest bound first."""
        open_items = [item for item in self.items if not self.is_closed(item)]
        return sorted(open_items, key=lambda item: item.bound)

    def realized(self, item: Item) -> FactorSpace | None:
        """
        Return the factors of a structure; None if it has no tile tree.

        The first call may raise its bound, to that of the tree without factors.
        """
        assert item.structure is not None
        if item.space is None:
            try:
                item.space = item.structure.factor_space(self.space.constraints)
            except REJECTED as error:
                self.space.rejected[item.label] = str(error)
                item.bound, item.finished, item.counted = inf, True, REFUSED
                return None
            if item.space.fixed and not item.space.size:
                item.bound, item.finished, item.counted = inf, True, CONSTRAINED
                return item.space
            bound = float(Exact(item.space, self.goal).bounds(item.space.whole)[0])
            if bound > item.bound:
                item.bound, item.counted = bound, LOWER_BOUND
        return item.space

    def take(self, item: Item, found: Found[TilePlan]) -> None:
        """Set `best` to a mapping of a structure."""
        structure = item.structure
        assert structure is not None
        passes = structure.passes_of(found.result, self.goal.model)
        self.best = Best(structure.label, passes, found.cost)


def _by_count(counter: Counter[str]) -> dict[str, int]:
    """Return the positive counts, the largest first."""
    return {reason: count for reason, count in counter.most_common() if count > 0}
