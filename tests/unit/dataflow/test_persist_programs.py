"""Programs that do several tiles: meaning, choice, what `verify-sync` rejects."""

import re
from functools import cache
from pathlib import Path

import pytest
from covering import EVERY_CASE, exhaustive, one_of, some
from gpu_graphs import H200, LAYERNORM, SOFTMAX
from gpu_ranks import H200X8, SHARED_TEXTS, TEXTS
from kernel_works import looping, needing
from named_ops import NAMED_OPS
from rank_runs import outcomes
from semantics import assert_same_meaning, parse_module, run_passes
from split_programs import MI300X, merging
from triton_modules import check_all, compile_all, emitted
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize, tile_blocks
from comet.cost.gpu.kernel import kernel_time
from comet.cost.gpu.persistent import persistent_work
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.tiling import kernel_work
from comet.cost.gpu.work import KernelWork, Loops
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound import ContractOp
from comet.dialects.dataflow import KernelOp
from comet.dialects.dataflow.persistence import loads_tiles_ahead, unfit_for_tiles
from comet.dialects.dataflow.transfer import WaitOp
from comet.dialects.schedule import SpatialOp
from comet.passes.dataflow.persist_programs import PERSIST
from comet.passes.dataflow.verify_sync import check_kernel

LOOP = re.compile(r"for tile in (?:tl\.)?range\(\w+, (\d+), (\d+)[,)]")
"""The loop over the tiles of a program."""
ALL_TEXTS = {**TEXTS, **SHARED_TEXTS}
SIZES = {"M": 69, "N": 75, "K": 37}
GEMM = """
func.func @f(%a: tensor<{M}x{K}xf16>, %b: tensor<{K}x{N}xf16>) -> tensor<{M}x{N}xf16> {{
  %c = compound.gemm %a, %b : (tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>)
      -> tensor<{M}x{N}xf16>
  func.return %c : tensor<{M}x{N}xf16>
}}
"""
HEADS = 'strategy=full factors="y: B=2 H=3 M=3 warps=4 stages=2 group=2"'
TILES = 'factors="c: M=5 N=5 warps=4 stages=2 group=2; c_k: K=3"'


def plan(text: str, options: str, machine: str = H200) -> ModuleOp:
    """Return the launch plan of a program."""
    module = parse_module(text)
    options = f"to=dataflow {options}".strip()
    return run_passes(module, f"{machine},triton-distributed{{{options}}}")


def persistent(
    text: str, options: str = "", machine: str = H200, programs: int = 2
) -> str:
    """Return the emitted module in which each kernel has so many programs."""
    kernels = (op for op in plan(text, options, machine).walk())
    names = (op.sym_name.data for op in kernels if isinstance(op, KernelOp))
    given = " ".join(f"{name}={programs}" for name in names)
    options = f'persist="{given}" {options}'.strip()
    return emitted(text, f"{machine},triton-distributed{{{options}}}")


def test_a_number_of_programs_changes_no_meaning():
    """A grid node is a loop to the interpreter, whoever does its tiles."""
    text = GEMM.format(**SIZES)
    before = run_passes(parse_module(text), f"{H200},decompose{{accumulator=f32}}")
    after = plan(text, f'persist="f_kernel=3" {TILES}')
    placed = run_passes(
        after, "materialize-copies,hoist-copies,pad-blocks,map-grid,mask-copies"
    )
    assert "swizzle 2, persistent 3>" in str(placed)
    assert_same_meaning(before, placed, "f")


