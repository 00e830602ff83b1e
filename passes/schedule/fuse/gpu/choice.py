"""
The choice between fusion strategies on GPUs, by the estimated time of their kernels.

`none` gives every contraction its own kernel, and the ops between two of them another;
`partial` makes one kernel with several reduction loops over a row; `full` makes one
kernel that has a whole row in registers; `priority` is priority fusion (`priority.py`);
`auto` takes the cheapest of these. A kernel that does not fit the GPU is cut in two.
Before the cheapest choice is taken, each of its kernels is lowered to Triton; one that
`lower-to-triton` rejects is cut in two, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Literal, TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from comet.cost.gpu.device import Device
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.collective.spmd import rank_count
from comet.dialects.errors import OpError
from comet.dialects.schedule.attributes import NARROW
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.levels import spmd_region
from comet.passes.analysis.stored_values import format_stored, value_names
from comet.passes.dataflow.launches import bound_of_launches, seconds_of_launches
from comet.passes.dataflow.outline_kernels.uneven_shards import uneven_extents
from comet.passes.schedule.fuse.gpu.cut import cut_in_two
from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.fused import Chosen, Fused, Narrowing
from comet.passes.schedule.fuse.gpu.given import given_partition
from comet.passes.schedule.fuse.gpu.groups import (
    elementary_ops,
    partition_of,
)
from comet.passes.schedule.fuse.gpu.launching import (
    dependences_of,
    launched_tilings,
)
from comet.passes.schedule.fuse.gpu.narrow import (
    NarrowedProduct,
    named_products,
    store_narrow,
    stored_products,
    unrounded,
)
from comet.passes.schedule.fuse.gpu.parallel import Way, partitions_by_priority
from comet.passes.schedule.fuse.gpu.plan import (
    Step,
    plan_kernel,
    plan_kernels,
)
from comet.passes.schedule.fuse.gpu.priority import priority_partition
from comet.passes.schedule.fuse.gpu.recompute import free_to_recompute, recomputable_ops
from comet.passes.schedule.fuse.gpu.scatters import stored_by
from comet.passes.schedule.fuse.gpu.simplify import simplify
from comet.passes.schedule.fuse.gpu.trial import Trials
from comet.passes.schedule.fuse.machine import FuseOptions
from comet.passes.schedule.fuse.rewrite import rewrite
from comet.passes.schedule.fuse.strategy import (
    BETWEEN,
    KERNELS,
    STRATEGY,
    Between,
    Name,
    Strategy,
)
from comet.passes.schedule.node_names import name_nodes
from comet.passes.schedule.plan_string import PLAN, format_plan
from comet.passes.schedule.tile.gpu import plan_with, set_estimate
from comet.passes.schedule.tile_tree import Spatial
from comet.passes.search import Candidate, Cost, Found, cheapest, session
from comet.passes.search.answers import Answers

Auto: TypeAlias = Literal["auto"]

CUTS = 4
"""
The most cuts of a strategy's kernels if priority fusion is tried, too.

