"""
Chooses split-K: the parts of a reduction whose few results leave multiprocessors idle.

A kernel has one program for each tile of its results: decoding has few, and so has a
product with few rows. Each number of parts is tried on a copy of the module, which is
lowered to kernels and priced. Products that read one value are split together, as one
launch may have all of them. Those of a long function are tried in small functions, as
each trial fuses its function again; so are those of several ranks, which are split
where ranks exchange neither operands nor results.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from math import inf, prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.program import priced
from comet.cost.gpu.device import Device
from comet.cost.gpu.taxes import PlanTime
from comet.dialects.arch import attached_system
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import ContractOp, FoldOp
from comet.dialects.compound.dims import (
    ceil_div,
    elements_of,
    joined_extents,
    names_of,
)
from comet.dialects.cost import estimate_of
from comet.dialects.dataflow.program import programs_in
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.accumulators import addends, only_added
from comet.passes.analysis.functions import compute_functions, function_names
from comet.passes.analysis.levels import compute_block
from comet.passes.graph.split import SplitPass, ops_with, plan_split
from comet.passes.graph.split.products import products_of
from comet.passes.graph.split.shards import Shards, shards_in
from comet.passes.graph.split.trials import described, products_alone
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.fuse.gpu.trial import Noted, noted
from comet.passes.search import Candidate, Cost, Found, NotCheaper, cheapest
from comet.passes.search.ahead import Ahead, ahead
from comet.passes.search.answers import Answers

MIN_PART = 128
"""Elements of the smallest part that is tried."""

MAX_ROWS = 128
"""The most results of a program of a fold: more results give enough programs."""

TILE = 64
"""
Rows and columns of a tile by which the programs of a product are counted: with fewer,
operands are loaded too often.
"""

MAX_OPS = 32
"""The most ops of a function, or of its region, that is compiled to try a choice."""

PATIENCE = 4
"""
How many times the parts of the fastest split are tried before a search ends: kernels of
the next one may be of other forms, and slower.
"""

LEAST_EXCHANGES = 4
"""
The seconds of products of a long function that are split, as a multiple of those in
which the last program sees the stores of others: it saves little of shorter ones.
"""

LEAST_SAVED = 0.08
"""
What a split saves of the time of the products of a long function, at least: the kernels
of the function may be others than those of the products alone.
"""

WAVES = 8
"""The most programs that are tried, as a multiple of the number of multiprocessors."""


MOST_REMEMBERED = 64
"""Groups of products whose fastest splits are remembered: those of several copies."""

_FASTEST = Answers[Sequence[int]](MOST_REMEMBERED)
"""The numbers of the fastest splits, by the module, the splits, and what follows."""


@dataclass(frozen=True)
class Limits:
    """Which splits are not made although they are estimated to be faster."""

    seconds: float = 0.0
    """Those of modules that take less than this."""
    saved: float = 0.0
    """Those that save a smaller fraction of the time."""


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Trials:
    """How splits are tried: on copies of a module, by passes that lower it."""

    module: ModuleOp
    rest: Sequence[ModulePass]
    limits: Limits = NO_LIMITS
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names of products in this module, where it is not the one to be split."""

    def time(self, splits: Iterable[SplitPass], gpu: Device) -> PlanTime:
        """Return the estimated time of the module after some splits."""
        here = (self.here(split) for split in splits)
        return _time(self.module, (*here, *self.rest), gpu)

    def here(self, split: SplitPass) -> SplitPass:
        """Return a split with the names that its products have in this module."""
        names = split.products.split() if split.products else []
        here = " ".join(self.names.get(name, name) for name in names)
        return replace(split, products=here or None)


def choose_splits(
    module: ModuleOp,
    ranks: int,
    to_kernels: Sequence[ModulePass],
    to_plans: Sequence[ModulePass],
) -> list[SplitPass]:
    """
    Return the splits that make the kernels of a module fastest, none if none helps.

    The module is at the elementary level with hardware; it is not changed. `to_kernels`
    are the passes that lower it to kernels, `to_plans` those that make launch plans of
    them, in which the last program to arrive can merge the parts.
    """
    gpu = device_of(attached_system(module))
    folds = [
        [SplitPass(dim, parts) for parts in part_counts(extent, ranks, gpu)]
        for dim, extent in folds_of_few_results(module, gpu).items()
    ]
    groups = list(products_by_operand(module))
    rest = (*to_kernels, *to_plans)
    limits = Limits(
        gpu.times.launch + LEAST_EXCHANGES * gpu.times.exchange, LEAST_SAVED
    )
    if ranks == 1 and not is_long(module):
        products = [group.splits(gpu) for group in groups]
        return fastest_splits(Trials(module, rest), [*products, *folds])
    if found := fastest_splits(Trials(module, to_kernels), folds):
        return found
    found = list(_of_products(module, groups, by_priority(rest), limits))
    return found[::-1]  # A split numbers later values anew, which may name products.


