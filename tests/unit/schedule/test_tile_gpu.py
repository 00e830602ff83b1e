"""Tiles on GPUs: powers of two that fit, plans that are obeyed, meaning kept."""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import tile_trees
from covering import one_of
from gpu_graphs import GRAPHS, H200, LAYERNORM, SOFTMAX
from gpu_ranks import H200X8, MI300X8, SHARED_TEXTS
from graph_text import Program
from hardware import H200 as GPU
from programs import graph_text
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize, tile_blocks
from comet.cost.from_ir.memory import vector_width
from comet.cost.gpu.capacity import fits, shared_need
from comet.cost.gpu.layouts import Layouts
from comet.cost.gpu.registers import LaunchNumbers, thread_registers
from comet.cost.gpu.summary import Evaluated, KernelSummary
from comet.cost.gpu.terms import Tiles, elements
from comet.cost.gpu.tiling import kernel_work, operations_of, price, rank
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import extents_of
from comet.dialects.cost import estimate_of
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.grid import grid_nodes
from comet.passes.schedule.plan_string import PLAN, parse_plan
from comet.passes.schedule.tile.gpu import best_tiling, space
from comet.passes.schedule.tile.gpu.space import tilings_that_fit
from comet.passes.search import ranked, session

TWO_LOOPS = "strategy=partial between=recompute"


def tiled(text: str, options: str, factors: str = "auto") -> ModuleOp:
    pipeline = f"{H200},decompose,stream,fuse{{{options}}}"
    return run_passes(parse_module(text), f'{pipeline},tile{{factors="{factors}"}}')


def plan_of(module: ModuleOp) -> str:
    (function,) = compute_functions(module)
    plan = function.attributes[PLAN]
    assert isinstance(plan, StringAttr)
    return plan.data


@one_of(4)
@pytest.mark.parametrize("strategy", ["full", "partial", "none"])
@pytest.mark.parametrize("text", [SOFTMAX, LAYERNORM], ids=["softmax", "layernorm"])
def test_chosen_tiles_keep_the_meaning(text: str, strategy: str) -> None:
    before = run_passes(
        parse_module(text.format(M=37, N=101, K=53)), f"{H200},decompose"
    )
    after = run_passes(before, f"stream,fuse{{strategy={strategy}}},tile")
    assert_same_meaning(before, after, "f")


@one_of(2)
@pytest.mark.parametrize("name", GRAPHS)
def test_any_graph_can_be_tiled(name: str) -> None:
    before = run_passes(parse_module(GRAPHS[name]), H200)
    after = run_passes(before, "fuse{strategy=partial},tile")
    assert_same_meaning(before, after, "f")


@one_of(2)
@pytest.mark.parametrize("between", ["recompute", "spill"])
@pytest.mark.parametrize("text", [SOFTMAX, LAYERNORM], ids=["softmax", "layernorm"])
def test_given_factors_keep_the_meaning(text: str, between: str) -> None:
    before = run_passes(parse_module(text.format(M=11, N=23, K=7)), f"{H200},decompose")
    fuse = f"fuse{{strategy=partial between={between}}}"
    tree = run_passes(before, f"stream,{fuse}")
    after = tile_trees.tiled(tree, grid="M=3", REG="N=5 K=2", HBM="N=3")
    assert_same_meaning(before, after, "f")


def test_a_plan_written_by_auto_gives_the_same_tiles_again() -> None:
    text = LAYERNORM.format(M=300, N=700, K=90)
    for options in (TWO_LOOPS, "strategy=partial between=spill", "strategy=none"):
        chosen = tiled(text, options)
        again = tiled(text, options, plan_of(chosen))
        assert str(again) == str(chosen)


def test_a_plan_may_say_how_large_tiles_are() -> None:
    text = SOFTMAX.format(M=77, N=2050, K=1000)
    module = tiled(text, TWO_LOOPS)
    grid, *loops = parse_plan(plan_of(module))
    by_size = [f"{grid.name}: BLOCK_M=32"]
    by_number = [f"{grid.name}: M=3"]
    for loop in loops:  # over N, and over N and K in it
        by_size += [f"{loop.name}: {' '.join(f'BLOCK_{d}=64' for d, _ in loop.loops)}"]
        counts = {"N": 33, "K": 16}
        by_number += [
            f"{loop.name}: {' '.join(f'{d}={counts[d]}' for d, _ in loop.loops)}"
        ]
    sized = tiled(text, TWO_LOOPS, "; ".join(by_size))
    assert str(sized) == str(tiled(text, TWO_LOOPS, "; ".join(by_number)))


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ("y: BLOCK_M=48", "BLOCK_M=48 is no power of two, as the blocks of Triton are"),
        ("y: BLOCK_M=16 M=2", "both by number and by size; write one"),
        ("y: BLOCK_Q=16", "unknown dimension BLOCK_Q; @y has M, N"),
    ],
)
def test_sizes_that_are_wrong(factors: str, message: str) -> None:
    with pytest.raises(PassFailedException, match=re.escape(message)):
        tiled(graph_text("gemm", (64, 32, 64)), "strategy=full", factors)


