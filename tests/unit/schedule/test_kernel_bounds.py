"""Lower bounds of the time of a kernel, and the cheapest of its forms."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import isinf

import pytest
from covering import one_of
from gpu_graphs import H200, simplified
from gpu_ranks import MI300X8
from graph_text import Program
from sample_blocks import BLOCKS
from transformer_blocks import WIDE, llama_block
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize
from comet.cost.from_ir.products import summarize_products
from comet.cost.gpu.device import Device
from comet.cost.gpu.summary import KernelSummary
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound import ContractOp, View
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.op_groups import extents_conflict
from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.groups import Kernel, elementary_ops
from comet.passes.schedule.fuse.gpu.plan import loop_nests, plan_form, plan_forms
from comet.passes.schedule.fuse.gpu.trial import Trials, standalone_function
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.tile.gpu.space import (
    DOT_DEPTHS,
    SHORT_DEPTHS,
    block_sizes,
    launches_that_fit,
    may_have_tiling,
    unpadded_vector,
    wasted_product,
)
from comet.passes.schedule.tile_tree import loops_below

FORMS = (Strategy("full", full_rows=True), Strategy("partial"))


def windows(func: FuncOp) -> Iterator[Kernel]:
    """Yield successive ops of a graph, and what others read of them."""
    ops = elementary_ops(func)
    for size, start in product((1, 2, 3, 6, 9), range(0, len(ops), 2)):
        group = ops[start : start + size]
        legal = not any(isinstance(op, View) for op in group)
        if legal and not any(extents_conflict(group, (op,)) for op in group):
            inside = set(group)
            results = (result for op in group for result in op.results)
            uses = {r: {use.operation for use in r.uses} for r in results}
            outs = tuple(r for r, users in uses.items() if not users <= inside)
            yield group, outs


def block(sizes: Mapping[str, int]) -> ModuleOp:
    text = llama_block({**WIDE, **sizes}, "bf16")
    return simplified(text, f"{H200},sink-renames,stream")


@one_of(2)
@pytest.mark.parametrize(("tokens", "width"), [(1, 64), (128, 64), (128, 200)])
def test_the_lower_bound_of_each_form_is_below_its_time(tokens: int, width: int):
    """Blocks of 200 elements are longer than their rows, and prices count them so."""
    module = block({"M": tokens, "N": tokens, "D": width})
    assert check_bounds(module, windows(only(module))) > 40


def only(module: ModuleOp) -> FuncOp:
    (func,) = compute_functions(module)
    return func


def check_bounds(module: ModuleOp, kernels: Iterable[Kernel]) -> int:
    """Check the lower bounds of all forms of kernels; return how many there are."""
    trials = Trials(attached_system(module))
    forms, checked = Forms(trials, FORMS), 0
    for group, outs in kernels:
        assert forms.roughly(group, outs) <= forms.least(group, outs)
        for nest in loop_nests(FORMS, group):
            seconds = trials.seconds(plan_form(nest, group, outs))
            assert forms.least_of(nest, group, outs) <= seconds
            checked += 1
    return checked


LLAMA, VIT = BLOCKS["llama"], BLOCKS["vit"]


@one_of(2)
@pytest.mark.parametrize(
    ("text", "pipeline", "first"),
    [
        pytest.param(
            LLAMA.text("llama", {**LLAMA.wide, "M": 128, "N": 128}, "bf16"),
            f"{H200},lower-views,sink-renames",
            "scaled",
            id="rows that are stored whole, though a mask ends them",
        ),
        pytest.param(
            VIT.text("vit", VIT.tiny),
            f"{MI300X8},lower-views,sink-renames,stream",
            "weights_m",
            id="loops of one trip that share their waits",
        ),
    ],
)
def test_lower_bounds_of_kernels_that_had_too_high_ones(
    text: str, pipeline: str, first: str
):
    module = simplified(text, pipeline)
    kernels = (
        (group, outs)
        for group, outs in windows(only(module))
        if group[0].results[0].name_hint == first
    )
    assert check_bounds(module, kernels) > 4


def softmax_of_products(rows: int, columns: int) -> str:
    """A softmax of products with large results."""
    p = Program({"M": rows, "N": columns, "K": 64}, "f16", "f32")
    s = p.contract("s", p.argument("q", "MK"), p.argument("k", "NK"), "MN")
    shifted = p.map(
        "shifted", "exp", p.map("less", "sub", s, p.reduce("m", "max", s, "N"))
    )
    return p.returning(p.map("w", "div", shifted, p.reduce("l", "add", shifted, "N")))


def weighted(rows: int, terms: int) -> str:
    """Few programs with a long loop, in which lanes compute what a product reads."""
    p = Program({"M": rows, "N": terms, "E": 64}, "f16", "f32")
    w = p.map("w", "exp", p.argument("x", "MN"))
    return p.returning(p.contract("o", w, p.argument("v", "NE"), "ME"))


@pytest.mark.parametrize(
    ("text", "form", "part"),
    [
        pytest.param(
            softmax_of_products(8192, 8192),
            Strategy("partial", spill=True),
            0.5,
            id="spilled tiles",
        ),
        pytest.param(
            weighted(16, 1 << 16), Strategy("partial"), 0.9, id="dependent loads"
        ),
    ],
)
def test_the_lower_bound_of_a_form_is_near_its_time(
    text: str, form: Strategy, part: float
):
    module = simplified(text, H200)
    forms = Forms(trials := Trials(attached_system(module)), (form,))
    ops = elementary_ops(only(module))
    kernel = ops, tuple(ops[-1].results)
    (nest,) = loop_nests((form,), ops)
    seconds = trials.seconds(plan_form(nest, *kernel))
    assert part * seconds < forms.least_of(nest, *kernel) <= seconds


def test_the_cheapest_form_is_found_without_a_price_of_each():
    module = block({"M": 128, "N": 128, "D": 16384})
    (func,) = compute_functions(module)
    trials, all_trials = (Trials(attached_system(module)) for _ in range(2))
    forms = Forms(trials, FORMS)
    for group, outs in windows(func):
        every = [plan_form(nest, group, outs) for nest in loop_nests(FORMS, group)]
        best = min(every, key=all_trials.seconds)
        assert forms.cheapest(group, outs) == best
    assert trials.tried < all_trials.tried


def test_the_lower_bound_of_products_is_near_their_time():
    """It counts repeated loads and rounds, and is infinite for rows that do not fit."""
    module = block({"M": 2048, "N": 2048, "D": 4096})
    (func,) = compute_functions(module)
    forms, found = Forms(Trials(attached_system(module)), FORMS), list[float]()
    for group, outs in windows(func):
        if len(group) == 1 and isinstance(group[0], ContractOp):
            found.append(forms.least(group, outs) / forms.seconds(group, outs))
    assert len(found) > 2
    assert min(found) > 0.8
    never = [forms.seconds(*k) for k in windows(func) if isinf(forms.least(*k))]
    assert never
    assert all(map(isinf, never))


def test_products_rule_out_only_kernels_without_tilings():
    """A kernel is not built if its products alone show that none of its tiles fit."""
    module = block({"M": 2048, "N": 2048, "D": 4096})
    (func,) = compute_functions(module)
    system = attached_system(module)
    gpu, levels = device_of(system), gpu_levels(system)
    ruled_out = 0
    for group, outs in windows(func):
        for kernel in plan_forms(FORMS, group, outs):
            grid = tuple(loop.dim for loop in kernel.loops)
            products = summarize_products(group, grid, tuple(loops_below(kernel)))
            if not may_have_tiling(products, gpu):
                (node,) = grid_nodes(standalone_function(kernel, levels))
                assert not some_tiling_fits(summarize(node, levels, gpu), gpu)
                ruled_out += 1
    assert ruled_out > 4


def some_tiling_fits(summary: KernelSummary, gpu: Device) -> bool:
    """Return whether one of all tilings fits, without asking the smallest blocks."""
    tried = (
        {dim: block_sizes(summary, dim, depths) for dim in summary.nest.extents}
        for depths in (None, DOT_DEPTHS, SHORT_DEPTHS)
    )
    return not unpadded_vector(summary) and any(
        not wasted_product(summary, sizes)
        and launches_that_fit(summary, sizes, {}, gpu) is not None
        for sizes in tried
    )
