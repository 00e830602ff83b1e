"""Kernels that do not need each other are one launch, and mean the same."""

from pathlib import Path

import pytest
from covering import EVERY_CASE, one_of
from gpu_graphs import H200
from gpu_ranks import H200X8, SHARED_TEXTS
from paths import ROOT
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import compile_all, emitted, printed, wrong
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import attached_system
from comet.dialects.cost import estimate_of
from comet.dialects.dataflow import (
    ArriveOp,
    BarrierOp,
    KernelOp,
    ProgramOp,
)
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.dataflow.launches import Dependences
from comet.passes.dataflow.merge_launches import LAUNCHES, prices_on
from comet.passes.search import session

KERNELS = f"{H200},fuse{{strategy=none}},tile,outline-kernels"

# One result needs another: c is made of a, d of b; a and b are of arguments only.
DIAMOND = """
!X = tensor<24x40xf32, #compound.dims<M, K>>
!W = tensor<40x20xf32, #compound.dims<K, N>>
!V = tensor<20x12xf32, #compound.dims<N, L>>
!Y = tensor<24x20xf32, #compound.dims<M, N>>
!Z = tensor<24x12xf32, #compound.dims<M, L>>
func.func @main(%x: !X, %p: !W, %q: !W, %v: !V) -> (!Z, !Z) {
  %a = compound.contract %x, %p : !X, !W -> !Y
  %b = compound.contract %x, %q : !X, !W -> !Y
  %c = compound.contract %a, %v : !Y, !V -> !Z
  %d = compound.contract %b, %v : !Y, !V -> !Z
  func.return %c, %d : !Z, !Z
}
"""

CHAIN = """
!X = tensor<24x40xf32, #compound.dims<M, K>>
!W = tensor<40x20xf32, #compound.dims<K, N>>
!V = tensor<20x12xf32, #compound.dims<N, L>>
!Y = tensor<24x20xf32, #compound.dims<M, N>>
!Z = tensor<24x12xf32, #compound.dims<M, L>>
func.func @main(%x: !X, %p: !W, %v: !V) -> !Z {
  %a = compound.contract %x, %p : !X, !W -> !Y
  %c = compound.contract %a, %v : !Y, !V -> !Z
  func.return %c : !Z
}
"""


def launched(module: ModuleOp) -> list[tuple[str, int]]:
    """Return the names of kernels, and how many nodes each has."""
    kernels = (op for op in module.walk() if isinstance(op, KernelOp))
    return [(kernel.sym_name.data, len(kernel.nodes)) for kernel in kernels]


def merged(text: str, options: str = "") -> ModuleOp:
    return run_passes(parse_module(text), f"{KERNELS},merge-launches{options}")


def test_kernels_of_one_depth_are_one_launch():
    module = merged(DIAMOND)
    assert launched(module) == [("main_a_kernel", 2), ("main_c_kernel", 2)]
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    assert sum(isinstance(op, BarrierOp) for op in program.body.block.ops) == 1
    assert_same_meaning(parse_module(DIAMOND), module, "main")


def test_all_programs_of_a_launch_have_the_same_numbers():
    for kernel in (op for op in merged(DIAMOND).walk() if isinstance(op, KernelOp)):
        numbers = {(n.launch.warps, n.launch.stages) for n in kernel.nodes if n.launch}
        assert len(numbers) == 1


@pytest.mark.parametrize(("option", "nodes"), [("auto", 2), ("none", 1)])
def test_fuse_prices_kernels_as_they_will_be_launched(option: str, nodes: int):
    """The few programs of the nodes of a launch run side by side."""
    passes = f"{H200},fuse{{strategy=none launches={option}}}"
    with session() as current:
        module = run_passes(parse_module(DIAMOND), passes)
    (choice,) = (c for c in current.choices if c.name == "strategy")
    kernels = [op for op in module.walk() if isinstance(op, SpatialOp)]
    bodies = [1e-9 * e.latency for op in kernels if (e := estimate_of(op))]
    assert len(bodies) == len(kernels) == 4
    launch = device_of(attached_system(module)).times.launch
    launches = (bodies[first : first + nodes] for first in range(0, 4, nodes))
    expected = sum(launch + max(each) for each in launches)
    (row,) = choice.rows
    assert row.cost is not None
    assert row.cost.latency == pytest.approx(expected, rel=1e-3)


