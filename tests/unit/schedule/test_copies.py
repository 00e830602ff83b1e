"""Copies of tiles mean what transfers at borders mean, and are where they may be."""

import pytest
from covering import one_of
from gpu_ranks import H200X8, TEXTS
from paths import ROOT
from semantics import assert_same_meaning, parse_module, random_inputs, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, PassFailedException

from comet.codegen.taxes import programs_of
from comet.dialects.schedule import CopyOp, SpatialOp, TemporalOp
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import transfers
from comet.interpreter import run

COPIES = "materialize-copies,hoist-copies,mask-copies"
SHAPE = {"M": 20, "N": 12, "K": 10}
H200X1 = f'attach-hardware{{path="{ROOT / "samples" / "hardware" / "h200x1.yaml"}"}}'
EDGE = f'attach-hardware{{path="{ROOT / "samples" / "hardware" / "edge.yaml"}"}}'
KERNELS = f"{H200X1},triton-distributed{{ranks=1 to=dataflow}}"


def trees(module: ModuleOp) -> list[NodeOp]:
    """Return all nodes of a module."""
    return [op for op in module.walk() if isinstance(op, NodeOp)]


@one_of(4)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("strategy", ["none", "full"])
def test_copies_take_the_place_of_transfers(name: str, strategy: str):
    before = parse_module(TEXTS[name].format(**SHAPE))
    tiled = f"{H200X1},decompose,stream,fuse{{strategy={strategy}}},tile"
    after = run_passes(before, f"{tiled},{COPIES}")
    assert not any(move for node in trees(after) for move in transfers(node))
    assert any(isinstance(op, CopyOp) for op in after.walk())
    assert_same_meaning(before, after, "f")


@one_of(2)
@pytest.mark.parametrize("pattern", ["pull", "fused"])
def test_copies_of_what_ranks_exchange(pattern: str):
    before = parse_module(TEXTS["softmax"].format(**SHAPE))
    options = f"ranks=4 dim=N pattern={pattern} to=dataflow"
    plan = run_passes(before, f"{H200X8},triton-distributed{{{options}}}")
    after = run_passes(plan, COPIES)
    assert not any(move for node in trees(after) for move in transfers(node))
    inputs = random_inputs(before, "f")
    assert (run(after, "f", inputs)[0] == run(plan, "f", inputs)[0]).all()


NEST = """
!X = tensor<12x10x8xf64, #compound.dims<M, N, K @HBM>>
!Y = tensor<12xf64, #compound.dims<M @HBM>>
!R = tensor<12xf64, #compound.dims<M @HBM>>
!XT = tensor<{m}x{n}x{k}xf64, #compound.dims<M, N, K @REG>>
!YT = tensor<{m}xf64, #compound.dims<M @REG>>
func.func @f(%x: !X, %y: !Y) -> !R {{
  %r = schedule.spatial on grid [] ins(%x, %y : !X, !Y) outs(!R) {{
  ^bb0(%x1: !X, %y1: !Y):
    %r1 = schedule.temporal @sums [M = {M}, N = {N}, K = {K}]
        ins(%x1, %y1 : !X, !Y) outs(!R) combine ["{kind}"] {{
    ^bb1(%x2: !XT, %y2: !YT):
      %p = compound.map mult %x2, %y2 : !XT, !YT -> !XT
      %s = compound.reduce {kind} %p : !XT -> !YT
      schedule.yield %s : !YT
    }}
    schedule.yield %r1 : !R
  }}
  func.return %r : !R
}}
"""


@pytest.mark.parametrize("kind", ["add", "max"])
@pytest.mark.parametrize("factors", [(3, 5, 2), (1, 3, 2), (4, 1, 1), (1, 1, 1)])
def test_nodes_are_split_where_copies_stand_between_loops(
    kind: str, factors: tuple[int, int, int]
):
    rows, columns, depth = factors
    tiles = -(-12 // rows), -(-10 // columns), -(-8 // depth)
    text = NEST.format(
        **dict(zip("MNK", factors, strict=True)),
        **dict(zip("mnk", tiles, strict=True)),
        kind=kind,
    )
    before = parse_module(text)
    after = run_passes(before, COPIES)
    assert_same_meaning(before, after, "f")
    loops = [op for op in after.walk() if isinstance(op, TemporalOp)]
    assert len(loops) == (2 if rows > 1 and columns * depth > 1 else 1)
    assert {node.node_name for node in loops} == {"sums"}


def test_a_copy_stays_in_the_loops_that_change_its_tile():
    tiles = NEST.format(M=3, N=5, K=2, m=4, n=2, k=4, kind="add")
    after = run_passes(parse_module(tiles), COPIES)
    around: dict[str, list[str]] = {}
    for op in after.walk():
        if isinstance(op, CopyOp):
            parents: list[str] = []
            node = op.parent_op()
            while isinstance(node, TemporalOp):
                parents += [loop.dim for loop in node.loops]
                node = node.parent_op()
            assert isinstance(node, SpatialOp)
            around[op.result.name_hint or ""] = sorted(parents)
    assert list(around.values()) == [["M"], ["K", "M", "N"], ["M"]]


@one_of(2)
@pytest.mark.parametrize(
    "later", ["annotate-cost", "bsp-to-dataflow", "lower-channels"]
)
def test_what_reads_transfers_comes_before(later: str):
    before = parse_module(TEXTS["softmax"].format(**SHAPE))
    with pytest.raises(PassFailedException, match=f"run {later} before materialize"):
        run_passes(before, f"{KERNELS},{COPIES},{later}")


def test_launch_plans_with_copies_are_not_priced():
    before = parse_module(TEXTS["softmax"].format(**SHAPE))
    with pytest.raises(DiagnosticException, match="stop before materialize-copies"):
        programs_of(run_passes(before, f"{KERNELS},{COPIES}"))


@pytest.mark.parametrize("later", ["annotate-cost", "bind", "lower-to-comet", "tile"])
def test_accelerators_take_no_copies(later: str):
    text = """
!C = tensor<8x12xf16, #compound.dims<M, N @DRAM>>
!V = tensor<4x12xf16, #compound.dims<M, N @DRAM>>
!T = tensor<4x12xf16, #compound.dims<M, N @OB>>
func.func @f(%c: !C) -> !C {
  %m = schedule.temporal [M = 2] ins(%c : !C) outs(!C) {
  ^bb0(%v: !V):
    %t = schedule.copy %v : !V -> !T
    %e = compound.map exp %t : !T -> !T
    %u = schedule.copy %e : !T -> !V
    schedule.yield %u : !V
  }
  func.return %m : !C
}
"""
    with pytest.raises(PassFailedException, match="before materialize-copies"):
        run_passes(parse_module(text), f"{EDGE},{later}")


def test_what_only_the_result_of_a_loop_needs_is_loaded_behind_the_loop():
    before = parse_module((ROOT / "samples" / "gemm_bias_relu.mlir").read_text())
    after = run_passes(before, f"{KERNELS},materialize-copies")
    (node,) = (op for op in after.walk() if isinstance(op, SpatialOp))
    body = list(node.body.block.ops)
    (loop,) = (op for op in body if isinstance(op, TemporalOp))
    loads = [op for op in body if isinstance(op, CopyOp) and op.result.uses]
    bias = next(op for op in loads if len(op.result.type.get_shape()) == 1)
    assert body.index(bias) > body.index(loop)
    assert_same_meaning(before, after, "gemm_bias_relu")
