"""
`lower-to-triton`: dataflow level -> Triton.

Needs functions with one `dataflow.program` of kernels, on one GPU or, inside a
`collective.spmd`, on every rank, with chosen tiles and lowered channels. Every kernel
becomes a `tl.kernel`, and the program a launch plan. Extents need not be multiples of
blocks: loads and stores are masked. Copies, waits, blocks, programs and masks that
earlier passes did not write are written first, as `materialize-copies`, `place-waits`,
`pad-blocks`, `map-grid` and `mask-copies` do.
Rejects element types other than f16, bf16, f32, i32, i64, i8 and i1, tiles larger than
Triton's limit, and schedules that would assemble or split blocks in registers.

To read in this order:

* `program` and `kernel`: the launch plan, and one kernel of it; `grid`: its programs;
* `table`: which function writes an op; `ops`, `sums`, `copies`, `loops` with `ranges`
  and `coalesced`;
* `values`, `offsets`, `buffers`, `memory`: tiles, slices of dimensions, and memory;
  `access` and `descriptors`: how tiles are loaded and stored;
* several ranks: `ranks`, `channels`, `sends`, `waits`; programs that merge or share
  work: `arrivals`, `shares`;
* `workarounds`: code that only works around bugs and gaps of Triton.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from comet.passes.analysis.levels import IRLevel
from comet.passes.dataflow.place_waits import place_in_nodes
from comet.passes.function_pass import FunctionPass
from comet.passes.triton.lower_to_triton.kernel import lower_kernel
from comet.passes.triton.lower_to_triton.program import find_program, lower_program
from comet.passes.triton.map_grid import map_grids
from comet.passes.triton.mask_copies import mask_copies
from comet.passes.triton.pad_blocks import pad_blocks


@dataclass(frozen=True)
class LowerToTritonPass(FunctionPass):
    """Write the kernels of every program in Triton."""

    name = "lower-to-triton"

    LEVELS = (IRLevel.DATAFLOW,)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        prepare(function)
        program = find_program(function)
        lowered = [lower_kernel(kernel) for kernel in program.kernels()]
        for result in lowered:
            module.body.block.insert_op_before(result.kernel, function)
        lower_program(program, lowered)


def prepare(function: FuncOp) -> None:
    """Write the copies, waits, blocks, programs and masks that are still missing."""
    place_in_nodes(function)
    pad_blocks(function)
    map_grids(function)
    mask_copies(function)