def test_every_tile_is_done_once(tmp_path: Path):
    """Odd sizes; grids of one axis, two, three, and with a swizzle; split-K, masks."""
    causal = next(op for op in NAMED_OPS if op.title == "attention_causal")
    extents = {**causal.odd, "M": 45, "N": 77}
    rows = {"rows": persistent(SOFTMAX.format(**SIZES), "strategy=full")}
    sources = {
        "swizzle": persistent(GEMM.format(**SIZES), TILES, programs=4),
        **(rows if EVERY_CASE else {}),
        "two kernels": persistent(LAYERNORM.format(**SIZES), "strategy=none"),
        "causal": persistent(causal.text(extents), "strategy=full", programs=3),
        "causal, swizzle": persistent(causal.text(extents), HEADS, programs=5),
        "last": persistent_merge(),
    }
    swizzles = {name for name, source in sources.items() if "swizzle2d" in source}
    assert swizzles == {"swizzle", "causal, swizzle"}
    for name, source in sources.items():
        loops = LOOP.findall(source)
        assert loops, name
        assert all(int(tiles) > int(programs) for tiles, programs in loops)
    for name, facts in check_all(sources, tmp_path).items():
        assert facts["ok"], (name, facts)


def persistent_merge() -> str:
    """Return a split product whose persistent programs arrive at counters."""
    name = re.search(r"def (\w+_kernel)", merging("gemm"))
    assert name is not None
    source = merging("gemm", options=f'persist="{name[1]}=4"')
    assert "arrive_last" in source
    return source


ROWS = 'factors="p: M=7 warps=4 stages=1"'
"""Tiles of 64 rows and all columns and terms: matrix instructions of sm_90."""


@one_of(2)
@pytest.mark.parametrize("options", [ROWS, f"copies=descriptors {ROWS}"])
def test_stationary_operands_are_loaded_once(options: str, tmp_path: Path):
    """Before the loop over tiles, with a mask for odd columns and terms."""
    text = SOFTMAX.format(M=7 * 64 - 5, N=72, K=40)
    options = f'persist="f_kernel=2" {options}'
    before, loop = emitted(text, f"{H200},triton-distributed{{{options}}}").split(
        "for tile in range(program, 7, 2):"
    )
    assert "b_tile = " in before
    assert "b_tile = " not in loop
    module = before + "for tile in range(program, 7, 2):" + loop
    (facts,) = check_all({"resident": module}, tmp_path).values()
    assert facts["ok"], facts
    reference = run_passes(parse_module(text), f"{H200},decompose{{accumulator=f32}}")
    copies = run_passes(plan(text, options), "materialize-copies,hoist-copies")
    assert str(copies).count(" resident :") == 1
    assert_same_meaning(reference, copies, "f")


@one_of(2)
@pytest.mark.parametrize(
    ("sizes", "tiles", "machine"),
    [
        pytest.param({"K": 128}, "p: M=4; c_k: K=4", H200, id="terms in a loop"),
        pytest.param({"K": 32}, "p: M=16", H200, id="operands in registers"),
        pytest.param({"K": 32}, "p: M=4", MI300X, id="no operands in shared memory"),
    ],
)
def test_no_operand_stays(sizes: dict[str, int], tiles: str, machine: str):
    """A loop changes it, or matrix instructions do not read it from shared memory."""
    text = SOFTMAX.format(M=256, N=64, **sizes)
    factors = tiles.replace("; ", " warps=4 stages=1; ", 1)
    factors += "" if "warps" in factors else " warps=4 stages=1"
    module = plan(text, f'persist="f_kernel=2" factors="{factors}"', machine)
    assert "persistent = 2>" in str(module)


def test_what_stationary_operands_save():
    """Loads of all but the first tile, the buffers of other stages, and waits."""
    text = SOFTMAX.format(M=256 * 64, N=64, K=64)
    module = plan(text, 'factors="p: M=256 warps=4 stages=2"')
    system = attached_system(module)
    gpu = device_of(system)
    (node,) = (op for op in module.walk() if isinstance(op, SpatialOp))
    summary, blocks = summarize(node, gpu_levels(system), gpu), tile_blocks(node)
    work = kernel_work(summary, blocks, LaunchNumbers(4, 2), gpu)
    found = persistent_work(work, summary, blocks, 64, gpu, stationary=True)
    one = 64 * 64 * 2
    assert work.needs.shared == 4 * one
    assert found.needs.shared == 3 * one
    assert work.moved.l2 - found.moved.l2 == pytest.approx(3 / 4 * one)
    assert found.loops.loads_ahead
    plain = persistent_work(work, summary, blocks, 64, gpu, stationary=False)
    registers = plain.needs.registers
    assert plain == needing(looping(work, loads_ahead=True), registers=registers)