def test_a_chain_stays_as_it_is():
    assert launched(merged(CHAIN)) == [("main_a_kernel", 1), ("main_c_kernel", 1)]


def test_stages_end_where_later_kernels_need_all_earlier_ones():
    """All need a, and g needs all; e could be launched with b, d or f."""
    read = {"a": "", "b": "a", "c": "a", "d": "bc", "e": "c", "f": "d", "g": "ef"}
    needs = Dependences(tuple(read), {each: frozenset(on) for each, on in read.items()})
    stages = list(needs.stages())
    assert ["".join(stage.kernels) for stage in stages] == ["a", "bcdef", "g"]
    assert stages[1].read["d"] == {"b", "c"}
    assert not stages[1].read["b"]


@pytest.mark.parametrize("launches", ["none", "main_a_kernel main_b_kernel"])
def test_launches_are_recorded_and_given(launches: str):
    module = merged(DIAMOND, f'{{launches="{launches}"}}')
    (function,) = compute_functions(module)
    assert function.attributes[LAUNCHES] == StringAttr(launches)
    assert len(launched(module)) == (4 if launches == "none" else 3)
    assert_same_meaning(parse_module(DIAMOND), module, "main")


def test_what_is_chosen_makes_the_same_when_given():
    module = merged(DIAMOND)
    (function,) = compute_functions(module)
    note = function.attributes[LAUNCHES]
    assert isinstance(note, StringAttr)
    assert str(merged(DIAMOND, f'{{launches="{note.data}"}}')) == str(module)


def test_merging_saves_a_launch_of_the_estimate():
    def latency(options: str) -> float:
        module = merged(DIAMOND, options)
        priced = run_passes(module, "annotate-cost")
        (program,) = (op for op in priced.walk() if isinstance(op, ProgramOp))
        found = estimate_of(program)
        assert found is not None
        return found.latency

    assert latency("{launches=none}") - latency("") > 0


@pytest.mark.parametrize(
    ("launches", "reason"),
    [
        ("main_a_kernel x", "names x, and the kernels are main_a_kernel, "),
        ("main_a_kernel main_a_kernel", "names main_a_kernel twice"),
        (
            "main_a_kernel main_d_kernel; main_b_kernel main_c_kernel",
            "need each other's results",
        ),
    ],
)
def test_impossible_launches_are_rejected(launches: str, reason: str):
    with pytest.raises(PassFailedException, match=reason):
        merged(DIAMOND, f'{{launches="{launches}"}}')


TWO_EXTENTS = """
!X = tensor<24x40xf32, #compound.dims<M, K>>
!Y = tensor<24xf32, #compound.dims<M>>
!U = tensor<7x40xf32, #compound.dims<M, K>>
!Z = tensor<7xf32, #compound.dims<M>>
func.func @main(%x: !X, %u: !U) -> (!Y, !Z) {
  %a = compound.reduce add %x : !X -> !Y
  %c = compound.reduce add %u : !U -> !Z
  func.return %a, %c : !Y, !Z
}
"""


def test_two_extents_of_a_dimension_are_two_launches():
    assert [nodes for _, nodes in launched(merged(TWO_EXTENTS))] == [1, 1]
    with pytest.raises(PassFailedException, match="two extents of a dimension"):
        merged(TWO_EXTENTS, '{launches="main_a_kernel main_c_kernel"}')


