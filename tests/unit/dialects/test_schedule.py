"""Constructors of the schedule dialect, and the analysis of combiners."""

import numpy as np
import pytest
from semantics import assert_close, comet_context, parse_module
from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp, f16
from xdsl.ir import Attribute, Block, Region
from xdsl.parser import Parser
from xdsl.traits import get_effects
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from comet.dialects.collective.mesh import MeshOp
from comet.dialects.compound import MapKind, MapOp, ReduceKind, ReduceOp
from comet.dialects.compound import YieldOp as MergeYieldOp
from comet.dialects.compound.dims import tensor
from comet.dialects.schedule import SpatialOp, TemporalOp, YieldOp
from comet.dialects.schedule.analysis import assign_combiners
from comet.dialects.schedule.attributes import (
    BindingAttr,
    BindingKind,
    BlocksAttr,
    Combiner,
    LoopAttr,
    ProgramsAttr,
)
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.node import NodeOp
from comet.interpreter import run

WHOLE = tensor({"M": 8, "N": 12}, f16, "GB")
ROWS = tensor({"M": 8}, f16, "GB")
TILE = tensor({"M": 8, "N": 4}, f16, "OB")
TILE_ROWS = tensor({"M": 8}, f16, "OB")


@pytest.mark.parametrize(
    "attribute",
    [
        LoopAttr("N", 2),
        LoopAttr("N", 2, "cx"),
        LaunchAttr(8, 2, 4),
        BlocksAttr({("M", 3): 4, ("K", 8): 16, ("K", 32): 32}),
        ProgramsAttr((8, 6), (128, 64), (1, 0), 4),
        ProgramsAttr((), (), ()),
        BindingAttr(BindingKind.PIPELINE),
    ],
)
def test_attributes_print_and_parse(attribute: Attribute):
    assert Parser(comet_context(), str(attribute)).parse_attribute() == attribute


def test_attribute_fields():
    loop, launch = LoopAttr("N", 2, "cx"), LaunchAttr(8, 2, 4)
    assert (loop.axis, loop.dim, loop.factor) == ("cx", "N", 2)
    assert LoopAttr("N", 2).axis is None
    assert (launch.warps, launch.stages, launch.group) == (8, 2, 4)
    assert ProgramsAttr((8, 6, 2), (1, 4, 4), (0, 0, 1)).grid == (48, 2)


def row_maximum(tile: Attribute = TILE, rows: Attribute = TILE_ROWS) -> Region:
    block = Block(arg_types=[tile])
    reduce = ReduceOp(ReduceKind.MAX, block.args[0], rows)
    block.add_ops([reduce, YieldOp(reduce.result)])
    return Region(block)


def temporal(combiner: Combiner) -> TemporalOp:
    value = create_ssa_value(WHOLE)
    return TemporalOp(
        [LoopAttr("N", 3)], [value], [], [ROWS], [combiner], row_maximum()
    )


def test_temporal_constructor():
    op = temporal(Combiner.MAX)
    op.verify()
    assert op.factors == {"N": 3}
    assert op.combiners == (Combiner.MAX,)
    assert op.tiles == tuple(op.body.block.args)
    assert [value.type for value in op.yielded] == [TILE_ROWS]
    assert op.init_args() == ()


def test_temporal_constructor_with_an_iter_arg():
    block = Block(arg_types=[TILE, TILE_ROWS])
    now = ReduceOp(ReduceKind.MAX, block.args[0], TILE_ROWS)
    new = MapOp(MapKind.MAX, [now.result, block.args[1]], TILE_ROWS)
    block.add_ops([now, new, YieldOp(new.result)])
    values = create_ssa_value(WHOLE), create_ssa_value(TILE_ROWS)
    op = TemporalOp(
        [LoopAttr("N", 3)],
        [values[0]],
        [values[1]],
        [ROWS],
        [Combiner.FOLD],
        Region(block),
    )
    op.verify()
    assert op.init_args() == (values[1],)
    assert op.tiles == (block.args[0],)


def test_spatial_constructors():
    half = tensor({"M": 8, "N": 2}, f16, "OB")
    source = test.TestOp(result_types=[WHOLE])
    value = source.results[0]
    rows = [LoopAttr("N", 2, "x"), LoopAttr("N", 3, "y")]
    op = SpatialOp("m", rows, [value], [ROWS], [Combiner.MAX], row_maximum(half))
    ModuleOp([MeshOp("m", {"x": 2, "y": 3}), source, op]).verify()
    assert op.factors == {"N": 6}
    assert op.mesh_name == "m"
    grid = SpatialOp(
        None,
        [LoopAttr("M", 4, "g0")],
        [value],
        [ROWS],
        [Combiner.NONE],
        row_maximum(tensor({"M": 2, "N": 12}, f16, "OB"), tensor({"M": 2}, f16, "OB")),
        launch=LaunchAttr(),
    )
    grid.verify()
    assert grid.mesh_name is None
    assert grid.combine is None
    assert grid.launch == LaunchAttr()