def test_the_loop_over_tiles_needs_registers():
    """
    Compiled by Triton 3.9 for gfx942, causal attention of 128 x 32 takes 234 registers,
    persistent 257: a compute unit has room for one program.
    """
    causal = next(op for op in NAMED_OPS if op.title == "attention_causal")
    text = causal.text({"B": 4, "H": 32, "M": 4096, "N": 4096, "D": 128, "E": 128})
    tiles = 'factors="y: B=4 H=32 M=32 warps=4 stages=2; m_n: N=128"'
    for options, programs in (("", 304), ("unmask=none", 608)):
        module = plan(text, f"persist=all {options} {tiles}", MI300X)
        assert f"persistent = {programs}>" in str(module)


def test_padded_rows_take_registers():
    """Eight rows of queries are padded to 16, whose scores all warps hold."""
    decode = next(op for op in NAMED_OPS if op.title == "flash_decode")
    text = decode.text({"B": 16, "H": 12, "G": 8, "S": 32768, "D": 128, "E": 128})
    tiles = 'split=none factors="y: B=16 H=12 G=1 E=8 warps=8 stages=1; m_s: S=512"'
    assert "persistent = 132>" in str(plan(text, f"persist=all {tiles}"))


RANKS = [
    ("ag_gemm", 2, "pattern=wait"),
    ("ag_gemm", 3, "pattern=push"),
    ("ag_gemm", 2, "pattern=pull"),
    ("ag_gemm_rows", 2, "pattern=pull inputs=symmetric"),
    ("ag_gemm_rows", 3, "pattern=fused"),
    ("gemm_reduce_scatter", 2, "pattern=fused persistent=true"),
    ("softmax", 3, "pattern=fused persistent=true"),
    ("gemm_all_reduce", 2, "pattern=bsp"),
]


@exhaustive
def test_ranks_signal_and_wait_in_loops_over_tiles(tmp_path: Path):
    """With room for one program a rank, too: programs wait for earlier nodes only."""
    sources = {
        f"{name} {ranks} {pattern}": persistent(
            ALL_TEXTS[name].format(**SIZES), f"ranks={ranks} {pattern}", H200X8
        )
        for name, ranks, pattern in some(RANKS, 8)
    }
    for name, source in sources.items():
        assert LOOP.search(source), name
    by_file = {f"ranks_{index}": text for index, text in enumerate(sources.values())}
    found = dict(zip(sources, outcomes(by_file, tmp_path).values(), strict=True))
    assert found == dict.fromkeys(sources, "right")


LARGE = GEMM.format(M=4096, N=4096, K=4096)
WIDE = 'factors="c: M=32 N=16 warps=4 stages=3 group=8; c_k: K=64"'
AHEAD = f"copies=descriptors specialize=true {WIDE}"


def test_the_gpu_is_full_once(tmp_path: Path):
    """Wide tiles, warps that load ahead: no spills, and as many as fit at a time."""
    text, options = specialized_attention()
    source = emitted(text, f"{H200},triton-distributed{{persist=all {options}}}")
    assert LOOP.findall(source) == [("512", "132")]
    assert source.count("warp_specialize=True") == 1
    (facts,) = compile_all({"ahead": source}, tmp_path, "sm_90")
    assert facts["spills"] == 0
    assert facts["programs"] == facts["resident"] == 132
    assert not facts["slow"]


def specialized_attention() -> tuple[str, str]:
    """Return attention of 512 tiles, and the options that specialize its warps."""
    op = next(op for op in NAMED_OPS if op.title == "attention")
    text = op.text({"B": 4, "H": 4, "M": 4096, "N": 1024, "D": 128, "E": 128})
    tiles = 'factors="y: B=4 H=4 M=32 warps=4 stages=2; m_n: N=8"'
    return text, f"copies=descriptors specialize=true {tiles}"


