"""
How Triton compiles tiles for a GPU, as numbers and facts by what they describe.

Sizes are bytes. `dialects.arch.schema` has the meaning of each in a hardware file, and
its source; `from_ir/triton_rules.py` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class MatrixInstruction(NamedTuple):
    """The result of a matrix instruction of a warp, in elements."""

    rows: int
    columns: int
    lanes: int
    """The lanes of the warp that hold one row."""


class WarpInstructions(NamedTuple):
    """The matrix instructions along each side of what warps are balanced by."""

    rows: int
    columns: int


class SpecializedWarps(NamedTuple):
    """Kernels in which one group of warps loads what other groups compute on."""

    warps: int
    """The warps of the program as it is launched, which are those of a group."""
    stages: int
    """The most stages with which results are right."""
    groups: int
    """The groups that compute, each with a part of the rows of a tile."""
    rows: int
    """The rows of a group."""
    registers: int
    """The most registers of a thread of a group that computes."""
    shared_bytes: int
    """Shared memory beside tiles and results: what groups pass to each other."""


@dataclass(frozen=True)
class ProgramLimits:
    """How many registers, and how much shared memory, a program may fill."""

    most_registers: int
    """The most registers that a thread may have."""
    spare_registers: int
    """Registers that an estimate leaves free, because it may be too low."""
    accumulation_registers: int
    """
    How many registers of a thread the accumulators of products may be in; those that
    fill them are held twice. 0 if they may be in all.
    """
    launch_registers: int
    """
    What the most registers of a thread that a launch may give are a multiple of; 0 if
    launches do not give it.
    """
    shared_fraction: float
    """Fraction of the shared memory that the tiles of one program may fill."""


@dataclass(frozen=True)
class TileRegisters:
    """The registers of a thread for tiles, and those that each thread has besides."""

    thread_registers: int
    """Registers of a thread besides those for tiles."""
    vector_registers: int
    """The same in kernels without products."""
    operand_fraction: float
    """
    Fraction of a contraction's operands that registers hold at a time, if its matrix
    instructions do not read shared memory.
    """
    operand_terms: int
    """The most terms of a contraction for which registers hold the operands."""
    load_fraction: float
    """
    Fraction of what an iteration loads that registers hold before it is in shared
    memory, without a software pipeline.
    """
    passed_fraction: float
    """
    Fraction of tiles on their way to shared memory that registers hold in addition to
    all others.
    """
    f32_multiple: float
    """Registers of kernels with f32 products, as a multiple of those for the tiles."""
    whole_tiles: bool
    """
    Whether kernels without products compute each op on a whole tile before the next.
    """
    rounded_fraction: float
    """
    Fraction of a tile that such kernels hold twice while they round it to bf16, for
    which there is no instruction.
    """


@dataclass(frozen=True)
class LoopRegisters:
    """The additional registers of a thread for loops."""

    second_loop_registers: int
    """The additional registers of a loop that is written as two."""
    outer_loop_registers: int
    """The additional registers of a loop around another one, or over tiles."""
    most_unrolled: int
    """The most iterations of a loop that the compiler unrolls."""
    unrolled_loop_registers: int
    """The additional registers of a loop of a product that the compiler unrolls."""


@dataclass(frozen=True)
class AddressRegisters:
    """The registers of a thread for addresses of what loops load and store."""

    nested_address_registers: int
    """
    The registers for each copy of an operand to shared memory, if several loops change
    its address, of which one takes a single index at a time; and for each load of what
    programs of a group keep in registers during a product.
    """
    summed_address_registers: int
    """The same of a sum of products, in any loop."""
    masked_address_registers: int
    """
    The registers for each load and store of a thread in a loop along rows whose last
    block is masked, in kernels without products.
    """
    stored_address_registers: int
    """The same for each store of a thread in any loop along rows."""


@dataclass(frozen=True)
class ProductRules:
    """Which instructions compute products, and how warps divide them."""

    shared_operand_rows: int
    """
    With at least this many rows, matrix instructions read operands from shared memory;
    0 if they never do.
    """
    matrix_instructions: tuple[MatrixInstruction, ...]
    """Those of 16-bit products: each takes the first one that it fills."""
    warp_instructions: WarpInstructions
    """The units in which the sides of a product are counted to balance its warps."""
    warps_along_rows: bool
    """
    Whether products of a loop body that read each other have warps along rows, and
    those whose columns are too few for all warps; else the shape of the last product
    decides for all of the body.
    """


@dataclass(frozen=True)
class CopyRules:
    """How loads and copies of tiles reach shared memory."""

    copies_pass_registers: bool
    """
    Whether software pipelines copy tiles to shared memory through registers: loads are
    issued at the start of an iteration, and what was loaded is stored at its end.
    """
    stages_converted: bool
    """Whether loads have stages if products read their values after a conversion."""
    copy_bytes: int
    """Loads of at least this many bytes go to shared memory without registers."""
    free_load_bytes: int
    """Loads of at least this many bytes per thread need no registers for addresses."""
    descriptor_bytes: int
    """
    The alignment of rows (bytes) that copies by tensor descriptors need; 0 if the GPU
    has none.
    """


@dataclass(frozen=True)
class StoreRules:
    """How the results of a kernel are stored."""

    epilogue_subtiles: int
    """The most subtiles in which the epilogue of a kernel is computed, 1 for none."""
    stores_full_rows: bool
    """Whether stores of clusters have the layout of whole rows, see `clusters`."""
    stores_converted: bool
    """Whether stores give tiles in the layout of a product one of whole rows."""


@dataclass(frozen=True)
class GroupLimits:
    """How many elements of a row each program of a group gets."""

    least_group_elements: int
    """The fewest elements of a row that a program of a group gets."""
    most_group_elements: int
    """The most elements of a row that a program of a group gets."""


@dataclass(frozen=True)
class TritonRules:
    """How Triton compiles the kernels of a GPU."""

    limits: ProgramLimits
    tiles: TileRegisters
    loops: LoopRegisters
    addresses: AddressRegisters
    products: ProductRules
    copies: CopyRules
    stores: StoreRules
    groups: GroupLimits
    specialized: SpecializedWarps | None
    """None if there are no producer warps."""
