"""
Compiles kernels whose programs are clusters, and writes what each thread block takes.

    python benchmarks/cluster_registers.py > tests/data/cluster_registers.csv

A line holds the version of Triton, the op, its tiling, the registers of a thread, the
bytes that it spills, the bytes of shared memory of a thread block, and the loads from
other thread blocks. The table has lines of several versions: run it with each of them,
and append the lines after the first two. No GPU is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import product

from ladder_programs import resized
from registers import compiled_tilings, triton_version

import comet

OPS = {"gemm_softmax": "bf16", "gemm_layernorm": "f16"}
"""Ops with the element type of their operands."""
ROWS, DEPTH, STAGES = 16384, 64, 3
TILINGS: Mapping[str, tuple[int, ...]] = {
    "M": (64, 128),
    "N": (512, 1024),
    "warps": (4, 8),
    "cluster": (2, 4, 8),
}


def program(op: str, columns: int, rows: int = ROWS) -> str:
    """Return the text of an op, with 1024 terms in each product."""
    text = resized(op, {128: rows, 64: 1024, 256: columns})
    return text.replace("f16", OPS[op])


def module_text(op: str, tiling: Mapping[str, int]) -> str:
    """
    Return the emitted module of an op with a tiling.

    Raises `CometError` if the tiling does not fit.
    """
    launch = f"warps={tiling['warps']} stages={STAGES} cluster={tiling['cluster']}"
    kernel = "p" if op == "gemm_softmax" else "y"
    factors = f"{kernel}: M={ROWS // tiling['M']} {launch}; c_k: K={1024 // DEPTH}"
    machine = f'path="samples/hardware/h200x1.yaml" triton="{triton_version()}"'
    passes = f'triton-distributed{{ranks=1 strategy=full factors="{factors}"}}'
    module = comet.parse(program(op, tiling["N"]))
    pipeline = f"attach-hardware{{{machine}}},{passes}"
    return comet.compile(module, pipeline=pipeline).emit("triton")


def tilings() -> Iterator[Mapping[str, int]]:
    """Yield all tilings."""
    for numbers in product(*TILINGS.values()):
        yield dict(zip(TILINGS, numbers, strict=True))


def main() -> int:
    """Compile and print; return the exit code."""
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    print(f"# sm_90, blocks of {DEPTH} terms, {STAGES} stages")
    print("triton,op,tiling,registers,spilled,shared,remote")
    for start, found in compiled_tilings(product(OPS, tilings()), module_text):
        usage = found.registers, found.spills, found.shared, found.remote
        print(start, *usage, sep=",", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
