"""The last program to arrive merges: meaning, choice, what `verify-sync` rejects."""

from functools import cache

import pytest
from covering import one_of
from semantics import assert_same_meaning, parse_module, run_passes
from split_programs import H200, SPLITS
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.gpu.tiling import held_bytes
from comet.dialects.arch import attached_system
from comet.dialects.cost import estimate_of
from comet.dialects.dataflow import ArriveOp, BarrierOp, CountersOp, KernelOp, ProgramOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.dataflow.merge_partials import MERGES, possible_merges

COPIES = "materialize-copies,hoist-copies,verify-sync"


def elementary(name: str) -> ModuleOp:
    """Return a function on named dimensions."""
    return run_passes(
        parse_module(SPLITS[name][0]), f"{H200},decompose{{accumulator=f32}},stream"
    )


def kernels(name: str, then: str = "") -> ModuleOp:
    """Return a split function as two kernels, after more passes."""
    _, dim, parts = SPLITS[name]
    passes = f"split{{dim={dim} parts={parts}}},fuse{{strategy=auto}},tile"
    return run_passes(elementary(name), f"{passes},outline-kernels{then}")


def merged(name: str, options: str = "{merge=last}", then: str = "") -> ModuleOp:
    """Return a function after `merge-partials`."""
    return kernels(name, f",merge-partials{options}{then}")


def launches(module: ModuleOp) -> int:
    return sum(isinstance(op, KernelOp) for op in module.walk())


@one_of(4)
@pytest.mark.parametrize("then", ["", f",{COPIES}", f",{COPIES},pad-blocks,map-grid"])
@pytest.mark.parametrize("name", SPLITS)
def test_merging_means_the_same(name: str, then: str):
    module = merged(name, then=then)
    assert launches(kernels(name)) == 2
    assert launches(module) == 1
    assert_same_meaning(elementary(name), module, "f")


@pytest.mark.parametrize("name", SPLITS)
def test_every_program_of_a_tile_arrives_at_its_counter(name: str):
    module = merged(name)
    (arrive,) = (op for op in module.walk() if isinstance(op, ArriveOp))
    (counters,) = (op for op in module.walk() if isinstance(op, CountersOp))
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    first, second = kernel.nodes
    assert counters.type.factors == {
        dim: factor for dim, factor in second.factors.items() if dim in first.factors
    }
    assert arrive.arrivals.value.data == SPLITS[name][2]
    assert not any(isinstance(op, BarrierOp) for op in module.walk())
    assert first.launch
    assert second.launch
    assert first.launch.warps == second.launch.warps


def latency(module: ModuleOp) -> float:
    """Return the estimate of a program in nanoseconds."""
    priced = run_passes(module, "annotate-cost")
    (program,) = (op for op in priced.walk() if isinstance(op, ProgramOp))
    found = estimate_of(program)
    assert found is not None
    return found.latency


@one_of(2)
@pytest.mark.parametrize("name", SPLITS)
def test_auto_takes_what_is_cheaper(name: str):
    prices = [latency(merged(name, f"{{merge={how}}}")) for how in ("launch", "last")]
    assert latency(merged(name, "")) == min(prices)


@one_of(2)
@pytest.mark.parametrize("name", SPLITS)
def test_the_choice_has_the_prices_of_the_estimates(name: str):
    module = kernels(name)
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    (plan,) = possible_merges(program, attached_system(module))
    for how, time in (("launch", plan.two_launches), ("last", plan.one_launch)):
        priced = latency(merged(name, f"{{merge={how}}}"))
        assert priced == pytest.approx(float(time) * 1e9, abs=2)


def test_partial_results_are_read_from_l2_if_it_holds_them():
    module = kernels("gemm")
    gpu = device_of(attached_system(module))
    sizes = (gpu.memory.l2_bytes, gpu.memory.l2_bytes + 1)
    assert [float(held_bytes(size, gpu)) for size in sizes] == [gpu.memory.l2_bytes, 0]


def test_a_launch_plan_by_hand_is_verified():
    text = text_of("gemm").replace("arrivals 3", "arrivals 2")
    with pytest.raises(PassFailedException, match="write arrivals 3"):
        run_passes(parse_module(text), "triton-distributed")


def test_the_choice_is_recorded_and_can_be_given():
    module = merged("gemm", "")
    (function,) = compute_functions(module)
    note = function.attributes[MERGES]
    assert isinstance(note, StringAttr)
    assert str(merged("gemm", f'{{merge="{note.data}"}}')) == str(module)


def test_two_launches_can_be_asked_for():
    module = merged("gemm", "{merge=launch}")
    (function,) = compute_functions(module)
    assert function.attributes.pop(MERGES) == StringAttr("launch")
    assert str(module) == str(kernels("gemm"))


def test_a_kernel_that_cannot_merge_is_rejected():
    with pytest.raises(PassFailedException, match="names x, which is no kernel whose"):
        merged("gemm", "{merge=x}")


