"""
Chooses split-K: the parts of a reduction whose few results leave multiprocessors idle.

A kernel has one program for each tile of its results: decoding has few, and so has a
product with few rows. Each number of parts is tried on a copy of the module, which is
lowered to kernels and priced. Products are split on one GPU only; those of a long
function are tried in functions of one product, as each trial fuses its function again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from math import inf

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Region
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.program import priced
from comet.cost.gpu.device import Device
from comet.dialects.arch import attached_system
from comet.dialects.blocks import block_taking
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import ContractOp, FoldOp
from comet.dialects.compound.dims import elements_of, joined_extents, names_of
from comet.dialects.cost import estimate_of
from comet.dialects.dataflow.program import programs_in
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import compute_functions, function_names
from comet.passes.analysis.levels import compute_block
from comet.passes.graph.split import SplitPass, plan_split
from comet.passes.schedule.fuse.gpu.trial import Noted, noted
from comet.passes.search import Candidate, Cost, Found, cheapest
from comet.passes.search.ahead import Ahead, ahead

MIN_PART = 128
"""Elements of the smallest part that is tried."""

MAX_ROWS = 128
"""
The most rows, or columns, of one program: more results give enough programs.
"""

MAX_OPS = 32
"""The most ops of a function, or of its region, that is compiled to try a choice."""

PATIENCE = 4
"""
How many times the parts of the fastest split are tried before a search ends: kernels of
the next one may be of other forms, and slower.
"""

WAVES = 8
"""The most programs that are tried, as a multiple of the number of multiprocessors."""


def choose_split(
    module: ModuleOp,
    ranks: int,
    to_kernels: Sequence[ModulePass],
    to_plans: Sequence[ModulePass],
) -> SplitPass | None:
    """
    Return the split that makes the kernels of a module fastest, None if none helps.

    The module is at the elementary level with hardware; it is not changed. `to_kernels`
    are the passes that lower it to kernels, `to_plans` those that make launch plans of
    them, in which the last program to arrive can merge the parts. Products of a long
    function are compared without these: its kernels merge parts in other ways than
    those of a product alone.
    """
    gpu = device_of(attached_system(module))
    folds = _splits_of(few_results(module, FoldOp, gpu), ranks, gpu)
    summed = few_results(module, ContractOp, gpu) if ranks == 1 else {}
    products = _splits_of(summed, ranks, gpu)
    if not _is_long(module):
        return _fastest(module, {**products, **folds}, (*to_kernels, *to_plans))
    return _fastest(module, folds, to_kernels) or _fastest(
        products_as_functions(module, products), products, to_kernels
    )


def _splits_of(
    extents: Mapping[str, int], ranks: int, gpu: Device
) -> dict[str, list[SplitPass]]:
    """Return the splits to try, of each dimension of `extents` that has any."""
    splits = {
        dim: [SplitPass(dim, parts) for parts in part_counts(extent, ranks, gpu)]
        for dim, extent in extents.items()
    }
    return {dim: each for dim, each in splits.items() if each}


def _fastest(
    module: ModuleOp,
    open_splits: Mapping[str, Sequence[SplitPass]],
    rest: Sequence[ModulePass],
) -> SplitPass | None:
    """Return the fastest of the splits of all dimensions, None if none helps."""
    if not open_splits:
        return None
    gpu = device_of(attached_system(module))
    tried: dict[SplitPass | None, float] = {}
    splits = (None, *(split for each in open_splits.values() for split in each))
    number = {split: index for index, split in enumerate(splits)}
    passes = ((split, *rest) if split else rest for split in splits)
    tasks = [partial(noted, partial(_seconds, module, each, gpu)) for each in passes]

    def price(
        split: SplitPass | None, done: Ahead[Noted[float]]
    ) -> Found[SplitPass | None]:
        tried[split] = inf
        tried[split] = done.result(number[split]).learned()
        return Found(split, Cost(tried[split]))

    def candidates(
        done: Ahead[Noted[float]],
    ) -> Iterator[Candidate[SplitPass | None]]:
        yield Candidate("none", partial(price, None, done))
        for dim, splits in open_splits.items():
            for split in splits:
                yield Candidate(f"{dim}={split.parts}", partial(price, split, done))
                best = min(tried, key=tried.__getitem__)
                if best is None or best.dim != dim:
                    continue
                if split.parts > PATIENCE * best.parts:
                    break  # More parts would be slower still.

    try:
        place = function_names(module)
        with ahead(tasks) as done:
            return cheapest("split", place, candidates(done)).result
    except PassFailedException:
        return None  # The passes will raise the error when they run.


def few_results(
    module: ModuleOp, reduction: type[FoldOp | ContractOp], gpu: Device
) -> dict[str, int]:
    """
    Return the dimensions whose reductions leave multiprocessors idle, with extents.

    Only those that `split` accepts.
    """
    found: dict[str, int] = {}
    for func in compute_functions(module):
        for op in func.body.block.ops:
            if not isinstance(op, reduction):
                continue
            extents = joined_extents(op.operands)
            if isinstance(op, FoldOp):
                dims, max_rows = (op.dim.data,), MAX_ROWS
            else:
                dims, max_rows = op.contracted, MAX_ROWS**2
            if _results(op) < gpu.multiprocessors * max_rows:
                found |= {dim: extents[dim] for dim in dims if _takes(func, dim)}
    return found


def _is_long(module: ModuleOp) -> bool:
    """Whether a function has too many ops for trials of the whole module."""
    blocks = (func.body.block for func in compute_functions(module))
    return max((len(block.ops) for block in blocks), default=0) > MAX_OPS


def products_as_functions(module: ModuleOp, dims: Collection[str]) -> ModuleOp:
    """Return the module with a function for each product that sums one of `dims`."""
    copy = module.clone()
    for func in compute_functions(copy):
        products = [op for op in func.body.block.ops if isinstance(op, ContractOp)]
        summing = [op for op in products if not set(dims).isdisjoint(op.contracted)]
        for number, op in enumerate(summing):
            name = f"{func.sym_name.data}_{number}"
            copy.body.block.insert_op_before(_function(name, op), func)
        func.detach()
        func.erase()
    return copy


def _function(name: str, op: ContractOp) -> FuncOp:
    """Return a function that computes a product of its arguments."""
    block = block_taking(op.operands)
    lhs, rhs = block.args
    product = ContractOp(lhs, rhs, op.result.type)
    product.result.name_hint = op.result.name_hint
    block.add_ops([product, ReturnOp(product.result)])
    types = op.operand_types, [op.result.type]
    return FuncOp(name, types, Region(block))


def _results(op: FoldOp | ContractOp) -> int:
    """Return the number of independent reductions: elements of the smallest result."""
    sizes = [elements_of(out) for out in op.results if names_of(out)]
    return min(sizes, default=1)


def _takes(func: FuncOp, dim: str) -> bool:
    """Whether `split` accepts the dimension `dim` of a function."""
    try:
        plan_split(func, dim, 1)
    except PassFailedException:
        return False
    return True


def part_counts(extent: int, ranks: int, gpu: Device) -> Iterator[int]:
    """Yield the numbers of parts to try: powers of two per rank, which divide."""
    per_rank = 2
    while per_rank <= WAVES * gpu.multiprocessors:
        parts = per_rank * ranks
        if parts * MIN_PART > extent:
            return
        if extent % parts == 0:
            yield parts
        per_rank *= 2


def _seconds(module: ModuleOp, passes: Sequence[ModulePass], gpu: Device) -> float:
    """Return the estimated time of the launch plans, or of kernels and collectives."""
    copy = module.clone()
    PassPipeline(tuple(passes)).apply(Context(), copy)
    plans = [plan for func in compute_functions(copy) for plan in programs_in(func)]
    if not plans:
        return kernel_seconds(copy, gpu)
    system = attached_system(copy)
    return sum(priced(plan, system).timeline.latency for plan in plans)


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
    return running * 1e-9 + gpu.launch * len(steps)