def test_producer_warps_have_buffers_for_the_queries_of_the_next_tile():
    """Of 192 elements (padded to 256) Triton takes 246,152 bytes, of 128 213,384."""
    op = next(op for op in NAMED_OPS if op.title == "attention")
    found: list[str] = []
    for size in (128, 192):
        extents = {"B": 2, "H": 8, "M": 2048, "N": 2048, "D": size, "E": 128}
        found.append(str(plan(op.text(extents), "strategy=full split=none")))
    assert all("specialize" in each for each in found)
    assert ["persistent = 132" in each for each in found] == [True, False]


@exhaustive
def test_other_kernels_compile_without_spills(tmp_path: Path):
    tiles = 'factors="c: M=32 N=32 warps=8 stages=3 group=8; c_k: K=64"'
    tiles_of_amd = 'factors="c: M=32 N=32 warps=4 stages=2 group=8; c_k: K=64"'
    options = "triton-distributed{persist=all"
    by_target = {
        "sm_90": {
            "gemm": emitted(LARGE, f"{H200},{options} {tiles}}}"),
            "causal": attention(H200),
            "stationary": stationary(),
        },
        "gfx942": {
            "gemm": emitted(LARGE, f"{MI300X},{options} {tiles_of_amd}}}"),
            "causal": attention(MI300X),
        },
    }
    for target, sources in by_target.items():
        assert all(LOOP.search(source) for source in sources.values())
        for facts in compile_all(sources, tmp_path, target):
            assert facts["spills"] == 0, facts


def stationary() -> str:
    """Return a product whose right operand stays in shared memory, 128 KiB of it."""
    rows = 'factors="p: M=1024 warps=8 stages=1"'
    text = SOFTMAX.format(M=65536, N=256, K=256)
    return emitted(text, f"{H200},triton-distributed{{persist=all {rows}}}")


def attention(machine: str) -> str:
    """Return causal attention whose programs do several blocks of rows."""
    causal = next(op for op in NAMED_OPS if op.title == "attention_causal")
    extents = {"B": 4, "H": 32, "M": 1024, "N": 1024, "D": 64, "E": 64}
    return emitted(causal.text(extents), f"{machine},triton-distributed{{persist=all}}")


def test_what_the_model_sees():
    """Only loads of producer warps run ahead: one pipeline for all tiles."""
    gpu = device_of(attached_system(plan(LARGE, WIDE)))
    programs = 4 * gpu.multiprocessors
    work = KernelWork(programs, loops=Loops(rounds=4, stages=2))
    alone = needing(work, registers=gpu.limits.register_bytes)
    ahead = looping(alone, loads_ahead=True)
    waits = 4 * (1 + 3), 1 + 4 * 3
    for each, expected in zip((alone, ahead), waits, strict=True):
        latency = kernel_time(each, gpu).latency.seconds
        control = programs * 4 / gpu.multiprocessors * gpu.times.iteration
        assert latency == pytest.approx(expected * gpu.times.load_latency + control)


LATENT = GEMM.format(M=4096, N=4096, K=192)
UNALIGNED = GEMM.format(M=4096, N=4095, K=192)
"""Rows of the right operand begin anywhere: no descriptor copies them."""
SHORT = 'factors="c: M=64 N=64 warps=4 stages=2 group=8; c_k: K=3"'


@one_of(4)
@pytest.mark.parametrize(
    ("text", "options", "chosen"),
    [
        (LARGE, AHEAD, "none"),
        (LARGE, WIDE, "none"),
        (LATENT, SHORT, "none"),
        (*specialized_attention(), "main_kernel=132"),
        (LATENT, f"specialize=true {SHORT}", "none"),
        (UNALIGNED, f"copies=descriptors specialize=true {SHORT}", "none"),
        (GEMM.format(**SIZES), f"specialize=true {TILES}", "none"),
    ],
)
def test_auto_takes_what_is_faster(text: str, options: str, chosen: str):
    """A launch that waits for loads, and warps that load ahead; nothing else gains."""
    module = plan(text, f"persist=auto {options}")
    (func,) = (op for op in module.walk() if PERSIST in op.attributes)
    assert str(func.attributes[PERSIST]) == f'"{chosen}"'
    settled = f'persist-programs{{kernels="{chosen}"}},annotate-cost'
    given = run_passes(plan(text, options), settled)
    assert launches(given) == launches(module)
    assert str(launches(given)).count("persistent = 132") == (chosen != "none")