def test_spatial_constructor_with_a_merge():
    merge = Block(arg_types=[TILE_ROWS, TILE_ROWS])
    both = MapOp(MapKind.MAX, list(merge.args), TILE_ROWS)
    merge.add_ops([both, MergeYieldOp(both.result)])
    op = SpatialOp(
        None,
        [LoopAttr("N", 3, "g0")],
        [create_ssa_value(WHOLE)],
        [ROWS],
        [Combiner.FOLD],
        row_maximum(),
        Region(merge),
    )
    assert op.merge is not None
    with pytest.raises(VerifyException, match="combines by fold a result that needs"):
        op.verify()


def test_assign_combiners():
    op = temporal(Combiner.SAME)
    with pytest.raises(VerifyException, match="a result that needs max"):
        op.verify()
    assign_combiners(op)
    op.verify()
    assert op.combiners == (Combiner.MAX,)


NEST = """
!C = tensor<5x7xf64, #compound.dims<M, N @GB>>
!h = tensor<5x4xf64, #compound.dims<M, N @GB>>
!t = tensor<5x3xf64, #compound.dims<M, N @OB>>
!R = tensor<5xf64, #compound.dims<M @GB>>
!r = tensor<5xf64, #compound.dims<M @OB>>
collective.mesh @m {x = 2}
func.func @f(%c: !C) -> !R {
  %m = schedule.spatial on @m [x: N = 2] ins(%c : !C) outs(!R) combine ["add"] {
  ^bb0(%h: !h):
    %p = schedule.temporal [N = 2] ins(%h : !h) outs(!r) combine ["add"] {
    ^bb0(%t: !t):
      %q = compound.reduce add %t : !t -> !r
      schedule.yield %q : !r
    }
    schedule.yield %p : !r
  }
  func.return %m : !R
}
"""

MUTATIONS = {
    "inner by max": NEST.replace(
        'outs(!r) combine ["add"]', 'outs(!r) combine ["max"]'
    ),
    "outer by max": NEST.replace(
        'outs(!R) combine ["add"]', 'outs(!R) combine ["max"]'
    ),
    "outer by root": NEST.replace('(!R) combine ["add"]', '(!R) combine ["root"]'),
    "added twice": NEST.replace(
        "schedule.yield %p",
        '%a = collective.all_reduce add %p on @m ["x"] : !r -> !r\n'
        "    schedule.yield %a",
    ),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_combiner_is_caught_and_computes_wrong_numbers(mutation: str):
    c = np.random.default_rng(2).standard_normal((5, 7))
    assert_close(run(parse_module(NEST), "f", [c]), [c.sum(axis=1)])
    with pytest.raises(VerifyException, match=r"combines by|partial"):
        parse_module(MUTATIONS[mutation])
    wrong = run(parse_module(MUTATIONS[mutation], verify=False), "f", [c])
    with pytest.raises(AssertionError):
        assert_close(wrong, [c.sum(axis=1)])


def test_assign_combiners_reaches_all_nodes():
    module = parse_module(MUTATIONS["inner by max"], verify=False)
    root = next(op for op in module.walk() if isinstance(op, SpatialOp))
    assign_combiners(root)
    module.verify()
    nodes = [op for op in module.walk() if isinstance(op, NodeOp)]
    assert [op.combiners for op in nodes] == [(Combiner.ADD,)] * 2


@pytest.mark.parametrize(
    ("op", "effects"),
    [
        ("compound.map exp %t : !T -> !T", set[object]()),
        ('"test.op"(%t) : (!T) -> !T', None),
    ],
)
def test_a_node_has_the_effects_of_its_body(op: str, effects: set[object] | None):
    text = f"""
!W = tensor<8x12xf16, #compound.dims<M, N @GB>>
!T = tensor<8x4xf16, #compound.dims<M, N @OB>>
func.func @f(%w: !W) {{
  %unused = schedule.temporal [N = 3] ins(%w : !W) outs(!W) {{
  ^bb0(%t: !T):
    %e = {op}
    schedule.yield %e : !T
  }}
  func.return
}}
"""
    module = parse_module(text, verify=False)
    (node,) = (op for op in module.walk() if isinstance(op, NodeOp))
    assert get_effects(node) == effects
