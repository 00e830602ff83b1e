"""
The best mapping of a program, with a lower bound for all others.

The search starts from the mapping of `comet-accelerator`. Structures are realised and
searched, the lowest bound first, each for a short time, with the best known cost as the
ceiling; then what is unfinished gets more time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from math import inf
from time import monotonic

from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.passes.annotate_cost import AnnotateCostPass
from comet.passes.comet.lower_to_comet import LowerToCometPass
from comet.passes.explore.space import REJECTED, Group, Structure, StructureSpace
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.plan_string import format_plan
from comet.passes.schedule.tile import TilePass
from comet.passes.schedule.tile.accelerator import TilePlan, TileSearch, search
from comet.passes.schedule.tile.enumerate_plans import Enumeration
from comet.passes.schedule.tile.exact import CAPACITY, LOWER_BOUND, Exact, Floors
from comet.passes.schedule.tile.factor_space import FactorSpace
from comet.passes.search import Cost, Found, Goal, cost_of, session

SEARCHED = "search of parts"
REFUSED = "refused by a pass"
"""The other reasons, besides bounds, why structures are closed."""

FIRST_PATIENCE = 50_000
"""
The work, as `patience` of `Exact`, that each structure gets in the first round.

It takes about a second. A limit in seconds would make the answer depend on the load of
the machine.
"""


AHEAD = 200
"""The most structures that are collected before the first of them is searched."""


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
    """The state of the search in a structure, or in a group of closed ones."""

    label: str
    structure: Structure | None
    """None for a group."""
    bound: float
    """No mapping of it has a lower objective."""
    counted: str
    """What the bound counts."""
    space: FactorSpace | None = None
    """Its factors and loop orders; None if it has not been realised."""
    finished: bool = False
    evaluated: int = 0
    """How many of its mappings were priced; each search starts with the same ones."""
    floors: Floors = ()
    """The least that its nests add, if the bound depends on it."""
    pruned: Counter[str] = field(default_factory=Counter[str])
    """How many parts of its search space were pruned, by the reason."""
    sampled: bool = False
    """Whether it was searched by samples and descent."""


@dataclass
class Exploration:
    """A search. After the time limit, another call of `run` continues it."""

    space: StructureSpace
    time_limit: float = inf
    """Seconds of one call of `run`."""
    tolerance: float = 0.0
    """The search ends when the gap is at most this fraction."""
    notify: Callable[[Exploration], None] = lambda _: None
    """Called whenever a structure has been searched."""
    keeps_best: bool = True
    """Whether Ctrl-C ends the search with the best so far, instead of being raised."""
    best: Best | None = field(default=None, init=False)
    items: list[Item] = field(default_factory=list[Item], init=False)
    seconds: float = field(default=0.0, init=False)
    _coming: Iterator[Structure] | None = field(default=None, init=False)
    """The structures that are not among the items yet."""
    _ahead: int = field(default=1, init=False)
    """How many structures are collected before the first of them is searched."""
    _rest: float = field(default=0.0, init=False)
    """A bound for these, infinite if there are none."""

    @property
    def goal(self) -> Goal:
        """The model, and what is minimized."""
        return self.space.goal

    @property
    def objective(self) -> float:
        """The best objective, infinite if there is no mapping."""
        return inf if self.best is None else self.goal.order(self.best.cost)[0]

    @property
    def lower_bound(self) -> float:
        """No mapping of the space has a lower objective."""
        return min(self.objective, self._rest, *(item.bound for item in self.items))

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
        proven = "proven" if self.proven else "not proven"
        return (
            f"lower bound of the {self.goal.objective} {self.lower_bound:,.6g}, gap "
            f"{100 * self.gap:.2f} %, {proven}"
        )

    @property
    def rest(self) -> float:
        """A bound for the structures that are no items, infinite if there are none."""
        return self._rest

    @property
    def complete(self) -> bool:
        """Whether each structure was searched completely, or closed by its bound."""
        return self._is_above(self._rest) and all(item.finished for item in self.items)

    def _is_above(self, bound: float) -> bool:
        """Return whether no mapping with this lower bound can be better."""
        return bound >= self.objective * (1 - self.tolerance)

    @property
    def size(self) -> int:
        """How many mappings the realised structures have, whether they fit or not."""
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
        """Why the first structure without a mapping has none; empty if all have one."""
        for label, reason in self.space.rejected.items():
            count = len(self.space.rejected)
            return f"the first of {count} structures, {label}, is rejected: {reason}"
        return ""

    def run(self) -> None:
        """
        Search until the gap is closed, the time is up, or Ctrl-C interrupts.

        Raises PassFailedException if there is no valid mapping.
        """
        start = monotonic()
        interrupts = suppress(KeyboardInterrupt) if self.keeps_best else nullcontext()
        allowed = self.space.allow_artifacts
        with interrupts, session() as current, current.allowing_artifacts(allowed):
            self._search(start + self.time_limit)
        self.seconds += monotonic() - start
        if self.best is None and self.complete:
            raise self._failure()

    def _search(self, end: float) -> None:
        if self._coming is None:
            self._rest = self.space.bound()
            self._coming = self.space.structures(self.closes)
            self._start(end)
            self._ahead = 1 if self.best is None else AHEAD
        while monotonic() < end and not self._is_above(self._rest):
            self._search_first(self._reached(end), end)
        patience = FIRST_PATIENCE
        while (left := self._open()) and monotonic() < end:
            patience *= 4
            for item in left:
                self._explore(item, patience, end)

    def _reached(self, end: float) -> list[Item]:
        """
        Return the items of the next structures.

        Without a mapping to start from these are few at first, as their mappings close
        groups of other structures.
        """
        assert self._coming is not None
        found: list[Item] = []
        while monotonic() < end and len(found) < self._ahead:
            if (structure := next(self._coming, None)) is None:
                self._rest = inf
                break
            found.append(self.noted(structure))
        self._ahead = min(AHEAD, 2 * self._ahead)
        return found

    def _search_first(self, items: list[Item], end: float) -> None:
        """Realise items, and search a little in each, the lowest bound first."""
        while items and monotonic() < end:
            item = min(items, key=lambda item: item.bound)
            if self._closed(item) or (item.space is not None):
                items.remove(item)
                self._explore(item, FIRST_PATIENCE, end)
            else:
                self._realise(item)

    def closes(self, group: Group) -> bool:
        """Return whether no mapping of a group can be better, and note it if so."""
        bound = self.goal.order(group.bound)[0]
        if self._is_above(bound):
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

    def _start(self, end: float) -> None:
        """Set `best` to the mapping to start from, if the space has one."""
        with session() as current, current.until(end), suppress(*REJECTED):
            if (found := self.space.default()) is not None:
                name = "the start" if self.space.start else "comet-accelerator"
                self.best = Best(name, found.made, found.cost)

    def _realise(self, item: Item) -> FactorSpace | None:
        """Return the factors of a structure; None if it has no tile tree."""
        assert item.structure is not None
        if item.space is None:
            try:
                item.space = item.structure.factor_space(self.space.constraints)
            except REJECTED as error:
                self.space.rejected[item.label] = str(error)
                item.bound, item.finished, item.counted = inf, True, REFUSED
                return None
            whole = float(Exact(item.space, self.goal).bounds(item.space.whole)[0])
            if whole > item.bound:
                item.bound, item.counted = whole, LOWER_BOUND
        return item.space

    def _open(self) -> Sequence[Item]:
        """Return the unfinished structures, the one with the lowest bound first."""
        left = [item for item in self.items if not self._closed(item)]
        return sorted(left, key=lambda item: item.bound)

    def _closed(self, item: Item) -> bool:
        if self._is_above(item.bound):
            item.finished = True
        return item.finished

    def _explore(self, item: Item, patience: int, end: float) -> None:
        """Search one structure, up to the work `patience` or the time `end`."""
        if self._closed(item) or monotonic() >= end:
            return
        if (space := self._realise(item)) is None or self._closed(item):
            return
        if self.best is None:
            self._sample(item, space, end)
        exact = self._exact(space, patience, end)
        try:
            exact.run()
        finally:
            item.evaluated = max(item.evaluated, exact.evaluated)
            item.pruned = exact.pruned
            if exact.best is not None:
                self.best = self._best(item, exact.best)
        item.finished = not exact.stopped
        if exact.lower_bound > item.bound:
            item.bound, item.floors = exact.lower_bound, exact.floors
            item.counted = SEARCHED
        if item.finished:
            item.counted = CAPACITY if exact.nothing_fits else SEARCHED
        if not item.finished:
            self._sample(item, space, end)
        self.notify(self)

    def _exact(self, space: FactorSpace, patience: int, end: float) -> Exact:
        """Return the search of one structure for a better mapping than the best."""
        if self.goal.model == "tool":
            known = None if self.best is None else self.best.cost
            return Enumeration(
                space,
                self.goal,
                ceiling=self.objective,
                deadline=end,
                patience=patience,
                known=known,
            )
        return Exact(
            space,
            self.goal,
            ceiling=self.objective,
            tolerance=self.tolerance,
            deadline=end,
            patience=patience,
        )

    def is_better(self, cost: Cost) -> bool:
        """Return whether a cost is below that of the best mapping, if there is one."""
        order = self.goal.order
        return self.best is None or order(cost) < order(self.best.cost)

    def _sample(self, item: Item, space: FactorSpace, end: float) -> None:
        """Look for a better mapping in a structure by samples and descent, once."""
        if item.sampled or monotonic() >= end:
            return
        item.sampled = True
        known = None if self.best is None else self.best.cost
        with session() as current, current.until(end), suppress(*REJECTED):
            with current.trying(item.label, known):
                made = search(space.template, self.goal, space.fixed)
            found = Found(made, cost_of(made.estimate))
            if self.is_better(found.cost):
                self.best = self._best(item, found)

    def _best(self, item: Item, found: Found[TilePlan]) -> Best:
        structure = item.structure
        assert structure is not None
        strategy = structure.strategy
        passes = (
            *structure.passes,
            FusePass(strategy.name, strategy.chunks, strategy.loops),
            TilePass(factors=format_plan(found.made.entries())),
            *structure.after,
            AnnotateCostPass(model=self.goal.model),
            LowerToCometPass(),
        )
        return Best(structure.label, passes, found.cost)

    def _failure(self) -> PassFailedException:
        """Return the error that says why there is no mapping."""
        realised = [item for item in self.items if item.space is not None]
        if realised and not self.size:
            return PassFailedException(
                "explore: the constraint 'factors' contradicts the program: in all of "
                f"{len(realised)} structures its factors do not divide the extents, or "
                f"what outer nodes leave of them, such as in {realised[0].label}"
            )
        for item in realised:
            if (reason := _misfit(item, self.goal)) is not None:
                return PassFailedException(
                    "explore: no valid mapping; the tiles of "
                    f"{len(realised)} structures do not fit, such as those of "
                    f"{item.label}: {reason}"
                )
        if not self.items and not self.space.rejected:
            return PassFailedException(
                "explore: the constraints contradict each other or the program: they "
                "leave no structure, such as stream: true where nothing streams; "
                "constrain less"
            )
        if realised:
            return PassFailedException(
                "explore: no valid mapping: in each of the "
                f"{len(self.items)} structures, the tiles exceed a buffer or the rules "
                "of the COMET format; constrain less"
            )
        return PassFailedException(f"explore: no valid mapping; {self.rejection}")


def _by_count(counter: Counter[str]) -> dict[str, int]:
    """Return the positive counts, the largest first."""
    return {reason: count for reason, count in counter.most_common() if count > 0}


def _misfit(item: Item, goal: Goal) -> str | None:
    """Return why the finest tiles of a structure do not fit, None if they do."""
    assert item.space is not None
    try:
        TileSearch(item.space.template, goal, item.space.fixed).start()
    except REJECTED as error:
        return str(error)
    return None
