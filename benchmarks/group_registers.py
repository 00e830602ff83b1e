"""
Compiles kernels whose programs exchange, and writes what each thread takes.

    python benchmarks/group_registers.py > tests/data/group_registers.csv

A line holds the version of Triton, the op, its tiling, the registers of a thread, the
bytes that it spills, and the bytes of shared memory of a program. The table has lines
of several versions: run it with each of them, and append the lines after the first two.
No GPU is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import product

from cluster_registers import program
from registers import compiled_tilings

import comet

ROWS = 4096
GROUPS = {4: 32, 16: 8}
"""How many groups there are, by the programs of each."""
TILINGS: Mapping[str, tuple[int, ...]] = {
    "M": (32, 64, 128),
    "N": (256, 512, 1024),
    "K": (32, 64),
    "warps": (4, 8),
    "ctas": tuple(GROUPS),
    "stages": (2, 3),
}
MOST_REGISTERS = 256
"""The most that the elements of a thread take, of a product in f32."""
TEXTS = {
    "softmax_of_sum": """
!a = tensor<{rows}x1024xf16, #compound.dims<M, K>>
!b = tensor<1024x{columns}xf16, #compound.dims<K, N>>
!x = tensor<{rows}x{columns}xf16, #compound.dims<M, N>>
!w = tensor<{rows}x{columns}xf32, #compound.dims<M, N>>
!r = tensor<{rows}xf32, #compound.dims<M>>
func.func @softmax_of_sum(%a: !a, %b: !b, %x: !x) -> !x {{
  %c = compound.contract %a, %b : !a, !b -> !w
  %wide = compound.cast %x : !x -> !w
  %p = compound.map add %c, %wide : !w, !w -> !w
  %m = compound.reduce max %p : !w -> !r
  %below = compound.map sub %p, %m : !w, !r -> !w
  %e = compound.map exp %below : !w -> !w
  %l = compound.reduce add %e : !w -> !r
  %q = compound.map div %e, %l : !w, !r -> !w
  %y = compound.cast %q : !w -> !x
  func.return %y : !x
}}
"""
}
"""Ops without a sample: a product with a residual."""
PLANS = {
    "gemm_softmax": "p: M={groups} {launch}; p_m: M={tiles}; c_k: K={terms}",
    "gemm_layernorm": "y: M={groups} {launch}; y_m: M={tiles}; c_k: K={terms}",
    "softmax_of_sum": "y: M={groups} {launch}; y_m: M={tiles}; c_k: K={terms}",
}
"""The plan of each op: how many groups, their blocks of rows, blocks of terms."""


def source(op: str, columns: int) -> str:
    """Return the text of an op on rows of so many columns."""
    if op in TEXTS:
        return TEXTS[op].format(rows=ROWS, columns=columns)
    return program(op, columns, ROWS)


def module_text(op: str, tiling: Mapping[str, int]) -> str:
    """
    Return the emitted module of an op in groups.

    Raises `CometError` if the tiling does not fit.
    """
    ctas = tiling["ctas"]
    plan = PLANS[op].format(
        groups=GROUPS[ctas],
        launch=f"warps={tiling['warps']} stages={tiling['stages']}",
        tiles=ROWS // GROUPS[ctas] // tiling["M"],
        terms=1024 // tiling["K"],
    )
    machine = 'attach-hardware{path="samples/hardware/h200x1.yaml"}'
    passes = f'triton-distributed{{ranks=1 ctas={ctas} factors="{plan}"}}'
    module = comet.parse(source(op, ctas * tiling["N"]))
    return comet.compile(module, pipeline=f"{machine},{passes}").emit("triton")


def tilings() -> Iterator[Mapping[str, int]]:
    """Yield the tilings whose products a program's registers may hold."""
    for numbers in product(*TILINGS.values()):
        tiling = dict(zip(TILINGS, numbers, strict=True))
        if tiling["M"] * tiling["N"] <= MOST_REGISTERS * 32 * tiling["warps"]:
            yield tiling


def main() -> int:
    """Compile and print; return the exit code."""
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    print(f"# sm_90, {ROWS} rows")
    print("triton,op,tiling,registers,spilled,shared")
    for start, found in compiled_tilings(product(PLANS, tilings()), module_text):
        print(start, found.registers, found.spills, found.shared, sep=",", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
