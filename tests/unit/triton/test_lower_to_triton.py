"""Lowering schedules to Triton: right at any size, and no spills on either target."""

from pathlib import Path

import pytest
from gpu_ranks import H200X8, SHARED_TEXTS
from rank_runs import outcomes
from semantics import parse_module, run_passes
from triton_modules import LOWER, check_all, compile_all, emitted, hardware
from triton_schedules import even, schedule

from comet.dialects import tl
from comet.dialects.compound import MapKind, ReduceKind
from comet.dialects.compound.map import ON_NUMBERS
from comet.passes.triton.lower_to_triton.ops import (
    BINARY_MAPS,
    COMBINE,
    COMPARE_MAPS,
    OTHER_MAPS,
    REDUCTIONS,
    UNARY_MAPS,
)

ODD = {"M": 37, "N": 53, "K": 19}
ODD_TILES = {"M": even(37, 3), "N": 32, "K": 16}
EVEN = {"M": 64, "N": 128, "K": 32}
EVEN_TILES = {"M": 32, "N": 64, "K": 16}
ONE = {"M": 1, "N": 5, "K": 3}
HEADS = {"B": 3, "M": 37, "N": 53, "D": 20, "E": 20}
ROW = {"B": 1, "M": 1, "N": 7, "D": 3, "E": 3}

SCHEDULES = {
    "recompute_odd": ("softmax_recompute", ODD, ODD_TILES),
    "recompute_even": ("softmax_recompute", EVEN, EVEN_TILES),
    "recompute_one": ("softmax_recompute", ONE, {"N": 2, "K": 1}),
    "spill_odd": ("softmax_spill", ODD, ODD_TILES),
    "spill_even": ("softmax_spill", EVEN, EVEN_TILES),
    "welford_odd": ("welford", ODD, ODD_TILES),
    "welford_even": ("welford", EVEN, EVEN_TILES),
    "welford_one": ("welford", {"M": 1, "N": 300}, {"N": 64}),
    "attention_odd": ("attention", HEADS, {"B": 1, "M": even(37, 3), "N": 32}),
    "attention_one": ("attention", ROW, {"B": 1, "N": 4}),
    "two_kernels_odd": ("two_kernels", ODD, {"M": 13, "N": 18, "K": 16}),
    "two_kernels_even": ("two_kernels", EVEN, EVEN_TILES),
    "contractions_odd": ("contractions", ODD, ODD_TILES),
    "contractions_even": ("contractions", EVEN, EVEN_TILES),
    "contractions_one": ("contractions", ONE, {"N": 1}),
    "split_odd": ("split_twice", {"M": 100, "N": 53}, {"M": 34, "m": 16, "N": 16}),
    "split_even": ("split_twice", EVEN, {"M": 32, "m": 16, "N": 64}),
    "split_one": ("split_twice", {"M": 7, "N": 5}, {"M": 4, "m": 1, "N": 2}),
}


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """Emit every schedule."""
    return {name: emitted(schedule(*args), LOWER) for name, args in SCHEDULES.items()}


@pytest.fixture(scope="module")
def reports(
    sources: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, object]]:
    """Run every module once, in one process."""
    return check_all(sources, tmp_path_factory.mktemp("modules"))


@pytest.mark.parametrize("name", SCHEDULES)
def test_emitted_module_agrees_with_its_reference(
    name: str, reports: dict[str, dict[str, object]]
):
    assert reports[name]["ok"], reports[name]


def test_no_kernel_spills(sources: dict[str, str], tmp_path: Path):
    names = ("recompute_odd", "spill_even", "welford_odd", "attention_odd", "split_odd")
    usage = compile_all({name: sources[name] for name in names}, tmp_path)
    assert {str(kernel["target"]) for kernel in usage} == {"sm_90", "gfx942"}
    assert [kernel for kernel in usage if kernel["spills"]] == []


def test_programs_run_in_groups(tmp_path: Path):
    """The launch attribute's group reorders programs; the result stays."""
    text = schedule("two_kernels", {"M": 100, "N": 90, "K": 19}, {"M": 15, "N": 18})
    launch = "#schedule.launch<warps = 4, stages = 2, group = 3>"
    node = "outs(tensor<90x100xf32, #compound.dims<N, M @HBM>>)"
    assert text.count(node) == 1
    text = text.replace(node, f"{node} attributes {{schedule.launch = {launch}}}")
    source = emitted(text, LOWER)
    # Blocks of 16 and 32 cover the tiles of 15 and 18: 7 x 3 programs, not 7 x 5.
    swizzle = "tl.swizzle2d(tl.program_id(1), tl.program_id(0), 7, 3, 3)"
    assert f"pid_m, pid_n = {swizzle}" in source
    assert "functions_c_kernel[(3, 7)](" in source
    assert check_all({"grouped": source}, tmp_path)["grouped"]["ok"]


