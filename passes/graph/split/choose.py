"""
Chooses split-K: the parts of a reduction whose few results leave multiprocessors idle.

A kernel has as many programs as there are tiles of results: decoding has few, and so
has a product with few rows. Numbers of parts are tried on copies of the module, down to
kernels, and priced as `fuse` does. Products are tried on one GPU, in short functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import inf, prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.gpu.kernel import Device
from comet.dialects.arch import attached_system
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import ContractOp, FoldOp
from comet.dialects.compound.dims import extents_of, joined_extents, names_of
from comet.dialects.cost import estimate_of
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import compute_block
from comet.passes.graph.split import SplitPass, plan_split
from comet.passes.search import Candidate, Cost, Found, cheapest

MIN_PART = 128
"""Elements of the smallest part that is tried."""

MAX_ROWS = 128
"""
The most rows, or columns, of one program; with more results there are enough programs.
"""

MAX_OPS = 32
"""
The most ops of a function whose products are tried: each trial fuses all of them.
"""

WAVES = 8
"""The most programs that are tried, as a multiple of the multiprocessors."""


def choose_split(
    module: ModuleOp, ranks: int, rest: Sequence[ModulePass]
) -> SplitPass | None:
    """
    Return the split that makes the kernels of a module fastest, if any does.

    The module is at the elementary level with hardware; it is not changed. `rest` are
    the passes that lower it to kernels.
    """
    gpu = device_of(attached_system(module))
    open_splits = {
        dim: [SplitPass(dim, parts) for parts in part_counts(extent, ranks, gpu)]
        for dim, extent in few_results(module, ranks, gpu).items()
    }
    if not any(open_splits.values()):
        return None
    tried: dict[SplitPass | None, float] = {}

    def price(split: SplitPass | None) -> Found[SplitPass | None]:
        tried[split] = inf
        tried[split] = _seconds(module, (split, *rest) if split else rest, gpu)
        return Found(split, Cost(tried[split]))

    def candidates() -> Iterator[Candidate[SplitPass | None]]:
        yield Candidate("none", partial(price, None))
        for dim, splits in open_splits.items():
            for split in splits:
                yield Candidate(f"{dim}={split.parts}", partial(price, split))
                best = min(tried, key=lambda each: tried[each])
                if best is not None and best.dim == dim and best != split:
                    break  # More parts of a dimension are only slower from here.

    try:
        place = ", ".join(f"@{f.sym_name.data}" for f in compute_functions(module))
        return cheapest("split", place, candidates()).made
    except PassFailedException:
        return None  # The passes report why when they run.


def few_results(module: ModuleOp, ranks: int, gpu: Device) -> dict[str, int]:
    """
    Return the extents of dimensions whose reductions leave multiprocessors idle.

    Only dimensions that `split` accepts are among them.
    """
    found: dict[str, int] = {}
    for func in compute_functions(module):
        ops = tuple(func.body.block.ops)
        for op in ops:
            dims: tuple[str, ...] = ()
            if isinstance(op, FoldOp) and _results(op) < gpu.multiprocessors * MAX_ROWS:
                dims = (op.dim.data,)
            elif isinstance(op, ContractOp) and ranks == 1 and len(ops) <= MAX_OPS:
                few = prod(extents_of(op.result).values())
                if few < gpu.multiprocessors * MAX_ROWS**2:
                    dims = op.contracted
            extents = joined_extents(op.operands) if dims else {}
            found |= {dim: extents[dim] for dim in dims if _takes(func, dim)}
    return found


def _results(op: FoldOp) -> int:
    """Return how many folds run independently: elements of the smallest iter_arg."""
    sizes = [prod(extents_of(out).values()) for out in op.outs if names_of(out)]
    return min(sizes, default=1)


def _takes(func: FuncOp, dim: str) -> bool:
    """Whether `split` accepts the dimension `dim` of a function."""
    try:
        plan_split(func, dim, 1)
    except PassFailedException:
        return False
    return True


def part_counts(extent: int, ranks: int, gpu: Device) -> Iterator[int]:
    """Yield the numbers of parts to try: powers of two on each rank, that divide."""
    own = 2
    while own <= WAVES * gpu.multiprocessors:
        parts = own * ranks
        if parts * MIN_PART > extent:
            return
        if extent % parts == 0:
            yield parts
        own *= 2


def _seconds(module: ModuleOp, passes: Sequence[ModulePass], gpu: Device) -> float:
    """Return the estimated time of all kernels and collectives."""
    copy = module.clone()
    PassPipeline(tuple(passes)).apply(Context(), copy)
    return kernel_seconds(copy, gpu)


def kernel_seconds(module: ModuleOp, gpu: Device) -> float:
    """Return the estimated time of the kernels and collectives of a module."""
    steps = [
        op
        for func in compute_functions(module)
        for op in compute_block(func).ops
        if isinstance(op, SpatialOp | CollectiveOp)
    ]
    figures = [estimate_of(op) for op in steps]
    running = sum(each.latency for each in figures if each is not None)
    return running * 1e-9 + gpu.launch * len(steps)
