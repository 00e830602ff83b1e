"""What the ops of a kernel take at least: positions that masks leave, vector ops."""

from collections.abc import Iterator

import pytest
from gpu_graphs import H200, LAYERNORM, simplified
from graph_text import Program
from masked_programs import window
from paths import ROOT
from sample_blocks import causal
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import attached_system
from comet.dialects.compound import ContractOp, FoldOp, View
from comet.dialects.compound.dims import joined_extents
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import compute_block
from comet.passes.analysis.op_groups import extents_conflict
from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.groups import (
    Kernel,
    elementary_ops,
)
from comet.passes.schedule.fuse.gpu.least_work import least_fraction, vector_ops
from comet.passes.schedule.fuse.gpu.op_facts import Facts, slice_of
from comet.passes.schedule.fuse.gpu.plan import loop_nests, plan_form
from comet.passes.schedule.fuse.gpu.trial import Trials
from comet.passes.schedule.fuse.strategy import Strategy

FORMS = (Strategy("full", full_rows=True), Strategy("partial"))
CAUSAL = """
func.func @attention(%q: tensor<1x8x{M}x64xf16>, %k: tensor<1x8x{N}x64xf16>,
    %v: tensor<1x8x{N}x64xf16>) -> tensor<1x8x{M}x64xf16> {{
  %o = compound.attention %q, %k, %v causal : (tensor<1x8x{M}x64xf16>,
    tensor<1x8x{N}x64xf16>, tensor<1x8x{N}x64xf16>) -> tensor<1x8x{M}x64xf16>
  func.return %o : tensor<1x8x{M}x64xf16>
}}
"""
DECODE = (ROOT / "samples" / "flash_decode.mlir").read_text()
LENGTHS = H200.replace("}", " lengths=0.3}")


def gradient_of_keys(tokens: int) -> str:
    """Key n is seen by the queries from n on."""
    p = Program({"M": tokens, "N": tokens, "E": 64}, "f16", "f32")
    q, k = p.argument("q", "ME"), p.argument("k", "NE")
    scores = causal(p, p.contract("s", q, k, "MN"), "masked")
    return p.returning(p.contract("dk", p.map("w", "exp", scores), q, "NE"))


def slices(module: ModuleOp) -> Iterator[Kernel]:
    """Yield successive ops that begin with a product, and what others read of them."""
    (func,) = compute_functions(module)
    ops = elementary_ops(func)
    for start, op in enumerate(ops):
        for size in (4, 7, len(ops)) if isinstance(op, ContractOp) else ():
            group = ops[start : start + size]
            made = [result for each in group for result in each.results]
            users = {v: {use.operation for use in v.uses} for v in made}
            legal = not any(isinstance(each, View) for each in group)
            if legal and not any(extents_conflict(group, (each,)) for each in group):
                yield group, tuple(v for v in made if not users[v] <= set(group))


@pytest.mark.parametrize(
    ("text", "hardware"),
    [
        (CAUSAL.format(M=1024, N=1024), H200),
        (CAUSAL.format(M=16, N=2000), H200),
        (DECODE, LENGTHS),
        (gradient_of_keys(2048), H200),
    ],
    ids=["square", "few_queries", "lengths", "gradients"],
)
def test_the_least_time_of_masked_products_is_below_their_time(
    text: str, hardware: str
):
    module = simplified(text, f"{hardware},decompose,sink-renames,stream")
    forms = Forms(Trials(attached_system(module)), FORMS)
    found = [
        (forms.least(*kernel), forms.seconds(*kernel)) for kernel in slices(module)
    ]
    assert found
    assert all(least <= seconds for least, seconds in found)


def test_products_count_as_far_as_their_mask_lets_them_run():
    module = simplified(CAUSAL.format(M=4096, N=4096), f"{H200},decompose,stream")
    (func,) = compute_functions(module)
    group = elementary_ops(func)
    whole = group, tuple(group[-1].results)
    forms = Forms(Trials(attached_system(module)), FORMS)
    assert forms.least(*whole) > forms.seconds(*whole) / 2


