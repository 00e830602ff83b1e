"""Long loops stay loops: ptxas does not know where they end."""

from pathlib import Path

import pytest
from covering import exhaustive
from interpreting import write_modules
from torch_python import run_python
from triton_modules import check_all, emitted, hardware

GEMM = """
func.func @f(%a: tensor<16x{K}xf16>, %b: tensor<{K}x32xf16>) -> tensor<16x32xf16> {{
  %r = compound.gemm %a, %b
      : (tensor<16x{K}xf16>, tensor<{K}x32xf16>) -> tensor<16x32xf16>
  func.return %r : tensor<16x32xf16>
}}
"""
END = "range(0, end, BLOCK_K)"
COUNT = """
import subprocess, sys, tempfile
from triton import knobs
from comet.runtime.compile_check import compile_launch, recorded_launches

for path in sys.argv[1:]:
    (launch,) = recorded_launches(path)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compile_launch(launch, "sm_90").asm["cubin"])
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "-sass", file.name]
        text = subprocess.run(command, capture_output=True, text=True).stdout
    print(text.count("HMMA."))
"""


def product(iterations: int, tiles: str = "M=1 N=2") -> str:
    """Return the module of a product whose loop takes 16 terms at a time."""
    plan = f"r: {tiles} warps=4 stages=3; c_k: K={iterations}"
    options = f'split=none factors="{plan}"'
    text = GEMM.format(K=16 * iterations)
    return emitted(text, f"{hardware('h200x1.yaml')},triton-distributed{{{options}}}")


@exhaustive
def test_a_long_loop_is_not_unrolled(tmp_path: Path):
    source = product(32)
    assert END in source
    constant = source.replace(END, "range(0, K, BLOCK_K)")
    paths = write_modules({"end": source, "constant": constant}, tmp_path)
    done = run_python(["-c", COUNT, *paths], {"TRITON_INTERPRET": "0"})
    assert done.returncode == 0, done.stderr
    looped, unrolled = map(int, done.stdout.split())
    assert 0 < looped <= unrolled / 8


@pytest.mark.parametrize("iterations", [2, 4])
def test_a_short_loop_has_a_constant_end(iterations: int):
    assert END not in product(iterations)


def test_programs_along_all_axes_are_right(tmp_path: Path):
    sources = {"long": product(5), "one": product(5, "M=1 N=1")}
    assert all(END in source for source in sources.values())
    assert all(facts["ok"] for facts in check_all(sources, tmp_path).values())