PAIR = """
!A = tensor<48x32xf32, #compound.dims<M, N>>
!R = tensor<48xf32, #compound.dims<M>>
!C = tensor<32xf32, #compound.dims<N>>
func.func @main(%a: !A) -> {returned} {{
  %e = compound.map exp %a : !A -> !A
  {ops}
}}
"""
SUM = "%s = compound.reduce add %e : !A -> !C"
OTHERS = {
    "what is also a result": ("(!A, !C)", f"{SUM} func.return %e, %s : !A, !C"),
    "what two kernels read": (
        "(!C, !R)",
        f"{SUM} %r = compound.reduce add %e : !A -> !R func.return %s, %r : !C, !R",
    ),
    "what is not reduced": (
        "!A",
        "%s = compound.map exp %e : !A -> !A func.return %s : !A",
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_pairs_stay_two_launches(what: str):
    returned, ops = OTHERS[what]
    text = PAIR.format(returned=returned, ops=ops)
    passes = f"{H200},fuse{{strategy=none}},tile,outline-kernels"
    before = run_passes(parse_module(text), passes)
    after = run_passes(parse_module(text), f"{passes},merge-partials{{merge=last}}")
    assert str(after) == str(before)


IN_PART = """
  %f = compound.slice %e "N"[0, 1] : !A -> tensor<48x1xf32, #compound.dims<M, N>>
  %p = compound.rename %f merge "M" : tensor<48x1xf32, #compound.dims<M, N>> -> !R
  %w = compound.map mult %e, %p : !A, !R -> !A
  %s = compound.reduce add %w : !A -> !C
  func.return %s : !C
"""


def test_a_result_that_is_also_read_in_part_is_no_partial_result():
    text = PAIR.format(returned="!C", ops=IN_PART)
    passes = f'{H200},fuse{{kernels="e; s"}},tile,outline-kernels'
    module = run_passes(parse_module(text), f"{passes},merge-partials{{merge=last}}")
    assert launches(module) == 2


def test_a_sum_of_columns_is_split_over_programs_that_have_rows():
    text = PAIR.format(returned="!C", ops=f"{SUM} func.return %s : !C")
    passes = f"{H200},fuse{{strategy=none}},tile,outline-kernels"
    module = run_passes(
        parse_module(text), f"{passes},merge-partials{{merge=last}},verify-sync"
    )
    assert launches(module) == 1
    assert_same_meaning(parse_module(text), module, "main")


@cache
def text_of(name: str) -> str:
    """Return a program that `verify-sync` accepts."""
    return str(merged(name, then=",verify-sync"))


EDITS = [
    ("acq_rel gpu", "relaxed gpu", "is relaxed: the last program may load"),
    ("acq_rel gpu", "release gpu", "is release: the last program may load"),
    (" fence", "", "without a fence"),
    ("arrivals 3", "arrivals 2", "and 2 are said to; write arrivals 3"),
    ("arrivals 3", "arrivals 4", "and 4 are said to; write arrivals 3"),
    ("compound.rename %c_6 :", "compound.rename %c_5 :", "not one such node"),
    ("N = 3]>", "N = 1]>", "counters for 1 blocks of N, into which its programs"),
]


@one_of(2)
@pytest.mark.parametrize(("old", "new", "reason"), EDITS)
def test_what_could_merge_too_early_is_rejected(old: str, new: str, reason: str):
    text = text_of("gemm")
    assert old in text
    with pytest.raises(PassFailedException, match=reason):
        run_passes(parse_module(text.replace(old, new)), "verify-sync")


LARGE = """
!A = tensor<128x1024xf16>
!B = tensor<1024x256xf16>
!C = tensor<128x256xf16>
func.func @f(%a: !A, %b: !B, %d: tensor<256xf16>) -> !C {
  %c = compound.gemm_bias_relu %a, %b, %d : (!A, !B, tensor<256xf16>) -> !C
  func.return %c : !C
}
"""


def test_programs_get_as_many_warps_as_merging_needs():
    """
    Tiles of 128 x 128 are 128 registers of four warps, and parts come beside them.

    With eight warps both fit, and all programs of the launch have eight.
    """
    plan = "c_contract: K_part=4 M=1 N=2 warps=4 stages=4; c_k_in: K_in=4; c_cast: N=8"
    passes = (
        f"{H200},decompose{{accumulator=f32}},stream,split{{dim=K parts=4}},"
        f'fuse{{strategy=auto}},tile{{factors="{plan}"}},outline-kernels'
    )
    before = run_passes(parse_module(LARGE), passes)
    after = run_passes(before, "merge-partials{merge=last}")
    assert kernel_warps(before)[0] == 4
    assert kernel_warps(after) == [8, 8]
    assert launches(after) == 1
    assert_same_meaning(before, after, "f")


def kernel_warps(module: ModuleOp) -> list[int]:
    """Return the warps of the nodes of all kernels, in order."""
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    found = [node.launch for kernel in kernels for node in kernel.nodes]
    return [launch.warps for launch in found if launch is not None]