def test_a_kernel_that_shares_no_launch_may_be_named_alone():
    """It sends to other ranks."""
    text = SHARED_TEXTS["gemm_all_reduce"].format(M=8, N=8, K=8)
    options = "ranks=2 pattern=fused to=dataflow"

    def compiled(launches: str) -> str:
        given = f'triton-distributed{{{options} launches="{launches}"}}'
        return str(run_passes(parse_module(text), f"{H200X8},{given}"))

    alone = compiled("f_c_kernel")
    assert "dataflow.push" in alone
    assert alone == compiled("none")


def test_merged_kernels_are_right_in_tritons_interpreter(tmp_path: Path):
    block = (ROOT / "samples" / "blocks" / "llama.mlir").read_text()
    wanted = {"diamond": (DIAMOND, "strategy=none")}
    if EVERY_CASE:
        wanted["block"] = (block, "strategy=partial")
    sources: dict[str, str] = {}
    for name, (text, options) in wanted.items():
        module = run_passes(
            parse_module(text), f"{H200},triton-distributed{{{options}}}"
        )
        sources[name] = printed(module)
    assert "if program < " in sources["diamond"]
    assert not wrong(sources, tmp_path)


LARGE_AND_SMALL = """
!X = tensor<1024x64xf16, #compound.dims<M, K>>
!W = tensor<64x1024xf16, #compound.dims<K, N>>
!Y = tensor<1024x1024xf32, #compound.dims<M, N>>
!U = tensor<1024xf32, #compound.dims<M>>
!V = tensor<1024x4096xf32, #compound.dims<M, L>>
func.func @main(%x: !X, %w: !W, %v: !V) -> (!Y, !U) {
  %a = compound.contract %x, %w : !X, !W -> !Y
  %u = compound.reduce add %v : !V -> !U
  func.return %a, %u : !Y, !U
}
"""


def test_a_launch_has_warps_for_its_largest_tiles():
    """Four warps are faster, but have no registers for tiles of 128 x 256."""
    factors = (
        "a: M=8 N=4 warps=8 stages=1; a_k: K=1; u: M=16 warps=4 stages=4; u_l: L=64"
    )
    passes = (
        f'{H200},fuse{{strategy=none}},tile{{factors="{factors}"}},outline-kernels,'
        'merge-launches{launches="main_a_kernel main_u_kernel"}'
    )
    module = run_passes(parse_module(LARGE_AND_SMALL), passes)
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    assert [node.launch and node.launch.warps for node in kernel.nodes] == [8, 8]


TWO_PRODUCTS = """
!X = tensor<256x256xf16, #compound.dims<M, K>>
!W = tensor<256x256xf16, #compound.dims<K, N>>
!Y = tensor<256x256xf32, #compound.dims<M, N>>
func.func @f(%x: !X, %p: !W, %q: !W) -> (!Y, !Y) {
  %a = compound.contract %x, %p : !X, !W -> !Y
  %b = compound.contract %x, %q : !X, !W -> !Y
  func.return %a, %b : !Y, !Y
}
"""


def test_equal_kernels_of_a_launch_have_the_same_shared_memory(tmp_path: Path):
    """Triton would add up that of both (see `make_branch_ends_differ`)."""
    factors = "{0}: M=4 N=4 warps=4 stages=3; {0}_k: K=4"
    passes = (
        f"{H200},decompose,fuse{{strategy=none}},"
        f'tile{{factors="{factors.format("a")}; {factors.format("b")}"}},'
        "outline-kernels,merge-launches"
    )
    sources = {
        name: emitted(TWO_PRODUCTS, f"{passes}{{launches={launches}}},lower-to-triton")
        for name, launches in (("two", "none"), ("one", '"f_a_kernel f_b_kernel"'))
    }
    sizes = [facts["shared"] for facts in compile_all(sources, tmp_path, "sm_90")]
    assert len(set(sizes)) == 1
    assert len(sizes) == 3


