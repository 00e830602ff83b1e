"""
Compiles kernels whose programs load rows ahead, and writes what they take on sm_90.

    python benchmarks/tile_loops.py > tests/data/tile_loops.csv

A line holds the version of Triton, the op, its columns and elements, num_stages of the
loop over tiles, the registers of a thread, the bytes that it spills, and the bytes of
shared memory of a program: those taken, and those of the model. The table has lines of
several versions: run it with each of them, and append the lines after the first two. No
GPU is needed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from gpu_programs import with_extents
from ladder_programs import Case, after_passes
from registers import triton_version

import comet
from comet.cost.from_ir.program import launch_plan_of
from comet.cost.gpu.launch_plan import Launch
from comet.cost.gpu.work import KernelWork
from comet.dialects.arch import attached_system
from comet.dialects.dataflow import ProgramOp
from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.runtime.compile_check import Compiled, compiled, recorded_launches

ROWS = 8192
OPS = ("gemm_softmax", "gemm_layernorm", "gemm_rmsnorm", "gemm_gelu")
COLUMNS = (1024, 3000, 4096, 8192, 16384)
ELEMENTS = ("f16", "f32")
PASSES = TritonDistributedPass(strategy="none", persist="all")
"""An op as two kernels, whose programs are persistent."""


def source(op: str, columns: int, element: str) -> str:
    """Return the text of an op on rows of so many columns."""
    text = with_extents(op, {"M": ROWS, "N": columns, "K": 64})
    return text.replace("xf16>", f"x{element}>")


def expected(text: str) -> KernelWork:
    """Return the work of a program of the second kernel, by the model."""
    module = after_passes(Case("", 1, text), "h200x1", [replace(PASSES, to="dataflow")])
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    plan = launch_plan_of(program, attached_system(module))
    *_, last = (step for step in plan if isinstance(step, Launch))
    (node,) = last.nodes
    return node.work


def taken(text: str) -> Compiled:
    """Return what the compiler at hand makes of the second kernel."""
    module = after_passes(Case("", 1, text), "h200x1", [PASSES])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(comet.compile(module, pipeline="").emit("triton"))
        *_, last = recorded_launches(str(path))
        return compiled(last, "sm_90")


def lines() -> Iterator[str]:
    """Compile the second kernels that load rows ahead; yield their lines."""
    for op, columns, element in product(OPS, COLUMNS, ELEMENTS):
        text = source(op, columns, element)
        work = expected(text)
        if work.loops.tiles_ahead:
            found = taken(text)
            stages = int(work.loops.stages)
            start = f"{triton_version()},{op},{columns},{element},{stages}"
            uses = f"{found.registers},{found.spills},{found.shared}"
            yield f"{start},{uses},{int(work.needs.shared)}"


def main() -> int:
    """Compile and print; return the exit code."""
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    print(f"# sm_90, {ROWS} rows")
    print("triton,op,columns,element,stages,registers,spilled,shared,expected")
    for line in lines():
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