def test_blocks_are_powers_of_two() -> None:
    module = tiled(SOFTMAX.format(M=1000, N=3000, K=700), TWO_LOOPS)
    for op in module.walk():
        if not isinstance(op, SpatialOp | TemporalOp):
            continue
        for dim, factor in op.factors.items():
            tiles = {
                extents_of(tile)[dim] for tile in op.tiles if dim in extents_of(tile)
            }
            assert factor == 1 or all(t & (t - 1) == 0 for t in tiles)


def test_contractions_get_blocks_that_a_tensor_core_takes() -> None:
    module = tiled(SOFTMAX.format(M=1000, N=3000, K=700), TWO_LOOPS)
    for op in module.walk():
        if isinstance(op, ContractOp) and op.parent_op() is not None:
            extents = extents_of(op.lhs) | extents_of(op.rhs)
            if isinstance(op.parent_op(), TemporalOp):
                assert min(extents.values()) >= 16


ATTENTION = """
func.func @f(%q: tensor<1x2x256x128xf16>, %k: tensor<1x2x4096x128xf16>,
    %v: tensor<1x2x4096x128xf16>) -> tensor<1x2x256x128xf16> {
  %o = compound.attention %q, %k, %v : (tensor<1x2x256x128xf16>,
    tensor<1x2x4096x128xf16>, tensor<1x2x4096x128xf16>) -> tensor<1x2x256x128xf16>
  func.return %o : tensor<1x2x256x128xf16>
}"""


def test_no_loop_is_in_the_loop_over_keys() -> None:
    """Triton lets loads run ahead in innermost loops only."""
    module = tiled(ATTENTION, "strategy=full")
    loops = [op for op in module.walk() if isinstance(op, TemporalOp)]
    inner = [op for op in loops if isinstance(op.parent_op(), TemporalOp)]
    assert [op.factors for op in inner] == [{"D": 1}]


@pytest.mark.parametrize("hardware", [H200, MI300X8], ids=["H200", "MI300X"])
def test_no_tiling_that_is_worth_trying_has_such_a_loop(hardware: str) -> None:
    module = run_passes(
        parse_module(ATTENTION), f"{hardware},decompose,stream,fuse{{strategy=full}}"
    )
    system = attached_system(module)
    levels = gpu_levels(system)
    (function,) = compute_functions(module)
    (node,) = grid_nodes(function)
    gpu = device_of(system)
    summary = summarize(node, levels, gpu)
    priced = tilings_that_fit(summary, gpu)
    assert priced is not None
    found = ranked("other tiles", "@o", priced.candidates(summary.nest.grid))
    assert {each.result.blocks["D"] for each in found} == {128}


def test_loops_of_one_trip_load_with_the_loop_around_them() -> None:
    """Two products of each head: Triton has one loop, and all four tiles of a stage."""
    p = Program({"H": 6, "M": 128, "G": 64, "E": 64, "D": 128}, "bf16", "f32")
    first = p.contract("a", p.argument("x", "HMG"), p.argument("u", "DHG"), "MD")
    other = p.contract("b", p.argument("y", "HME"), p.argument("w", "DHE"), "MD")
    text = p.returning(p.map("z", "add", first, other))
    module = run_passes(
        parse_module(text), f"{H200},decompose,fuse{{strategy=full}},tile"
    )
    system = attached_system(module)
    levels, gpu = gpu_levels(system), device_of(system)
    (function,) = compute_functions(module)
    (node,) = grid_nodes(function)
    summary, blocks = summarize(node, levels, gpu), tile_blocks(node)
    assert (blocks["M"], blocks["G"], blocks["E"]) == (16, 64, 64)
    operands = 2 * (16 + blocks["D"]) * 64
    # Of three stages one is in registers, as there are few rows.
    assert shared_need(summary, blocks, 3, gpu) == 2 * 2 * operands