WIDE, NARROW = (f"tensor<4x{bits}, #compound.dims<M>>" for bits in ("f32", "f16"))
FOLDED = f"""
func.func @main(%x: {NARROW}) -> ({WIDE}, {WIDE}) {{
  %wide = compound.cast %x : {NARROW} -> {WIDE}
  %exp = compound.map exp %wide : {WIDE} -> {WIDE}
  %again = compound.cast %x : {NARROW} -> {WIDE}
  %equal = compound.map exp %again : {WIDE} -> {WIDE}
  %one = compound.fill 1.0 : {WIDE}
  %same = compound.map mult %equal, %one : {WIDE}, {WIDE} -> {WIDE}
  %reads_it = compound.map neg %same : {WIDE} -> {WIDE}
  %narrow = compound.cast %exp {{fuse.unrounded}} : {WIDE} -> {NARROW}
  %back = compound.cast %narrow : {NARROW} -> {WIDE}
  %neg = compound.map neg %back : {WIDE} -> {WIDE}
  %dead = compound.map exp %back : {WIDE} -> {WIDE}
  func.return %reads_it, %neg : {WIDE}, {WIDE}
}}
"""


def test_ops_that_may_be_removed_take_nothing():
    """Equal, folded, undone and dead ones, and those that read what is folded."""
    module = run_passes(parse_module(FOLDED), H200)
    (func,) = compute_functions(module)
    *ops, end = compute_block(func).ops
    facts = Facts(device_of(attached_system(module)))
    group = [facts[op] for op in ops]
    counted = vector_ops(group, slice_of(facts.owners(end.operands), group), ())
    assert [op.results[0].name_hint for op in counted] == ["wide", "exp", "neg"]


@pytest.mark.parametrize("extent", [4, 8])
def test_a_fold_without_a_loop_takes_no_more_than_what_its_initial_values_leave(
    extent: int,
):
    """Welford's update of no rows: its bound was up to 4e-6 above the time."""
    text = LAYERNORM.format(M=1, K=16, N=extent)
    module = simplified(text, f"{H200},decompose{{accumulator=f32}},stream")
    (func,) = compute_functions(module)
    ops = elementary_ops(func)
    (start,) = (at for at, op in enumerate(ops) if isinstance(op, FoldOp))
    fold = ops[start]
    kernel = (fold, ops[start + 1]), (*fold.results, *ops[start + 1].results)
    trials = Trials(attached_system(module))
    forms = Forms(trials, FORMS)
    nests = loop_nests(FORMS, kernel[0])
    assert () in [nest.loops for nest in nests]
    for nest in nests:
        seconds = trials.seconds(plan_form(nest, *kernel))
        assert forms.least_of(nest, *kernel) <= seconds
    facts = [Facts(trials.gpu)[fold]]
    whole, looped = (len([*vector_ops(facts, -1, dims)]) for dims in ((), ("N",)))
    assert 0 < whole < looped


def part(text: str, dim: str, hardware: str = H200, **blocks: float) -> float:
    """Return the part of the positions along a dimension that loops visit."""
    module = simplified(text, f"{hardware},decompose,stream")
    (func,) = compute_functions(module)
    group = elementary_ops(func)
    extents = joined_extents(value for op in group for value in op.operands)
    gpu = device_of(attached_system(module))
    return float(least_fraction(group, dim, extents, blocks, gpu))


def test_programs_run_what_their_rows_see_at_least():
    causal = CAUSAL.format(M=4, N=8)
    assert part(causal, "N", M=1) == (5 + 6 + 7 + 8) / 4 / 8
    assert part(causal, "N", M=2) == (6 + 8) / 2 / 8
    assert part(causal, "N") == part(causal, "N", M=1)
    assert part(gradient_of_keys(8), "M", N=4) == (8 + 4) / 2 / 8
    assert part(gradient_of_keys(8), "M") == 0
    seen = sum(min(row + 1, 6) for row in range(8))
    assert part(window(8, 6), "N", f"{H200},use-ge", M=1) == seen / 64
    assert part(DECODE, "S", LENGTHS) == 0.3
    assert part(DECODE, "S") == 1