@one_of(2)
@pytest.mark.parametrize(
    ("title", "rows", "chosen"),
    [
        ("attention", 5632, "main_kernel=132"),
        ("attention_causal", 5632, "none"),
        ("attention_causal", 5504, "main_kernel=132"),
    ],
)
def test_auto_prices_the_program_with_the_longest_tiles(
    title: str, rows: int, chosen: str
):
    """132 is 3 times 44, the tiles of a head of 5632: a program has equal ones."""
    op = next(op for op in NAMED_OPS if op.title == title)
    text = op.text({"B": 4, "H": 32, "M": rows, "N": rows, "D": 128, "E": 128})
    count = rows // 128
    loops = f"y: B=4 H=32 M={count} warps=4 stages=2; m_n: N={count}"
    options = "order=longest persist=auto copies=descriptors specialize=true"
    module = plan(text, f'{options} factors="{loops}"')
    (func,) = (op for op in module.walk() if PERSIST in op.attributes)
    assert str(func.attributes[PERSIST]) == f'"{chosen}"'


def launches(module: ModuleOp) -> list[str]:
    """Return the launch numbers of all grid nodes."""
    nodes = (op for op in module.walk() if isinstance(op, SpatialOp))
    return [str(node.launch) for node in nodes]


@cache
def grouped() -> str:
    """Return a kernel whose programs exchange, with launch numbers."""
    text = SOFTMAX.format(M=64, K=32, N=128)
    return str(plan(text, "ctas=2 strategy=full"))


def test_groups_are_refused():
    with pytest.raises(PassFailedException, match=r"rows in turns already; .*ctas=1"):
        _ = plan(SOFTMAX.format(M=64, K=32, N=128), 'ctas=2 persist="f_kernel=2"')
    every = plan(SOFTMAX.format(M=64, K=32, N=128), "ctas=2 persist=all")
    assert "persistent = " not in str(every)


@one_of(2)
@pytest.mark.parametrize(
    ("removed", "reason"),
    [("", "rows in turns already"), ("coresident 2 ", "a tile that comes later")],
)
def test_a_loop_over_tiles_by_hand_is_verified(removed: str, reason: str):
    """Each safeguard alone: the same node would wait for its own programs."""
    launch = r"(schedule\.launch<warps = \d+, stages = \d+, group = \d+)>"
    text = re.sub(launch, r"\1, persistent = 1>", grouped().replace(removed, ""))
    assert text != grouped()
    module = parse_module(text)
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    assert reason in str(unfit_for_tiles(kernel))
    with pytest.raises(PassFailedException, match="verify-sync: "):
        check_kernel(kernel)
    with pytest.raises(PassFailedException, match=f"lower-to-triton: .*{reason}"):
        run_passes(module, "lower-to-triton")


LABELLED = """
!x = tensor<8192x{N}xbf16, #compound.dims<M, N>>
!w = tensor<8192x{N}xf32, #compound.dims<M, N>>
!b = tensor<8192x{N}xi1, #compound.dims<M, N>>
!l = tensor<8192xi64, #compound.dims<M>>
!r = tensor<8192xf32, #compound.dims<M>>
func.func @f(%x: !x, %labels: !l) -> !r {{
  %n = compound.index : tensor<{N}xi64, #compound.dims<N>>
  %hit = compound.map eq %labels, %n : !l, tensor<{N}xi64, #compound.dims<N>> -> !b
  %zero = compound.fill 0.0 : tensor<f32, #compound.dims<>>
  %wide = compound.cast %x : !x -> !w
  %m = compound.reduce max %wide : !w -> !r
  %s = compound.map sub %wide, %m : !w, !r -> !w
  %e = compound.map exp %s : !w -> !w
  %sum = compound.reduce add %e : !w -> !r
  %p = compound.map div %e, %sum : !w, !r -> !w
  %at = compound.map select %hit, %p, %zero
      : !b, !w, tensor<f32, #compound.dims<>> -> !w
  %l = compound.reduce add %at : !w -> !r
  func.return %l : !r
}}
"""
"""The probability of a label in each row, as in a cross entropy."""