def test_rows_of_short_depths_are_a_last_resort() -> None:
    module = tiled(SOFTMAX.format(M=4096, N=4096, K=4096), "strategy=none")
    depths = [
        extents_of(op.lhs)["K"]
        for op in module.walk()
        if isinstance(op, ContractOp) and isinstance(op.parent_op(), TemporalOp)
    ]
    assert depths
    assert min(depths) >= 32


def test_kernels_get_launch_numbers_and_an_estimate() -> None:
    module = tiled(SOFTMAX.format(M=64, N=48, K=32), "strategy=none")
    for node in module.walk():
        if isinstance(node, SpatialOp):
            figures = estimate_of(node)
            assert node.launch is not None
            assert figures is not None
            assert figures.latency > 0


def test_products_of_several_waves_run_in_groups() -> None:
    def group(size: int) -> int:
        module = tiled(SOFTMAX.format(M=size, N=size, K=64), "strategy=none")
        node = next(op for op in module.walk() if isinstance(op, SpatialOp))
        assert node.launch is not None
        return node.launch.group

    assert group(64) == 1
    assert group(8192) == 8


def fused_with_launch(numbers: str) -> str:
    """Return a fused program whose kernel has launch numbers written by hand."""
    text = SOFTMAX.format(M=64, N=48, K=32)
    fused = run_passes(parse_module(text), f"{H200},decompose,fuse{{strategy=full}}")
    launch = f"#schedule.launch<{numbers}>"
    return str(fused).replace(
        "comet.cost =", f"schedule.launch = {launch}, comet.cost ="
    )


def launch_after(text: str, passes: str) -> str:
    module = run_passes(parse_module(text), passes)
    (node,) = (op for op in module.walk() if isinstance(op, SpatialOp))
    assert node.launch is not None
    return " ".join(f"{name}={n}" for name, n in node.launch.numbers.items())


def test_launch_numbers_written_by_hand_stay_where_the_plan_has_none() -> None:
    marked = fused_with_launch("warps = 16, stages = 1, group = 1")
    given = launch_after(marked, 'tile{factors="p: M=4 stages=2"}')
    assert given == "warps=16 stages=2 group=1"


def test_the_plan_that_fuse_writes_is_obeyed() -> None:
    """It has launch numbers too, which no search looks for again."""
    written = fused_with_launch("warps = 16, stages = 1, group = 1")
    (plan,) = re.findall('comet.plan = "(.*?)"', written)
    (kernel, *_) = (entry for entry in parse_plan(plan) if entry.launch)
    assert list(kernel.launch) == ["warps", "stages", "group"]
    other = plan.replace(f"stages={kernel.launch['stages']}", "stages=1")
    assert "stages=1 " in launch_after(written.replace(plan, other), "tile")
    with session() as searched:
        launch_after(written, "tile")
    assert not searched.choices


def product_summary(depth: int) -> KernelSummary:
    text = SHARED_TEXTS["ag_gemm"].format(M=1024, N=512, K=depth)
    module = run_passes(
        parse_module(text),
        f"{H200},select-ranks{{ranks=1}},decompose,fuse{{strategy=full}}",
    )
    (function,) = compute_functions(module)
    levels = gpu_levels(attached_system(module))
    return summarize(grid_nodes(function)[0], levels, GPU)


@pytest.mark.parametrize(
    ("rows", "registers"), [(2048, 0), (2052, 0), (2050, 32), (2049, 96)]
)
def test_narrow_loads_take_registers(rows: int, registers: int) -> None:
    """Of 8192 numbers for 256 threads; loads have 16, 8, 4 and 2 bytes."""
    blocks = {"M": 128, "N": 256, "K": 64}
    whole, odd = (product_summary(extent) for extent in (2048, rows))
    numbers = LaunchNumbers(8, 2)
    more = thread_registers(odd, blocks, numbers, GPU) - thread_registers(
        whole, blocks, numbers, GPU
    )
    assert more == registers


def test_what_a_channel_holds_has_the_rows_of_a_shard() -> None:
    """A third of 8192 numbers is odd; half is not."""
    text = SHARED_TEXTS["ag_gemm"].format(M=1024, N=512, K=8192)
    for passes in ("outline-kernels", "outline-kernels,bsp-to-dataflow"):
        for ranks, width in ((2, 16), (3, 2)):
            module = run_passes(
                parse_module(text),
                f"{H200X8},select-ranks{{ranks={ranks}}},decompose,insert-collectives,"
                f"place-collectives,fuse{{strategy=full}},tile,{passes}",
            )
            *_, product = (op for op in module.walk() if isinstance(op, SpatialOp))
            assert [vector_width(tile, 16) for tile in product.tiles] == [width, 16]