def _of_products(
    module: ModuleOp,
    groups: Iterable[Products],
    rest: Sequence[ModulePass],
    limits: Limits,
) -> Iterator[SplitPass]:
    """
    Yield the fastest split of each group of products, tried in functions of their own.

    Equal products, such as those of the layers of a model, are tried once.
    """
    gpu = device_of(attached_system(module))
    known: dict[Hashable, Sequence[int]] = {}
    for group in groups:
        if splits := group.splits(gpu):
            alone = group.alone(module)
            key = described(alone), tuple((each.dim, each.parts) for each in splits)
            if key not in known:
                trials = Trials(alone, rest, limits, group.names_in(alone))
                known[key] = _fastest_of_products(trials, splits)
            yield from (splits[index] for index in known[key])


def _fastest_of_products(trials: Trials, splits: Sequence[SplitPass]) -> Sequence[int]:
    """Return the number of the fastest split of products, if any is fast enough."""
    passes, limits = tuple(trials.rest), trials.limits
    with _FASTEST.to((str(trials.module), tuple(splits), passes, limits)) as answer:
        if answer.found is None:
            found = fastest_splits(trials, [splits])
            answer.found = [splits.index(split) for split in found]
        return answer.found


def by_priority(passes: Sequence[ModulePass]) -> list[ModulePass]:
    """Return passes of which `fuse` compares fewer strategies: trials are many."""
    return [
        replace(each, strategy="priority")
        if isinstance(each, FusePass) and each.strategy == "auto"
        else each
        for each in passes
    ]


def fastest_splits(
    trials: Trials, options: Sequence[Sequence[SplitPass]]
) -> list[SplitPass]:
    """Return the fastest of each of `options`, in the order of what they save."""
    chosen: list[SplitPass] = []
    left = [splits for splits in options if splits]
    while left:
        found = _fastest(trials, chosen, left)
        if found is None:
            break
        chosen.append(found)
        left = [splits for splits in left if found not in splits]
    return chosen


def _fastest(
    trials: Trials,
    before: Sequence[SplitPass],
    options: Sequence[Sequence[SplitPass]],
) -> SplitPass | None:
    """Return the fastest split after those `before`, None if none helps."""
    gpu, limits = device_of(attached_system(trials.module)), trials.limits
    tried: dict[SplitPass | None, float] = {}
    splits = (None, *chain.from_iterable(options))
    number = {split: index for index, split in enumerate(splits)}
    lists = [(*before, *((split,) if split else ())) for split in splits]
    tasks = [partial(noted, partial(trials.time, each, gpu)) for each in lists]

    def price(
        split: SplitPass | None, done: Ahead[Noted[PlanTime]]
    ) -> Found[SplitPass | None]:
        tried[split] = inf
        time = done.result(number[split]).learned()
        seconds = time.seconds
        whole = tried.get(None, inf)
        if split is not None and (1 - limits.saved) * whole < seconds < whole:
            raise NotCheaper(f"{1e6 * seconds:.3f} us, which saves too little")
        tried[split] = seconds
        return Found(split, Cost(seconds), time.bound)

    def candidates(
        done: Ahead[Noted[PlanTime]],
    ) -> Iterator[Candidate[SplitPass | None]]:
        yield Candidate("none", partial(price, None, done))
        for splits in options if tried[None] >= limits.seconds else ():
            for split in splits:
                yield Candidate(split.label, partial(price, split, done))
                best = min(tried, key=tried.__getitem__)
                if split.parts >= PATIENCE * _parts_to_beat(best, splits):
                    break  # More parts would be slower still.

    try:
        place = function_names(trials.module)
        with ahead(tasks) as done:
            return cheapest("split", place, candidates(done)).result
    except PassFailedException:
        return None  # The passes will raise the error when they run.


def _parts_to_beat(best: SplitPass | None, splits: Sequence[SplitPass]) -> float:
    """
    Return the parts of the fastest split so far if it is one of `splits`.

    A product as a whole is one part. A fold may need many to be faster than that.
    """
    if best in splits and best is not None:
        return best.parts
    return 1 if splits[0].products else inf


def folds_of_few_results(module: ModuleOp, gpu: Device) -> dict[str, int]:
    """
    Return the dimensions whose folds leave multiprocessors idle, with extents.

    Only those that `split` accepts.
    """
    found: dict[str, int] = {}
    for func in compute_functions(module):
        for op in func.body.block.ops:
            if not isinstance(op, FoldOp):
                continue
            dim = op.dim.data
            if _results(op) < gpu.multiprocessors * MAX_ROWS and _takes(func, dim):
                found[dim] = joined_extents(op.operands)[dim]
    return found


