"""`deduplicate-kernels`: the layers of a model run the same kernels."""

from pathlib import Path

import pytest
from gpu_graphs import H200
from graph_text import Program
from semantics import parse_module, run_passes
from triton_modules import check_all, emitted

from comet.dialects import tl


def layers(count: int, rows: int) -> str:
    """Return layers that widen what they read, and narrow it again."""
    p = Program({"M": rows, "N": 40, "F": 70}, "f16", "f32")
    x = p.argument("x", "MN")
    for layer in range(count):
        up = p.argument(f"up{layer}", "NF")
        down = p.argument(f"down{layer}", "FN")
        wide = p.map(f"wide{layer}", "tanh", p.contract(f"h{layer}", x, up, "MF"))
        x = p.contract(f"x{layer}", wide, down, "MN")
    return p.returning(x, function="layers")


@pytest.mark.parametrize(("count", "rows"), [(1, 17), (3, 33)])
def test_layers_share_kernels(count: int, rows: int, tmp_path: Path):
    pipeline = f"{H200},triton-distributed{{strategy=none split=none}}"
    text = layers(count, rows)
    module = run_passes(parse_module(text), pipeline)
    launched = [
        op.kernel.string_value() for op in module.walk() if isinstance(op, tl.LaunchOp)
    ]
    kernels = [op.sym_name.data for op in module.walk() if isinstance(op, tl.KernelOp)]
    assert set(launched) == set(kernels)
    assert len(launched) >= 2 * count
    assert len(kernels) <= 6
    (report,) = check_all({"layers": emitted(text, pipeline)}, tmp_path).values()
    assert report["ok"], report


def test_kernels_with_other_extents_stay():
    module = run_passes(
        parse_module(layers(2, 17)), f"{H200},triton-distributed{{split=none}}"
    )
    before = sum(isinstance(op, tl.KernelOp) for op in module.walk())
    again = run_passes(module, "deduplicate-kernels")
    assert sum(isinstance(op, tl.KernelOp) for op in again.walk()) == before