Each cut prices the halves of a large kernel. A graph that needs more cuts is one for
priority fusion, which finds where to cut.
"""


MOST_CHOSEN = 64
"""The size of the cache of functions: more than a search of plans compares."""

_CHOSEN = Answers[Chosen](MOST_CHOSEN)


def fuse_function(func: FuncOp, system: SystemOp, options: FuseOptions) -> None:
    """
    Rewrite the elementary ops of `func` as the kernels of a GPU.

    Takes the choice with the smallest estimated time, and records its best tiles as the
    plan of `func`. Raises PassFailedException if a kernel with a single op does not fit
    or cannot be lowered, for an op of another level, and if the options `kernels` or
    `narrow` name something that is not legal.
    """
    region = spmd_region(func)
    trials = Trials(
        system,
        launches_merged=options.launches != "none",
        specialize=options.specialize and not (region and uneven_extents(region)),
        several_ranks=region is not None and rank_count(region) > 1,
    )
    search = _Search(func, options, trials, Forms(trials, _forms(options.between)))
    with _CHOSEN.to((trials.machine, options, str(func))) as answer:
        if answer.found is None:
            best, narrowing = search.best()
            answer.found = Chosen.of(best, narrowing)
        else:
            best, narrowing = search.again(answer.found)
        _record(func, best, narrowing.stored, options)
        launched = launched_tilings(best.steps, trials)
        rewrite(func, plan_kernels(func, best.steps, gpu_levels(system)))
        simplify(func)
        name_nodes(func)
    tilings = dict(zip(grid_nodes(func), launched, strict=True))
    func.attributes[PLAN] = StringAttr(format_plan(plan_with(tilings)))
    for node, tiling in tilings.items():
        set_estimate(node, tiling.seconds - trials.gpu.times.launch)


def _record(
    func: FuncOp, best: Fused, narrow: Sequence[str], options: FuseOptions
) -> None:
    """Record the choices for options that are `auto`, as attributes of `func`."""
    ranks, choice = spmd_region(func) is not None, best.choice
    if options.strategy == "auto":
        func.attributes[STRATEGY] = StringAttr(choice.name)
    if options.strategy == options.between == "auto":
        func.attributes[BETWEEN] = StringAttr(_between(choice, ranks))
    if choice.name == "priority" and options.kernels == "auto":
        stored = [tuple(stored_by(kernel)) for kernel in best.kernels]
        text = format_stored(elementary_ops(func), stored)
        func.attributes[KERNELS] = StringAttr(text)
    if options.narrow == "auto":
        func.attributes[NARROW] = StringAttr(" ".join(narrow) or "none")
    elif options.narrow != "none":
        func.attributes[NARROW] = StringAttr(options.narrow)


def _choices(
    strategy: Name | Auto, between: Between | Auto, ranks: bool
) -> Iterator[Strategy]:
    """
    Yield the strategies that the options of the pass allow.

    Products may be recomputed on both sides of a collective, which only `ranks` have.
    For `ranks`, `auto` does not try priority fusion: it makes smaller kernels, which
    wait more often for other ranks, and prices of kernels do not include that.
    """
    across = {"recompute": (True,), "spill": (False,), "auto": (False, True)}[between]
    for recompute in across if ranks else (False,):
        for form in _forms(between):
            if strategy in (form.name, "auto"):
                yield replace(form, recompute=recompute)
    if strategy in ("none", "auto"):
        yield from (Strategy("none", full_rows=full) for full in (True, False))
    if strategy == "priority" or (strategy == "auto" and not ranks):
        for again, eager in product((False, True), repeat=2):
            yield Strategy("priority", recompute=again, eager=eager)


def _forms(between: Between | Auto) -> Iterator[Strategy]:
    """Yield the strategies for one kernel: rows whole, in loops, or with spills."""
    spills = {"recompute": (False,), "spill": (True,), "auto": (False, True)}[between]
    yield Strategy("full", full_rows=True)
    yield from (Strategy("partial", spill=spill) for spill in spills)


def _between(choice: Strategy, ranks: bool) -> Between | Auto:
    """Return the most specific value of the option `between` that allows a choice."""
    if choice.name == "priority":
        return "auto"
    values: tuple[Between, ...] = ("recompute", "spill")
    for value in values:
        if choice in _choices(choice.name, value, ranks):
            return value
    return "auto"


def _label(choice: Strategy) -> str:
    """Return the label of a choice: its option, and its flags."""
    flags = {
        "kept whole": choice.name == "none" and choice.full_rows,
        "spill": choice.spill,
        "recompute across ranks": choice.recompute and choice.name != "priority",
        "recompute": choice.recompute and choice.name == "priority",
        "eager": choice.eager,
    }
    return ", ".join((choice.name, *(name for name, on in flags.items() if on)))


def _of_strategy(
    func: FuncOp, ops: Sequence[Operation], choice: Strategy, cuts: int | None
) -> Fused:
    """Return the kernels of a choice that is not priority fusion."""
    plan = cache(partial(plan_kernel, choice))
    return Fused.of(func, choice, partition_of(ops, choice), plan, cuts)


def _ways(
    ops: Sequence[Operation], merging: Sequence[Strategy], gpu: Device
) -> dict[Strategy, Way]:
    """
    Return the ways of priority fusion to try, without repetitions.

    Only one of them merges eagerly: the one that recomputes ops, if there are such ops.
    """
    recomputed = recomputable_ops(ops, gpu) if merging else frozenset[Operation]()
    return {
        choice: Way(recomputed if choice.recompute else frozenset(), choice.eager)
        for choice in merging
        if (recomputed or not choice.recompute)
        and (not choice.eager or choice.recompute == bool(recomputed))
    }


def _without_repeats(choices: Iterable[Fused]) -> Iterable[Fused]:
    """Return the choices, only the first of those with the same kernels."""
    found: dict[tuple[Step, ...], Fused] = {}
    for fused in choices:
        found.setdefault(fused.steps, fused)
    return found.values()


@dataclass(frozen=True)
class _Search:
    """The search for the cheapest kernels of a function."""

    func: FuncOp
    options: FuseOptions
    trials: Trials
    forms: Forms

    def best(self) -> tuple[Fused, Narrowing]:
        """
        Return the cheapest kernels, and the products that are chosen to be narrow.

        Products are returned by name, and cast in the function; so are those that the
        option `narrow` names, which are not returned.
        """
        self._store_named()
        wide, fitting = self._wide()
        if self.options.narrow == "auto":
            return self._narrowed(wide, fitting)
        return wide.result, Narrowing()

    def again(self, chosen: Chosen) -> tuple[Fused, Narrowing]:
        """
        Return what `best` returned for an equal function, and insert the same casts.
        """
        self._store_named()
        func, choice, narrowing = self.func, chosen.choice, chosen.narrowing
        tried = named_products(elementary_ops(func), " ".join(narrowing.tried))
        casts = [store_narrow(product) for product in tried]
        for name, cast in zip(narrowing.tried, casts, strict=True):
            if name not in narrowing.stored:
                cast.undo()
        ops, plan = elementary_ops(func), self.forms.cheapest
        if choice.name != "priority":
            plan = cache(partial(plan_kernel, choice))
        partition = tuple(tuple(ops[n] for n in group) for group in chosen.groups)
        return Fused.of(func, choice, partition, plan), narrowing

    def _store_named(self) -> None:
        """Cast the products that the option `narrow` names."""
        if (narrow := self.options.narrow) not in ("none", "auto"):
            for product in named_products(elementary_ops(self.func), narrow):
                store_narrow(product)

    def _wide(self) -> tuple[Found[Fused], Sequence[Fused]]:
        """
        Return the cheapest of the choices, and all choices that fit the GPU.

        If the option `kernels` gives the kernels, these are the only choice.
        """
        func, ops = self.func, elementary_ops(self.func)
        if self.options.kernels == "auto":
            return self._cheapest(self._different(ops))
        partition = given_partition(func, ops, self.options.kernels)
        given = Fused.of(func, Strategy("priority"), partition, self.forms.cheapest)
        for kernel in given.kernels:
            if reason := self.trials.misfit(kernel) or self.trials.refusal(kernel):
                raise OpError(func, reason)
        return self._fitted(given), (given,)

    def _different(self, ops: Sequence[Operation]) -> Iterable[Fused]:
        """
        Return the kernels of each choice, without those equal to an earlier one.

        If priority fusion is a choice, the others may be cut only CUTS times.
        """
        func, forms, options = self.func, self.forms, self.options
        ranks = spmd_region(func) is not None
        choices = tuple(_choices(options.strategy, options.between, ranks))
        merging = [choice for choice in choices if choice.name == "priority"]
        cuts = CUTS if merging else None
        found = {
            choice: _of_strategy(func, ops, choice, cuts)
            for choice in choices
            if choice not in merging
        }
        ways = _ways(ops, merging, self.trials.gpu)

        def price_others() -> None:
            for fused in _without_repeats(found.values()):
                with suppress(PassFailedException):
                    self._fitted(fused)

        merged = partitions_by_priority(ops, forms, tuple(ways.values()), price_others)
        for (choice, way), partition in zip(ways.items(), merged, strict=True):
            again, plan = way.recomputed, forms.cheapest
            found[choice] = Fused.of(func, choice, partition, plan, None, again)
        return _without_repeats(found[choice] for choice in choices if choice in found)

    def _cheapest(
        self, choices: Iterable[Fused]
    ) -> tuple[Found[Fused], Sequence[Fused]]:
        """Return the cheapest choice that can be lowered, and all choices that fit."""
        fitting: list[Fused] = []

        def price(fused: Fused) -> Found[Fused]:
            found = self._fitted(fused)
            fitting.append(found.result)
            return found

        candidates = [
            Candidate(_label(fused.choice), partial(price, fused)) for fused in choices
        ]
        place = f"@{self.func.sym_name.data}"
        return cheapest("strategy", place, candidates, confirm=self._lowered), fitting

    def _narrowed(
        self, wide: Found[Fused], fitting: Sequence[Fused]
    ) -> tuple[Fused, Narrowing]:
        """
        Return the best choice if products may be stored narrow, and those that are.

        `wide` is the best of the choices in `fitting` without narrow products; they are
        tried again with casts of their products. If it is one of priority fusion, only
        it is, as that has merged kernels as long as this saved time; and unless kernels
        are given, it merges them further: narrow values may fit where wide ones do not.
        Products are returned by name.
        """
        names = value_names(elementary_ops(self.func))
        by_priority = wide.result.choice.name == "priority"
        tried = (wide.result,) if by_priority else fitting
        storing = {fused: tuple(stored_products(fused.kernels)) for fused in tried}
        products = dict.fromkeys(value for found in storing.values() for value in found)
        if not products:
            return wide.result, Narrowing()
        casts = [store_narrow(product) for product in products]
        self.forms.ops_changed()
        with_casts = {
            fused: fused.with_casts(casts) for fused, found in storing.items() if found
        }
        choices = list(with_casts.values())
        with unrounded(casts):
            self.forms.ops_changed()
            if by_priority and self.options.kernels == "auto":
                choices.append(self._merged_further(with_casts[wide.result]))
            with session() as current, current.trying("narrow auto", None):
                narrow, _ = self._cheapest(_without_repeats(choices))
        kernels = narrow.result.kernels
        label = " ".join(names[c.product] for c in casts if c.is_stored(kernels))
        candidates = [
            Candidate("none", lambda: wide),
            Candidate(label or "none, in other kernels", lambda: narrow),
        ]
        best = cheapest("narrow", f"@{self.func.sym_name.data}", candidates)
        stored = [cast for cast in casts if cast.is_stored(best.result.kernels)]
        narrowing = Narrowing(
            tuple(names[cast.product] for cast in casts),
            tuple(names[cast.product] for cast in stored),
        )
        unused = [cast for cast in casts if cast not in stored]
        return self._undone(best.result, unused), narrowing

    def _merged_further(self, fused: Fused) -> Fused:
        """Return the kernels of a choice, which priority fusion merges further."""
        ops = elementary_ops(self.func)
        # Products that are cast hide the statistics that scale them.
        recomputed = free_to_recompute(ops) | fused.recomputed
        partition = priority_partition(ops, self.forms, recomputed, fused.partition)
        return fused.with_partition(partition)

    def _undone(self, fused: Fused, unused: Sequence[NarrowedProduct]) -> Fused:
        """Undo casts that kernels do not store; return the kernels without them."""
        for cast in unused:
            cast.undo()
        self.forms.ops_changed()
        return fused.undone(unused) if unused else fused

    def _fitted(self, fused: Fused) -> Found[Fused]:
        """
        Return a choice with its price; kernels that do not fit are cut until all do.

        Raises PassFailedException if a kernel does not fit and cannot be cut in two.
        """
        trials = self.trials
        for kernel in fused.kernels:
            if not trials.fits(kernel):
                return self._cut(fused, kernel, partial(trials.misfit, kernel))
        needs = dependences_of(fused.steps).mapped(trials.launched)
        seconds = seconds_of_launches(needs, trials.launches)
        limit = bound_of_launches(needs, trials.launches) if needs.kernels else ""
        return Found(fused, Cost(seconds), limit)

    def _lowered(self, fused: Fused) -> Found[Fused] | None:
        """Return None if all kernels can be lowered, else the choice with one cut."""
        if (refused := self.trials.first_refused(fused.kernels)) is None:
            return None
        kernel, reason = refused
        return self._cut(fused, kernel, lambda: reason)

    def _cut(
        self, fused: Fused, kernel: Spatial, reason: Callable[[], str]
    ) -> Found[Fused]:
        """Cut `kernel`, which is not possible for `reason`; price the choice."""
        if (partition := cut_in_two(fused.partition, kernel)) is None:
            raise OpError(self.func, reason())
        if fused.cuts == 0:
            more = f"more than {CUTS} cuts; priority fusion finds where to cut"
            raise OpError(self.func, more)
        return self._fitted(fused.cut(partition))