@dataclass(frozen=True)
class Products:
    """Products that sum over the same dimensions and read one value, by name."""

    by_name: Mapping[str, ContractOp]
    shards: Shards = field(default_factory=Shards)

    def splits(self, gpu: Device) -> list[SplitPass]:
        """Return the splits to try: of the first summed dimension that has parts."""
        first, *_ = self.by_name.values()
        extents = joined_extents(first.operands)
        terms = prod(extents[dim] for dim in first.contracted)
        names = " ".join(self.by_name)
        tiles = sum(_tiles(op, self.shards) for op in self.by_name.values())
        for dim in first.contracted:
            counts = part_counts(extents[dim], 1, gpu, terms)
            if found := [n for n in counts if n * tiles <= WAVES * gpu.multiprocessors]:
                return [SplitPass(dim, parts, names) for parts in found]
        return []

    def alone(self, module: ModuleOp) -> ModuleOp:
        """Return `module` with a function of these products and their epilogues."""
        return products_alone(module, self.by_name)

    def names_in(self, alone: ModuleOp) -> dict[str, str]:
        """
        Return the names that these products have in a module of them alone.

        A number at the end of a name does not survive: the names of the IR are hints.
        """
        products = chain.from_iterable(map(products_of, compute_functions(alone)))
        return dict(zip(self.by_name, products, strict=True))


def products_by_operand(module: ModuleOp) -> Iterator[Products]:
    """
    Yield the products of a module, those that read one value together.

    Without those that share an accumulator with others that they are added to, and
    those whose operands or results ranks exchange.
    """
    for func in compute_functions(module):
        shards = shards_in(func, module)
        groups: dict[tuple[SSAValue, Sequence[str]], dict[str, ContractOp]] = {}
        for name, op in products_of(func).items():
            if shares_accumulator(op) or shards.are_exchanged_for(op):
                continue
            keys = [(value, op.contracted) for value in op.operands]
            key = next((key for key in keys if key in groups), keys[0])
            groups.setdefault(key, {})[name] = op
        yield from (Products(by_name, shards) for by_name in groups.values())


def shares_accumulator(op: ContractOp) -> bool:
    """Return whether a product is added to another one over the same dimensions."""
    last = only_added(op.result)
    while last is not None and (after := only_added(last.result)) is not None:
        last = after
    added = () if last is None else addends(last)
    others = (value.owner for value in added if value is not op.result)
    return any(
        isinstance(other, ContractOp) and {*other.contracted} == {*op.contracted}
        for other in others
    )


def is_long(module: ModuleOp) -> bool:
    """Return whether a function has more ops than are compiled often to try choices."""
    blocks = map(compute_block, compute_functions(module))
    return any(len(block.ops) > MAX_OPS for block in blocks)


def _results(op: FoldOp) -> int:
    """Return the number of independent reductions: elements of the smallest result."""
    sizes = [elements_of(out) for out in op.results if names_of(out)]
    return min(sizes, default=1)


def _tiles(op: ContractOp, shards: Shards) -> int:
    """Return a rank's programs of a product, of `TILE` rows and columns each."""
    extents = shards.extents(op)
    batch, rows, columns, _ = (prod(extents[d] for d in dims) for dims in op.roles)
    return batch * ceil_div(rows, TILE) * ceil_div(columns, TILE)


def _takes(func: FuncOp, dim: str) -> bool:
    """Whether `split` accepts the dimension `dim` of a function."""
    try:
        plan_split(func, dim, 1, ops_with(func, dim))
    except PassFailedException:
        return False
    return True


def part_counts(
    extent: int, ranks: int, gpu: Device, terms: int | None = None
) -> Iterator[int]:
    """
    Yield the numbers of parts to try: powers of two per rank, which divide `extent`.

    `terms` are the elements that are reduced, if other dimensions are, too.
    """
    per_rank = 2
    while per_rank <= WAVES * gpu.multiprocessors:
        parts = per_rank * ranks
        if parts * MIN_PART > (terms or extent):
            return
        if extent % parts == 0:
            yield parts
        per_rank *= 2


def _time(module: ModuleOp, passes: Sequence[ModulePass], gpu: Device) -> PlanTime:
    """Return the estimated time of the launch plans, or of kernels and collectives."""
    copy = module.clone()
    PassPipeline(tuple(passes)).apply(Context(), copy)
    plans = [plan for func in compute_functions(copy) for plan in programs_in(func)]
    if not plans:
        return PlanTime(kernel_seconds(copy, gpu))
    system = attached_system(copy)
    prices = [priced(plan, system) for plan in plans]
    longest = max(prices, key=float)
    return PlanTime(sum(map(float, prices)), longest.bound)


def kernel_seconds(module: ModuleOp, gpu: Device) -> float:
    """Return the estimated time of the kernels and collectives of a module."""
    steps = [
        op
        for func in compute_functions(module)
        for op in compute_block(func).ops
        if isinstance(op, SpatialOp | CollectiveOp)
    ]
    figures = [estimate_of(op) for op in steps]
    running = sum(cost.latency for cost in figures if cost is not None)
    return running * 1e-9 + gpu.times.launch * len(steps)
