"""The layers of a model run the same kernels, in the memory of one layer."""

from pathlib import Path

import pytest
from covering import one_of
from gpu_graphs import H200
from graph_text import Program
from semantics import parse_module, run_passes
from triton_modules import check_all, printed
from xdsl.dialects.builtin import ModuleOp

from comet.dialects import tl
from comet.dialects.compound.dims import bytes_of


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


@one_of(2)
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
    (report,) = check_all({"layers": printed(module)}, tmp_path).values()
    assert report["ok"], report


def most_bytes(module: ModuleOp) -> int:
    """Return the bytes of buffers that exist at a time in a launch plan, at most."""
    held, most = 0, 0
    for op in module.walk():
        if isinstance(op, tl.EmptyOp):
            held += bytes_of(op.result)
        elif isinstance(op, tl.DeallocOp):
            held -= bytes_of(op.buffer)
        most = max(most, held)
    return most


def test_layers_share_memory():
    pipeline = f"{H200},triton-distributed{{strategy=none split=none}}"
    few, many = (
        most_bytes(run_passes(parse_module(layers(count, 33)), pipeline))
        for count in (2, 5)
    )
    assert few == many > 0


def test_kernels_with_other_extents_stay():
    module = run_passes(
        parse_module(layers(2, 17)), f"{H200},triton-distributed{{split=none}}"
    )
    before = sum(isinstance(op, tl.KernelOp) for op in module.walk())
    again = run_passes(module, "deduplicate-kernels")
    assert sum(isinstance(op, tl.KernelOp) for op in again.walk()) == before
