"""Plan strings: what `tile` writes, fed back, gives the same; what is no plan."""

from functools import cache

import pytest
from covering import one_of
from paths import ROOT
from semantics import parse_module, run_passes
from tile_trees import only_function
from triton_modules import hardware
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException, VerifyException

from comet.dialects.schedule import SpatialOp
from comet.passes.schedule.plan_string import PLAN, format_plan, parse_plan

ACCELERATOR = (
    "decompose{accumulator=input},distribute{dim=N axes=cx,cy,kx,ky},"
    "insert-collectives,place-collectives{at=GB},fuse{strategy=full}"
)
TO_TREES = {
    "edge": ACCELERATOR,
    "h200x1": "decompose,stream,fuse{strategy=partial}",
}
PROGRAMS = ("gemm", "gemm_softmax", "gemm_layernorm", "gemm_gemm", "gated_mlp")


@cache
def fused(sample: str, machine: str) -> ModuleOp:
    """Return a sample as tile trees without factors."""
    module = parse_module((ROOT / "samples" / f"{sample}.mlir").read_text())
    return run_passes(module, f"{hardware(f'{machine}.yaml')},{TO_TREES[machine]}")


def written(module: ModuleOp) -> str:
    """Return the plan that `tile` has written."""
    plan = only_function(module).attributes[PLAN]
    assert isinstance(plan, StringAttr)
    return plan.data


@one_of(4)
@pytest.mark.parametrize("machine", TO_TREES)
@pytest.mark.parametrize("sample", PROGRAMS)
def test_a_plan_that_is_fed_back_gives_the_same_ir(sample: str, machine: str):
    before = fused(sample, machine)
    after = run_passes(before, "tile")
    again = run_passes(before, f'tile{{factors="{written(after)}"}}')
    assert str(again) == str(after)
    assert format_plan(parse_plan(written(after))) == written(after)


def test_the_plan_of_a_gpu_holds_launch_numbers():
    plan = {entry.name: entry for entry in parse_plan(written(tiled("auto")))}
    assert dict(plan["p"].loops).keys() == {"M"}
    assert plan["p"].launch.keys() == {"warps", "stages", "group"}
    assert plan["c_k"].launch == {}


def tiled(factors: str) -> ModuleOp:
    return run_passes(fused("gemm_softmax", "h200x1"), f'tile{{factors="{factors}"}}')


def test_launch_numbers_that_are_left_out_are_chosen():
    auto = {entry.name: entry for entry in parse_plan(written(tiled("auto")))}
    module = tiled("p: M=8 warps=4 stages=1; c_k: K=2")
    (kernel,) = (op for op in module.walk() if isinstance(op, SpatialOp))
    assert kernel.launch is not None
    assert kernel.launch.numbers == {"warps": 4, "stages": 1, "group": 1}
    assert written(module).startswith("p: M=8 warps=4 stages=1 group=1; ")
    assert auto["p"].launch["warps"] == 8


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("p M=2", "plan entry 'p M=2' is not of the form NAME: DIM=FACTOR"),
        ("p: M", "'M' in plan entry 'p: M' is not of the form DIM=FACTOR"),
        ("p: M=2 M=4", "plan entry 'p: M=2 M=4' gives a number twice"),
        ("p: M=2; p: M=4", "has two entries for p"),
        ("p: M=8 warps=3", "tile: @p: warps is a power of two, got 3; take 2 or 4"),
        ("p: M=8 warps=64", "64 warps of 32 threads, and a program has at most 1024"),
        ("c_k: stages=2", "has launch numbers, and @c_k is not launched"),
        ("grid: M=2", "for no node of this name; grid is now written p"),
        ("REG/contract: K=2", "this name; REG/contract is now written m_n, c_k"),
    ],
)
def test_rejects(plan: str, message: str):
    with pytest.raises(PassFailedException, match=message):
        tiled(plan)


@pytest.mark.parametrize(("heads", "refused"), [(2, True), (8, False)])
def test_a_large_product_is_a_dot(heads: int, refused: bool):
    """Of 8 heads, tiles with 4 are refused; `tl.dot` takes one of each."""
    text = (ROOT / "samples" / "attention.mlir").read_text()
    machine = f"{hardware('h200x1.yaml')},decompose,stream,fuse{{strategy=full}}"
    plan = f"o: H={heads} M=2; m_n: N=2"
    fused = run_passes(parse_module(text), machine)
    if not refused:
        run_passes(fused, f'tile{{factors="{plan}"}}')
        return
    with pytest.raises(PassFailedException, match="give H=8 in the factors"):
        run_passes(fused, f'tile{{factors="{plan}"}}')


SPLIT = """
!T = tensor<4xf32, #compound.dims<M @HBM>>
!R = tensor<4xf32, #compound.dims<M @REG>>
func.func @main(%x: !T) -> !T {
  %y = schedule.spatial @y on grid [g0: M = 1] ins(%x : !T) outs(!T) {
  ^bb0(%t: !T):
    %z = schedule.temporal @z [M = 1] ins(%t : !T) outs(!T) {
    ^bb1(%u: !T):
      %w = schedule.temporal @z [M = 1] ins(%u : !T) outs(!T) {
      ^bb2(%v: !R):
        %e = compound.map exp %v : !R -> !R
        schedule.yield %e : !R
      }
      schedule.yield %w : !T
    }
    schedule.yield %z : !T
  }
  func.return %y : !T
}
"""


def test_the_parts_of_a_split_node_have_no_plan():
    module = run_passes(parse_module(SPLIT), hardware("h200x1.yaml"))
    with pytest.raises(PassFailedException, match="temporal @z, as two have it"):
        run_passes(module, "tile")


def test_nodes_of_hand_written_ir_get_names():
    bare = SPLIT.replace("@z ", "").replace("@y ", "")
    module = run_passes(parse_module(bare), hardware("h200x1.yaml"))
    assert written(run_passes(module, "tile")).startswith("y: M=")
    plan = "y: M=2 warps=4 stages=1 group=1; z_m: M=2; w_m: M=1"
    assert written(run_passes(module, f'tile{{factors="{plan}"}}')) == plan


@pytest.mark.parametrize("name", ["warps", "stages", "group"])
def test_launch_numbers_are_no_names_of_dimensions(name: str):
    with pytest.raises(VerifyException, match=f"dimension name '{name}' is reserved"):
        parse_module(f"func.func private @f(tensor<4xf32, #compound.dims<{name}>>)")