def test_wrong_kernels_are_found(sources: dict[str, str], tmp_path: Path):
    source = sources["recompute_odd"]
    total = "tl.where(mask_n[None, :], e, 0.0)"
    mutants = {
        "total": source.replace(total, "e"),
        "sign": source.replace("s = c1 - top[:, None]", "s = c1 + top[:, None]"),
        "rescale": source.replace("sum_1 * scale", "sum_1"),
    }
    assert all(mutant != source for mutant in mutants.values())
    reports = check_all(mutants, tmp_path)
    assert [name for name, report in reports.items() if report["ok"]] == []


def test_exact_tiles_need_no_mask(sources: dict[str, str]):
    assert "mask" in sources["attention_odd"]
    assert "mask" not in sources["recompute_even"]
    assert "mask" not in sources["split_even"]


def test_slices_of_one_element_need_no_mask(sources: dict[str, str]):
    """The loop over them ends in time, also where it is a part of a dimension."""
    source = sources["split_one"]
    assert "for m in range(start_m, stop_m, 1):" in source
    assert "mask_m" not in source


def test_spilled_tiles_are_read_behind_a_barrier(sources: dict[str, str]):
    assert sources["spill_odd"].count("tl.debug_barrier()") == 1
    assert "tl.debug_barrier()" not in sources["recompute_odd"]


def test_large_buffers_are_addressed_in_64_bits():
    """2^31 elements and more: offsets of rows are widened before they are scaled."""
    sizes = {"M": 2**17, "N": 2**15}
    source = emitted(schedule("welford", sizes, {"M": 16, "N": 64}), LOWER)
    assert "offs_m[:, None].to(tl.int64) * N + offs_n[None, :]" in source
    small = emitted(schedule("welford", EVEN, EVEN_TILES), LOWER)
    assert "int64" not in small


def test_messages_that_lie_side_by_side_are_addressed_in_64_bits():
    """So are slots, and the shard that a rank loads of a large value."""
    text = SHARED_TEXTS["gemm_reduce_scatter"].format(M=2**17, N=2**15, K=8)

    def source(pattern: str) -> str:
        passes = f"triton-distributed{{ranks=4 pattern={pattern}}}"
        return emitted(text, f"{H200X8},{passes}")

    assert "(slot * WORLD + source).to(tl.int64) * M * N" in source("push")
    own = "slot.to(tl.int64) * M_ALL * N + (rank * M).to(tl.int64) * N"
    assert own in source("pull")


def test_reduction_of_loaded_tiles_used_twice_is_guarded(sources: dict[str, str]):
    """Triton up to 3.8 crashes on it otherwise; see the lowering of reduce."""
    kernel = sources["contractions_even"]
    assert 'tl.where(mask_n[None, :], x_tile, float("-inf"))' in kernel


def test_dots_have_at_least_16_rows():
    module = run_passes(
        parse_module(schedule("softmax_recompute", {"M": 3, "N": 5, "K": 2}, {})), LOWER
    )
    (kernel,) = (op for op in module.body.block.ops if isinstance(op, tl.KernelOp))
    dots = [op for op in kernel.walk() if isinstance(op, tl.DotOp)]
    assert dots
    assert {str(op.result.type) for op in dots} == {"tensor<16x16xf32>"}


def test_a_single_row_is_multiplied_by_a_dot():
    """Not one of f32, where each padded row would be as much work again."""
    text = SHARED_TEXTS["ag_gemm"].format(M=1, N=48, K=48)

    def source(text: str) -> str:
        return emitted(text, f"{H200X8},triton-distributed{{ranks=3}}")

    assert "tl.dot(" in source(text)
    assert "tl.dot(" not in source(text.replace("f16", "f32"))


def test_functions_of_constants_are_constants():
    line = "tensor<4xf32, #compound.dims<M @REG>>"
    whole = "tensor<8xf32, #compound.dims<M @HBM>>"
    one, half = "tensor<f32, #compound.dims<>>", "tensor<f16, #compound.dims<>>"
    one, half = (t.replace("<>>", "<@REG>>") for t in (one, half))
    source = emitted(
        f"""
        func.func @f(%x: {whole}) -> {whole} {{
          %y = schedule.spatial on grid [g0: M = 2] ins(%x : {whole}) outs({whole}) {{
          ^bb0(%t: {line}):
            %two = compound.fill 2.0 : {half}
            %six = compound.map add %two, %two : {half}, {half} -> {half}
            %four = compound.cast %six : {half} -> {one}
            %root = compound.map rsqrt %four : {one} -> {one}
            %none = compound.fill 0.0 : {one}
            %low = compound.map log %none : {one} -> {one}
            %a = compound.map mult %t, %root : {line}, {one} -> {line}
            %b = compound.map max %a, %low : {line}, {one} -> {line}
            schedule.yield %b : {line}
          }}
          func.return %y : {whole}
        }}
        func.func private @f__reference(%x: tensor<8xf32, #compound.dims<M>>)
            -> tensor<8xf32, #compound.dims<M>> attributes {{comet.reference}} {{
          func.return %x : tensor<8xf32, #compound.dims<M>>
        }}""",
        LOWER,
    )
    assert "a = x_tile * 0.5  # compound.map mult" in source
    assert "low = tl.log(tl.zeros((), dtype=tl.float32))" in source


