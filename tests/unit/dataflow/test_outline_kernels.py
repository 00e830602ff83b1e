"""Outlining keeps the meaning, and gives kernels distinct names."""

import pytest
from covering import one_of
from semantics import assert_same_meaning, parse_module, run_passes
from triton_schedules import even, schedule
from xdsl.dialects import func

from comet.dialects import dataflow
from comet.passes.dataflow.outline_kernels import plan_launches

SIZES = {"M": 13, "N": 11, "K": 7}
TILES = {"M": even(13, 3), "m": 2, "N": 4, "K": 3}
HEADS = {"B": 2, "M": 13, "N": 11, "D": 5, "E": 5}

SCHEDULES = {
    "softmax_recompute": (SIZES, TILES, "gemm_softmax"),
    "softmax_spill": (SIZES, TILES, "gemm_softmax"),
    "welford": (SIZES, TILES, "normalize"),
    "attention": (HEADS, {"B": 1, **TILES}, "attention"),
    "two_kernels": (SIZES, {**TILES, "N": even(11, 3)}, "functions"),
    "contractions": (SIZES, TILES, "contractions"),
    "split_twice": (SIZES, TILES, "centre"),
}


@one_of(2)
@pytest.mark.parametrize("name", SCHEDULES)
def test_outlining_keeps_the_meaning(name: str):
    extents, tiles, function = SCHEDULES[name]
    module = parse_module(schedule(name, extents, tiles))
    outlined = run_passes(module, "outline-kernels")
    assert_same_meaning(module, outlined, function)
    reference = f"{function}__reference"
    assert_same_meaning(module, outlined, reference, after_name=function)


def test_kernels_of_the_same_result_name_stay_apart():
    row = "tensor<4xf32, #compound.dims<M @HBM>>"
    tile = "tensor<2xf32, #compound.dims<M @REG>>"
    node = f"""
      %y = schedule.spatial on grid [g0: M = 2] ins(%x : {row}) outs({row}) {{
      ^bb0(%t: {tile}):
        %e = compound.map exp %t : {tile} -> {tile}
        schedule.yield %e : {tile}
      }}"""
    text = f"""
    func.func @f(%x: {row}) -> {row} {{
      {node}
      {node.replace("%y", "%z").replace("%x", "%y")}
      func.return %z : {row}
    }}"""
    module = parse_module(text)
    function = module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    for op in function.regions[0].block.ops:
        for result in op.results:
            result.name_hint = "y"
    names = [launch.name for launch in plan_launches(function)]
    assert names == ["f_y_kernel", "f_1_kernel"]


def test_a_barrier_is_only_where_a_kernel_waits():
    module = parse_module(schedule("two_kernels", SIZES, {**TILES, "N": even(11, 3)}))
    outlined = run_passes(module, "outline-kernels")
    (program,) = (op for op in outlined.walk() if isinstance(op, dataflow.ProgramOp))
    kinds = [op.name for op in program.body.block.ops]
    assert kinds == [
        "dataflow.buffer",
        "dataflow.kernel",
        "dataflow.buffer",
        "dataflow.barrier",
        "dataflow.kernel",
        "dataflow.yield",
    ]
