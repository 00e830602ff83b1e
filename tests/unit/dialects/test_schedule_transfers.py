"""What moves at the border of a node, and what is a view of a value outside."""

from semantics import parse_module

from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.transfers import borders, loads, stores, transfers, views

OUTER = "tensor<8x4xf32, #compound.dims<M, N @DRAM>>"
LOADED = "tensor<2x4xf32, #compound.dims<M, N @OB>>"
VIEW = "tensor<2x4xf32, #compound.dims<M, N @DRAM>>"
TEXT = f"""
func.func @f(%x: {OUTER}, %y: {OUTER}) -> {OUTER} {{
  %r = schedule.temporal [M = 4] ins(%x, %y : {OUTER}, {OUTER}) outs({OUTER}) {{
  ^bb0(%tx: {LOADED}, %ty: {VIEW}):
    %s = compound.map neg %tx : {LOADED} -> {LOADED}
    schedule.yield %s : {LOADED}
  }}
  func.return %r : {OUTER}
}}
"""


def node() -> TemporalOp:
    """Return a node that loads one operand, views the other and stores its result."""
    (found,) = (op for op in parse_module(TEXT).walk() if isinstance(op, TemporalOp))
    return found


def test_a_change_of_level_is_a_transfer():
    op = node()
    (load,), (store,) = loads(op), stores(op)
    assert (load.outer, load.tile) == (op.ins[0], op.tiles[0])
    assert (load.outer_level, load.tile_level) == ("DRAM", "OB")
    assert (store.outer, store.tile) == (op.outs[0], op.yielded[0])
    assert list(transfers(op)) == [load, store]


def test_the_same_level_is_a_view():
    op = node()
    assert views(op) == {op.tiles[1]}
    assert [border.crossing for border in borders(op)] == ["in", "in", "out"]


def test_an_iter_arg_crosses_as_a_view():
    text = """
func.func @f(%x: tensor<8xf32, #compound.dims<M @OB>>,
             %z: tensor<f32, #compound.dims<@OB>>) -> tensor<f32, #compound.dims<@OB>> {
  %r = schedule.temporal [M = 4] ins(%x : tensor<8xf32, #compound.dims<M @OB>>)
      iter_args(%z : tensor<f32, #compound.dims<@OB>>)
      outs(tensor<f32, #compound.dims<@OB>>) combine ["fold"] {
  ^bb0(%t: tensor<2xf32, #compound.dims<M @OB>>, %c: tensor<f32, #compound.dims<@OB>>):
    %s = compound.reduce add %t : tensor<2xf32, #compound.dims<M @OB>>
        -> tensor<f32, #compound.dims<@OB>>
    %n = compound.map add %c, %s : tensor<f32, #compound.dims<@OB>>,
        tensor<f32, #compound.dims<@OB>> -> tensor<f32, #compound.dims<@OB>>
    schedule.yield %n : tensor<f32, #compound.dims<@OB>>
  }
  func.return %r : tensor<f32, #compound.dims<@OB>>
}
"""
    (op,) = (op for op in parse_module(text).walk() if isinstance(op, TemporalOp))
    assert [border.crossing for border in borders(op)] == ["in", "iter_arg", "out"]
    assert list(transfers(op)) == []
    assert op.body.block.args[1] in views(op)