def test_products_of_constants_are_converted(tmp_path: Path):
    text = """
    !x = tensor<8xf16, #compound.dims<N>>
    !s = tensor<f16, #compound.dims<>>
    func.func @main(%x: !x) -> (!s, !x) {
      %two = compound.fill 2.0 : !s
      %root = compound.map rsqrt %two : !s -> !s
      %half = compound.contract %root, %root : !s, !s -> !s
      %y = compound.map mult %x, %half : !x, !s -> !x
      func.return %half, %y : !s, !x
    }"""
    source = emitted(text, f"{hardware('h200x1.yaml')},triton-distributed")
    assert "* 0.70703125" in source
    (report,) = check_all({"products": source}, tmp_path).values()
    assert report["ok"], report


def test_functions_are_exact(tmp_path: Path):
    """The hyperbolic tangent near zero, and sines of large angles, too."""
    text = """
    !m = tensor<37xf32, #compound.dims<M>>
    !s = tensor<f32, #compound.dims<>>
    func.func @main(%x: !m) -> (!m, !m, !m) {
      %small = compound.fill 1.0e-3 : !s
      %large = compound.fill 1.0e+2 : !s
      %y = compound.map mult %x, %small : !m, !s -> !m
      %near = compound.map tanh %y : !m -> !m
      %far = compound.map tanh %x : !m -> !m
      %sin = compound.map sin %x : !m -> !m
      %angle = compound.map mult %x, %large : !m, !s -> !m
      %cos = compound.map cos %angle : !m -> !m
      %turned = compound.map add %sin, %cos : !m, !m -> !m
      func.return %near, %far, %turned : !m, !m, !m
    }"""
    source = emitted(text, f"{hardware('h200x1.yaml')},triton-distributed")
    assert "tl.sin(" in source
    (report,) = check_all({"functions": source}, tmp_path).values()
    assert report["ok"], report


def test_positions_of_single_elements_are_converted(tmp_path: Path):
    text = """
    !n = tensor<31xf32, #compound.dims<N>>
    !s = tensor<f32, #compound.dims<>>
    func.func @main(%x: tensor<48x31xbf16, #compound.dims<M, N>>) -> !s {
      %norms = compound.contract %x, %x : tensor<48x31xbf16, #compound.dims<M, N>>,
          tensor<48x31xbf16, #compound.dims<M, N>> -> !n
      %n = compound.index : !n
      %sum = compound.contract %norms, %norms : !n, !n -> !s
      %most = compound.contract %n, %n : !n, !n -> !s
      %y = compound.map max %most, %sum : !s, !s -> !s
      func.return %y : !s
    }"""
    passes = "fuse{strategy=partial between=spill},tile,outline-kernels,lower-to-triton"
    source = emitted(text, f"{hardware('h200x1.yaml')},decompose,{passes}")
    assert "tl.cast(n, tl.float32)  # compound.index" in source
    (report,) = check_all({"positions": source}, tmp_path).values()
    assert report["ok"], report


def test_a_fold_to_numbers_begins_with_their_type(tmp_path: Path):
    """Triton takes a number for f32, and a loop keeps the types it begins with."""
    text = """
    !x = tensor<64xbf16, #compound.dims<N>>
    !s = tensor<bf16, #compound.dims<>>
    func.func @main(%x: !x) -> !s {
      %top = compound.reduce max %x : !x -> !s
      %shifted = compound.map sub %x, %top : !x, !s -> !x
      %e = compound.map exp %shifted : !x -> !x
      %l = compound.reduce add %e : !x -> !s
      func.return %l : !s
    }"""
    tiled = 'stream,fuse,tile{factors="l: warps=1; top_n: N=4"}'
    passes = f"decompose,{tiled},outline-kernels,lower-to-triton"
    source = emitted(text, f"{hardware('h200x1.yaml')},{passes}")
    assert "l = tl.zeros((), dtype=tl.bfloat16)" in source
    compile_all({"fold": source}, tmp_path, "sm_90")