PROJECTIONS = """
!X = tensor<37x64xf16, #compound.dims<M, K>>
!W = tensor<64x43xf16, #compound.dims<K, N>>
!V = tensor<64x24xf16, #compound.dims<K, L>>
!Y = tensor<37x43xf32, #compound.dims<M, N>>
!Z = tensor<37x24xf32, #compound.dims<M, L>>
func.func @main(%x: !X, %w: !W, %v: !V) -> (!Y, !Z) {
  %a = compound.contract %x, %w : !X, !W -> !Y
  %c = compound.contract %x, %v : !X, !V -> !Z
  func.return %a, %c : !Y, !Z
}
"""
SPLITS = {
    "both": ('split="K=4"', 2),
    "with other numbers of parts": ('split="K=4: a; K=2: c"', 2),
    "the first": ('split="K=4: a"', 1),
    "the second": ('split="K=2: c"', 1),
}
ONE_LAUNCH = 'merge=last launches="main_a_kernel main_c_kernel"'


@one_of(2)
@pytest.mark.parametrize("split", SPLITS)
def test_last_programs_of_a_shared_launch_merge(split: str, tmp_path: Path):
    text, merges = SPLITS[split]
    passes = f"{H200},triton-distributed{{{text} {ONE_LAUNCH}}}"
    source = emitted(PROJECTIONS, passes)
    assert source.count("= arrive_last(") == merges
    assert source.count("if program < ") == 1
    assert not wrong({"split": source}, tmp_path)


@one_of(2)
@pytest.mark.parametrize("split", SPLITS)
def test_merging_in_a_shared_launch_means_the_same(split: str):
    text, _ = SPLITS[split]
    module = parse_module(PROJECTIONS)
    plan = f"{H200},triton-distributed{{{text} {ONE_LAUNCH} to=dataflow}}"
    assert_same_meaning(module, run_passes(module, plan), "main")


def test_last_programs_of_a_shared_launch_wait_for_one_exchange():
    """What merges is a grid again; `merge-launches` has the same price."""
    text, _ = SPLITS["both"]
    plan = f"{H200},triton-distributed{{{text} {ONE_LAUNCH} to=dataflow}}"
    module = run_passes(parse_module(PROJECTIONS), plan)
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    (kernel,) = program.kernels()
    system = attached_system(module)
    seconds, _ = prices_on(system).best((kernel,))
    found = estimate_of(program)
    assert found is not None
    assert found.latency == pytest.approx(1e9 * seconds, rel=0.001)


def test_two_nodes_have_counters_of_their_own():
    text, _ = SPLITS["both"]
    plan = f"{H200},triton-distributed{{{text} {ONE_LAUNCH} to=dataflow}}"
    module = run_passes(parse_module(PROJECTIONS), plan)
    first, second = (op for op in module.walk() if isinstance(op, ArriveOp))
    second.operands[-1] = first.counters
    with pytest.raises(PassFailedException, match="counters to which others add, too"):
        run_passes(module, "verify-sync")


DECODING_AND_GEMM = """
!Q = tensor<3x2x3x8xf16>
!K = tensor<3x2x48x8xf16>
!W = tensor<16x16xf16>
func.func @main(%q: !Q, %k: !K, %v: !K, %lens: tensor<3xi32>, %a: !W, %b: !W)
    -> (!Q, !W) {
  %o = compound.flash_decode %q, %k, %v, %lens : (!Q, !K, !K, tensor<3xi32>) -> !Q
  %c = compound.gemm %a, %b : (!W, !W) -> !W
  func.return %o, %c : !Q, !W
}
"""


def test_programs_that_may_share_a_list_of_tiles_have_their_launch():
    plan = f'{H200},triton-distributed{{split="S=4" merge=last to=dataflow}}'
    module = run_passes(parse_module(DECODING_AND_GEMM), plan)
    assert [nodes for _, nodes in launched(module)] == [2, 1]