def test_the_best_tiling_is_the_cheapest_that_fits() -> None:
    text = SOFTMAX.format(M=256, N=512, K=256)
    module = run_passes(parse_module(text), f"{H200},decompose,fuse{{strategy=full}}")
    (function,) = compute_functions(module)
    system = attached_system(module)
    levels = gpu_levels(system)
    gpu = device_of(system)
    (node,) = grid_nodes(function)
    summary = summarize(node, levels, gpu)
    best = best_tiling(node, summary, gpu)
    assert best is not None
    numbers = LaunchNumbers(best.launch.warps, best.launch.stages)

    def ranked(blocks: Mapping[str, int]) -> float:
        time, programs = price(summary, blocks, numbers, gpu), summary.programs(blocks)
        return float(np.max(rank(time, programs, gpu)))

    def fitting(blocks: Mapping[str, int]) -> bool:
        work = kernel_work(summary, blocks, numbers, gpu)
        return bool(fits(summary, blocks, work.needs, gpu))

    assert fitting(best.blocks)
    for rows in (16, 32, 64, 128):
        other = {**best.blocks, "M": rows}
        if fitting(other):
            assert ranked(other) >= ranked(best.blocks)


def test_many_choices_are_priced_at_once_as_one_by_one() -> None:
    text = SOFTMAX.format(M=256, N=512, K=256)
    module = run_passes(parse_module(text), f"{H200},decompose,fuse{{{TWO_LOOPS}}}")
    (function,) = compute_functions(module)
    levels = gpu_levels(attached_system(module))
    gpu = device_of(attached_system(module))
    summary = summarize(grid_nodes(function)[0], levels, gpu)
    rows = np.array([16.0, 32.0, 64.0])
    numbers = LaunchNumbers(8, 2)
    together = price(summary, {"M": rows, "N": 64, "K": 32}, numbers, gpu).seconds
    apart = [
        float(price(summary, {"M": int(m), "N": 64, "K": 32}, numbers, gpu).seconds)
        for m in rows
    ]
    assert list(np.broadcast_to(together, rows.shape)) == apart


def test_summary_counts_the_work_of_all_programs() -> None:
    text = SOFTMAX.format(M=64, N=128, K=32)
    module = run_passes(
        parse_module(text), f"{H200},decompose,fuse{{{TWO_LOOPS}}},canonicalize"
    )
    (function,) = compute_functions(module)
    (node,) = grid_nodes(function)
    summary = summarize(node, gpu_levels(attached_system(module)), GPU)
    blocks = {"M": 16, "N": 32, "K": 16}
    programs = summary.programs(blocks)
    assert programs == 4
    reduction_loops = 3
    assert programs * summary.per_program(summary.products.operations, blocks) == (
        reduction_loops * 2 * 64 * 128 * 32
    )
    assert summary.per_program(summary.moves.stores, blocks) == 16 * 128 * 2


def attention_summary() -> KernelSummary:
    """Return what the kernel of ATTENTION does."""
    passes = f"{H200},decompose,stream,fuse{{strategy=full}},canonicalize"
    module = run_passes(parse_module(ATTENTION), passes)
    (function,) = compute_functions(module)
    (node,) = grid_nodes(function)
    return summarize(node, gpu_levels(attached_system(module)), GPU)


HEAD = {"B": 1, "H": 1, "M": 64, "N": 64, "D": 128, "E": 128}
"""Blocks that take the numbers of a head at once."""
TILE = 64 * 128 * 2
"""Bytes of as many of them as a block of queries or keys has."""