@pytest.mark.parametrize("element", ["f32", "i32", "i64"])
def test_a_position_that_a_slice_takes_is_a_number(element: str, tmp_path: Path):
    text = f"""
    !x = tensor<5x{element}, #compound.dims<M>>
    !n = tensor<1x{element}, #compound.dims<N>>
    !y = tensor<5x1x{element}, #compound.dims<M, N>>
    func.func @main(%x: !x) -> (!y, !n) {{
      %i = compound.index : tensor<3x{element}, #compound.dims<N>>
      %two = compound.slice %i "N" [2, 1] : tensor<3x{element}, #compound.dims<N>> -> !n
      %y = compound.map add %x, %two : !x, !n -> !y
      %four = compound.map mult %two, %two : !n, !n -> !n
      func.return %y, %four : !y, !n
    }}"""
    source = emitted(text, f"{hardware('h200x1.yaml')},triton-distributed")
    (report,) = check_all({"position": source}, tmp_path).values()
    assert report["ok"], report


def test_a_row_beyond_32_bits_has_an_address_of_64_bits():
    text = """
    !y = tensor<1x40000xf16, #compound.dims<M, N>>
    func.func @main(%x: tensor<70000x40000xf16, #compound.dims<M, N>>) -> !y {
      %last = compound.slice %x "M" [69999, 1]
          : tensor<70000x40000xf16, #compound.dims<M, N>> -> !y
      %y = compound.map exp %last : !y -> !y
      func.return %y : !y
    }"""
    source = emitted(text, f"{hardware('h200x1.yaml')},triton-distributed")
    assert "x_ptr + tl.cast(69999, tl.int64) * N" in source


def test_extents_have_their_element_type(tmp_path: Path):
    text = """
    !x = tensor<37xf16, #compound.dims<M>>
    !s = tensor<f16, #compound.dims<>>
    func.func @main(%x: !x) -> (!s, !s) {
      %t = compound.reduce add %x : !x -> !s
      %n = compound.extent "M" of %x : !x -> !s
      %y = compound.map div %t, %n : !s, !s -> !s
      func.return %y, %n : !s, !s
    }
    """
    one = emitted(text, f"{hardware('h200x1.yaml')},triton-distributed")
    assert check_all({"one": one}, tmp_path)["one"]["ok"]
    two = emitted(text, f"{H200X8},triton-distributed{{ranks=2 dim=M}}")
    assert outcomes({"two": two}, tmp_path) == {"two": "right"}


def test_tables_are_total():
    assert set(ON_NUMBERS) == set(MapKind)
    written = {*BINARY_MAPS, *UNARY_MAPS, *COMPARE_MAPS, *OTHER_MAPS}
    assert written == set(MapKind)
    assert set(REDUCTIONS) == set(COMBINE) == set(ReduceKind)


def test_integers_are_cast_and_summed(tmp_path: Path):
    """Integers and bf16 are cast by way of f32; sums are in loops, and masked."""
    text = """
    !m = tensor<5xbf16, #compound.dims<M>>
    !ids = tensor<5xi64, #compound.dims<M>>
    !mk = tensor<5x70000xf32, #compound.dims<M, K>>
    !s = tensor<f32, #compound.dims<>>
    func.func @main(%ids: !ids, %x: !m, %y: !mk) -> (!m, !m, !ids, !ids, !ids) {
      %n = compound.cast %ids : !ids -> !m
      %d = compound.map sub %x, %n : !m, !m -> !m
      %i = compound.index : !m
      %p = compound.map add %x, %i : !m, !m -> !m
      %t = compound.cast %p : !m -> !ids
      %zero = compound.fill 0.0 : !s
      %above = compound.map gt %y, %zero : !mk, !s
          -> tensor<5x70000xi1, #compound.dims<M, K>>
      %one = compound.cast %above : tensor<5x70000xi1, #compound.dims<M, K>>
          -> tensor<5x70000xi64, #compound.dims<M, K>>
      %count = compound.reduce add %one : tensor<5x70000xi64, #compound.dims<M, K>>
          -> !ids
      %hundred = compound.fill 100.0 : !s
      %large = compound.map mult %y, %hundred : !mk, !s -> !mk
      %whole = compound.cast %large : !mk -> tensor<5x70000xi64, #compound.dims<M, K>>
      %most = compound.reduce max %whole : tensor<5x70000xi64, #compound.dims<M, K>>
          -> !ids
      func.return %d, %p, %t, %count, %most : !m, !m, !ids, !ids, !ids
    }"""
    source = emitted(text, f"{hardware('h200x1.yaml')},triton-distributed")
    (report,) = check_all({"integers": source}, tmp_path).values()
    assert report["ok"], report