def test_positions_of_labels_stay_in_registers_from_tile_to_tile():
    """
    Two registers for each column of a thread.

    Compiled by Triton 3.9 for gfx942, two rows of 16,384 take 110 registers, and 170 in
    a loop over tiles; of 32,768 they take 218, and spill 264 bytes in a loop.
    """
    few, many = LABELLED.format(N=16384), LABELLED.format(N=32768)
    rows = 'strategy=full split=none factors="l: M=4096 warps=8 stages=2"'
    assert "persistent = 304" in str(plan(few, f"persist=all {rows}", MI300X))
    assert "persistent = " not in str(plan(many, f"persist=all {rows}", MI300X))
    given = f'persist="f_kernel=304" {rows}'
    assert "persistent = 304" in str(plan(many, given, MI300X))


def tile_loops(text: str, machine: str) -> list[str]:
    """Return the loops over tiles that programs without products have, and others."""
    source = emitted(text, f"{machine},triton-distributed{{strategy=none persist=all}}")
    return re.findall(r"for tile in (.*):", source)


def test_rows_are_loaded_ahead():
    """
    Without products the pipeline is that of the loop over tiles, on sm_90.

    On gfx942, where copies pass registers, the loop has none.
    """
    text = SOFTMAX.format(M=8192, N=4096, K=64)
    assert tile_loops(text, H200) == [
        "range(program, 2048, 264)",
        "tl.range(program, 2048, 264, num_stages=4)",
    ]
    assert tile_loops(text, MI300X) == ["range(program, 2048, 1216)"]


def test_nothing_is_loaded_before_a_wait():
    """Sums of partial results wait for those of other ranks, and have no product."""
    text = ALL_TEXTS["gemm_all_reduce"].format(**SIZES)
    kernels = [
        op
        for op in plan(text, "ranks=2 pattern=push", H200X8).walk()
        if isinstance(op, KernelOp)
        and not any(isinstance(inner, ContractOp) for inner in op.walk())
    ]
    waiting = [
        op for op in kernels if any(isinstance(inner, WaitOp) for inner in op.walk())
    ]
    assert waiting
    assert not any(map(loads_tiles_ahead, waiting))


def test_rows_that_are_loaded_ahead_take_less_time():
    """Loads of the next rows overlap with what is computed and stored of these."""
    text = SOFTMAX.format(M=8192, N=8192, K=64)
    kernels = {
        op.sym_name.data: op
        for op in plan(text, "strategy=none persist=none").walk()
        if isinstance(op, KernelOp)
    }
    module = next(iter(kernels.values())).get_toplevel_object()
    assert isinstance(module, ModuleOp)
    gpu = device_of(attached_system(module))
    levels = gpu_levels(attached_system(module))
    (node,) = kernels["f_p_kernel"].nodes
    summary, blocks = summarize(node, levels, gpu), tile_blocks(node)
    work = kernel_work(summary, blocks, LaunchNumbers(8, 3), gpu)
    found = {
        ahead: persistent_work(
            work, summary, blocks, 132, gpu, stationary=False, tiles_ahead=ahead
        )
        for ahead in (False, True)
    }
    loaded = work.moved.l2 - work.moved.stored
    assert found[True].needs.shared == 2 * loaded
    seconds = {k: float(kernel_time(each, gpu).seconds) for k, each in found.items()}
    least = float(work.moved.device) / gpu.memory.hbm_bandwidth
    assert least < seconds[True] < 0.9 * seconds[False]
