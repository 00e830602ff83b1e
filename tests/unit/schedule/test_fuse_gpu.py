"""Fusion on GPUs keeps the meaning, and obeys and explains its options."""

from collections.abc import Mapping
from itertools import product

import pytest
from covering import covering, fraction, one_of
from gpu_graphs import GRAPHS, H200, KEY_GRADIENTS, LAYERNORM, SOFTMAX
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import ArchError, LevelOp, SystemOp, attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.cost import estimate_of
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.schedule.fuse.gpu.groups import with_own_casts_and_positions

OPTIONS = (
    "strategy=full",
    "strategy=partial between=recompute",
    "strategy=partial between=spill",
    "strategy=none",
    "strategy=auto",
)
SIZES = ({"M": 7, "N": 13, "K": 5}, {"M": 1, "N": 1, "K": 1}, {"M": 6, "N": 16, "K": 3})


def fused(text: str, options: str, before: str = "decompose") -> ModuleOp:
    return run_passes(parse_module(text), f"{H200},{before},fuse{{{options}}}")


def kernels(module: ModuleOp) -> list[SpatialOp]:
    return [op for op in module.walk() if isinstance(op, SpatialOp)]


def loops(node: SpatialOp) -> list[str]:
    """Return the dimension of every loop, in order of appearance."""
    nodes = [op for op in node.walk() if isinstance(op, TemporalOp)]
    return [dim for op in nodes for dim in op.factors]


@one_of(2)
@pytest.mark.parametrize(
    ("text", "streamed", "options", "size"),
    covering(
        product(
            (SOFTMAX, LAYERNORM), ("decompose", "decompose,stream"), OPTIONS, SIZES
        ),
        1,
    ),
)
def test_named_ops_keep_their_meaning(
    text: str, streamed: str, options: str, size: Mapping[str, int]
) -> None:
    before = run_passes(parse_module(text.format(**size)), f"{H200},{streamed}")
    after = run_passes(before, f"fuse{{{options}}}")
    assert_same_meaning(before, after, "f")


@one_of(2)
@pytest.mark.parametrize(("name", "options"), fraction(GRAPHS, OPTIONS, 4))
def test_any_graph_keeps_its_meaning(name: str, options: str) -> None:
    before = run_passes(parse_module(GRAPHS[name]), H200)
    after = run_passes(before, f"fuse{{{options}}}")
    assert_same_meaning(before, after, "f")


def test_full_is_one_kernel_that_loops_over_the_contraction_only() -> None:
    (kernel,) = kernels(fused(SOFTMAX.format(M=7, N=13, K=5), "strategy=full"))
    assert list(kernel.factors) == ["M"]
    assert loops(kernel) == ["K"]


def test_partial_has_as_many_loops_as_reductions_need() -> None:
    text = SOFTMAX.format(M=7, N=13, K=5)
    (plain,) = kernels(fused(text, "strategy=partial between=recompute"))
    assert loops(plain) == ["N", "K"] * 3
    streamed = fused(text, "strategy=partial between=recompute", "decompose,stream")
    assert loops(kernels(streamed)[0]) == ["N", "K"] * 2


def test_spilling_computes_the_product_once() -> None:
    text = SOFTMAX.format(M=7, N=13, K=5)
    (kernel,) = kernels(fused(text, "strategy=partial between=spill"))
    assert loops(kernel) == ["N", "K", "N", "N"]


def test_a_mask_is_computed_where_it_is_read_and_not_stored() -> None:
    """It has no R, but M: before the loop over R another one would store its tiles."""
    text = KEY_GRADIENTS.format(M=16, N=16)
    (kernel,) = kernels(fused(text, "strategy=partial"))
    assert loops(kernel) == ["R", "M"]
    written = [op for op in kernel.walk() if isinstance(op, TemporalOp)]
    assert all("i1" not in str(out.type) for op in written for out in op.outs)


def test_none_gives_the_contraction_a_kernel_of_its_own() -> None:
    product, rest = kernels(fused(SOFTMAX.format(M=7, N=13, K=5), "strategy=none"))
    assert list(product.factors) == ["M", "N"]
    assert list(rest.factors) == ["M"]


def test_a_wide_row_is_swept_by_partial_and_cut_by_full() -> None:
    text = SOFTMAX.format(M=64, N=100_000, K=64)
    swept = kernels(fused(text, "strategy=partial", "decompose,stream"))
    assert "N" in loops(swept[-1])
    cut = kernels(fused(text, "strategy=full"))
    assert len(cut) > len(swept)
    assert all(len(set(loops(kernel))) <= 1 for kernel in cut)


def test_auto_takes_the_cheapest_strategy() -> None:
    text = LAYERNORM.format(M=512, N=256, K=128)

    def nanoseconds(options: str) -> float:
        module = fused(text, options, "decompose,stream")
        gpu = device_of(attached_system(module))
        estimates = [estimate_of(kernel) for kernel in kernels(module)]
        running = sum(figures.latency for figures in estimates if figures is not None)
        return running + len(estimates) * gpu.times.launch * 1e9

    assert nanoseconds("strategy=auto") == min(map(nanoseconds, OPTIONS[:-1]))


def test_auto_names_the_strategy_it_takes() -> None:
    module = fused(SOFTMAX.format(M=128, N=256, K=64), "strategy=auto")
    (function,) = compute_functions(module)
    assert function.attributes["comet.strategy"] == StringAttr("full")
    assert len(kernels(module)) == 1


def test_a_shallow_hierarchy_is_no_gpu() -> None:
    system = SystemOp("toy", [LevelOp("HBM", "HBM")])
    with pytest.raises(ArchError, match="device memory, shared memory"):
        gpu_levels(system)