@pytest.mark.parametrize(("depth", "queries"), [(128, 1), (64, 4096 // 64)])
def test_queries_are_loaded_once_unless_a_loop_inside_cuts_them(
    depth: int, queries: int
) -> None:
    moved = attention_summary().moved({**HEAD, "D": depth})
    keys, values, results = 4096 // 64, 4096 // 64, 1
    assert moved == (queries + keys + values + results) * TILE


def test_blocks_remember_the_formulas_of_one_summary() -> None:
    summary = attention_summary()
    blocks = Evaluated.of(summary, HEAD)
    assert Evaluated.of(summary, blocks) is blocks
    assert summary.trips("N", blocks) == summary.trips("N", HEAD) == 4096 // 64
    blocks["N"] = 32
    assert summary.trips("N", blocks) == 4096 // 64
    extents = {**summary.nest.extents, "N": 128}
    other = replace(summary, nest=replace(summary.nest, extents=extents))
    assert (
        other.trips("N", blocks) == other.trips("N", Evaluated.of(other, blocks)) == 4
    )


def test_nothing_is_priced_if_no_tiling_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    summary, blocks = attention_summary(), {**HEAD, "M": 256, "N": 256}
    sizes = {dim: (size,) for dim, size in blocks.items()}
    monkeypatch.delattr(space, "kernel_work")
    assert space.launches_that_fit(summary, sizes, {}, GPU) is None


def test_a_tile_has_the_product_of_its_blocks_also_from_blocks_that_remember() -> None:
    tiles = Tiles({"M": 16.0, "K": 4.0})
    assert tiles.elements(("M", "K")) == elements(("M", "K"), dict(tiles)) == 64
    assert elements((), tiles) == elements((), dict(tiles)) == 1


def test_tiles_loaded_before_a_loop_have_no_stages() -> None:
    summary = attention_summary()
    # So much Triton takes of an H100: four stages of keys and values, the queries once.
    assert shared_need(summary, HEAD, 4, GPU) == (4 + 4 + 1) * TILE
    # Queries and weights pass other bytes to registers.
    few = 16 * 128 * 2 + 16 * 64 * 2
    assert shared_need(summary, {**HEAD, "M": 16}, 4, GPU) == (3 + 3) * TILE + few
    # One copy of each, whether it is read there or passes through.
    assert shared_need(summary, HEAD, 1, GPU) == (1 + 1 + 1) * TILE
    assert shared_need(summary, {**HEAD, "M": 16}, 1, GPU) == (1 + 1) * TILE


@pytest.mark.parametrize(
    ("rows", "warps", "along_rows"), [(128, 8, 8), (64, 8, 4), (64, 4, 4), (32, 4, 1)]
)
def test_warps_are_spread_over_the_rows_of_queries(
    rows: int, warps: int, along_rows: int
) -> None:
    """Instructions that read shared memory take 16 rows of each warp."""
    summary = attention_summary()
    layouts = Layouts(summary, {**HEAD, "M": rows}, warps, GPU)
    layout = layouts.of[summary.products.roles[-1]]
    assert (layout.rows, layout.columns) == (along_rows, warps // along_rows)


def test_more_warps_than_rows_hold_the_scores_twice() -> None:
    """Of 64 rows four warps hold 16 each: eight hold results once, scores twice."""
    summary, rules = attention_summary(), GPU.triton
    scores, weights, results, vectors = 32, 16, 64, 2 * 4
    for warps, held in (
        (4, scores + weights + results + vectors),
        (8, scores + weights + results / 2 + vectors),
    ):
        needed = thread_registers(summary, HEAD, LaunchNumbers(warps, 2), GPU)
        assert needed == rules.tiles.thread_registers + held


def test_scores_that_warps_hold_twice_are_computed_twice() -> None:
    summary, element = attention_summary(), 64 * 64 * (4096 // 64)
    four, eight = (operations_of(summary, HEAD, warps, GPU) for warps in (4, 8))
    assert eight.tensor - four.tensor == 2 * 128 * element
    exp, others = GPU.units.function_costs["exp"], 64 * 64
    assert eight.vector - four.vector > exp * element - others


def test_an_infeasible_whole_row_is_explained() -> None:
    text = SOFTMAX.format(M=16, N=512, K=16)
    module = run_passes(parse_module(text), f"{H200},decompose,fuse{{strategy=full}}")
    wide = str(module).replace("512", "200000")
    with pytest.raises(PassFailedException, match=r"makes %p needs .* bytes of REG"):
        run_passes(parse_module(wide), "tile")


def test_plan_entries_parse_back() -> None:
    module = tiled(LAYERNORM.format(M=300, N=700, K=90), "strategy=none")
    entries = parse_plan(plan_of(module))
    assert {entry.name for entry in entries} >= {"c", "c_k"}


def test_what_a_product_reads_converted_has_stages() -> None:
    """Powers times values: of these blocks Triton 3.9 takes 65,536 bytes of an H200."""
    p = Program({"M": 1024, "K": 1024, "N": 256}, "bf16", "f32")
    powers = p.map("e", "exp", p.argument("x", "MK"))
    text = p.returning(p.contract("z", powers, p.argument("v", "KN"), "MN"))
    passes = f"{H200},decompose,fuse{{strategy=full}},canonicalize"
    module = run_passes(parse_module(text), passes)
    (function,) = compute_functions(module)
    (node,) = grid_nodes(function)
    summary = summarize(node, gpu_levels(attached_system(module)), GPU)
    blocks = {"M": 64, "K": 64, "N": 128}
    assert shared_need(summary, blocks, 3, GPU) == 3 * (64 * 64 + 64 * 128) * 2