def test_an_extent_is_the_same_in_a_loop_over_another_dimension():
    text = """
    !n = tensor<3xf32, #compound.dims<N>>
    !m = tensor<3xf32, #compound.dims<M>>
    !x = tensor<3x3xf32, #compound.dims<N, M>>
    !s = tensor<f32, #compound.dims<>>
    func.func @f(%a: !n, %b: !x) -> (!x, !n) {
      %p = compound.contract %a, %b : !n, !x -> !m
      %c = compound.map max %p, %a : !m, !n -> !x
      %k = compound.extent "M" of %c : !x -> !s
      %t = compound.reduce add %c : !x -> !n
      %u = compound.map div %t, %k : !n, !s -> !n
      %d = compound.map sub %c, %u : !x, !n -> !x
      %q = compound.map mult %d, %d : !x, !x -> !x
      %v = compound.reduce add %q : !x -> !n
      %w = compound.map div %v, %k : !n, !s -> !n
      %r = compound.map exp %w : !n -> !n
      %y = compound.map mult %d, %r : !x, !n -> !x
      %z = compound.map mult %a, %y : !n, !x -> !x
      func.return %z, %w : !x, !n
    }
    """
    before = parse_module(text)
    fuse = f"{H200},fuse{{strategy=partial between=recompute}}"
    for passes in (fuse, f"{fuse},tile"):
        assert_same_meaning(before, run_passes(before, passes), "f")


ZEROED = """
!n = tensor<6xf32, #compound.dims<N>>
!s = tensor<f32, #compound.dims<>>
func.func @f(%a: !n) -> !s {{
  %zero = compound.fill 0.0 : !n
  %five = compound.fill 5.0 : !n
  %zeroed = compound.map mult %a, %zero : !n, !n -> !n
  %shifted = compound.map add %five, %zeroed : !n, !n -> !n
  %e = compound.map exp {of} : !n -> !n
  %sum = compound.reduce add %e : !n -> !s
  func.return %sum : !s
}}
"""
"""Sums over a dimension that only an argument with the factor 0 has."""


@pytest.mark.parametrize("options", OPTIONS)
def test_a_factor_of_zero_leaves_a_dimension_to_loop_over(options: str) -> None:
    before = run_passes(parse_module(ZEROED.format(of="%zeroed")), H200)
    assert_same_meaning(before, run_passes(before, f"fuse{{{options}}}"), "f")


@pytest.mark.parametrize("options", OPTIONS)
def test_what_simplifying_makes_constant_is_checked(options: str) -> None:
    before = run_passes(parse_module(ZEROED.format(of="%shifted")), H200)
    with pytest.raises(PassFailedException, match="over N, which only constants have"):
        run_passes(before, f"fuse{{{options}}}")


OF_CONSTANTS = """
!n = tensor<13x6xf32, #compound.dims<N, L>>
!s = tensor<f32, #compound.dims<>>
func.func @f(%a: !n, %s: !s) -> !s {
  %zero = compound.fill 0.0 : !n
  %k = compound.fill 0.0 : tensor<f16, #compound.dims<>>
  %h = compound.cast %k : tensor<f16, #compound.dims<>> -> !s
  %product = compound.contract %h, %zero : !s, !n -> !n
  %e = compound.map exp %product : !n -> !n
  %sum = compound.contract %e, %a : !n, !n -> !s
  func.return %sum : !s
}
"""
"""A product of constants with dimensions that no input of its kernel has."""


def test_a_kernel_does_not_loop_over_what_only_constants_have() -> None:
    before = run_passes(parse_module(OF_CONSTANTS), H200)
    with pytest.raises(PassFailedException, match="loops over N, which only constants"):
        run_passes(before, "fuse{strategy=none}")
    assert_same_meaning(before, run_passes(before, "fuse{strategy=full}"), "f")


CAST_CONSTANT = """
!m = tensor<16xf32, #compound.dims<M>>
func.func @f(%a: tensor<48x16xf32, #compound.dims<K, M>>) -> !m {
  %one = compound.fill 1.0 : tensor<48xf16, #compound.dims<K>>
  %ones = compound.cast %one : tensor<48xf16, #compound.dims<K>>
    -> tensor<48xf32, #compound.dims<K>>
  %sum = compound.contract %a, %ones
    : tensor<48x16xf32, #compound.dims<K, M>>, tensor<48xf32, #compound.dims<K>> -> !m
  %most = compound.reduce max %sum : !m -> tensor<f32, #compound.dims<>>
  %less = compound.map sub %sum, %most : !m, tensor<f32, #compound.dims<>> -> !m
  func.return %less : !m
}
"""


@pytest.mark.parametrize("options", OPTIONS)
def test_a_cast_of_a_constant_needs_no_kernel(options: str) -> None:
    before = run_passes(parse_module(CAST_CONSTANT), H200)
    assert_same_meaning(before, run_passes(before, f"fuse{{{options}}}"), "f")


def test_a_kernel_casts_what_no_other_part_has():
    """A kernel that is cut in two lacks casts that only a later one reads."""
    wide, narrow = (f"tensor<4x{e}, #compound.dims<M>>" for e in ("f32", "f16"))
    module = parse_module(f"""func.func @main(%x: {wide}, %g: {narrow}) -> {wide} {{
      %e = compound.map exp %x : {wide} -> {wide}
      %w = compound.cast %g : {narrow} -> {wide}
      %y = compound.map mult %e, %w : {wide}, {wide} -> {wide}
      func.return %y : {wide}
    }}""")
    (func,) = module.body.block.ops
    exp, cast, mult, _ = func.regions[0].block.ops
    found = with_own_casts_and_positions(((exp,), (mult,)), (exp, cast, mult))
    assert found == ((exp,), (cast, mult))
