"""
One GPU as numbers: its rates and capacities, and how Triton compiles tiles for it.

Times are seconds, rates per second, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
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
class Compiled:
    """How Triton compiles tiles; `dialects.arch.schema` has the sources."""

    thread_registers: int
    """Registers of a thread besides those for tiles."""
    vector_registers: int
    """The same in kernels without products."""
    most_registers: int
    """The most registers that a thread may have."""
    spare_registers: int
    """Registers that an estimate leaves free, because it may be too low."""
    accumulation_registers: int
    """
    How many registers of a thread the accumulators of products may be in; those that
    fill them are held twice. 0 if they may be in all.
    """
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
    copies_pass_registers: bool
    """
    Whether software pipelines copy tiles to shared memory through registers: loads are
    issued at the start of an iteration, and what was loaded is stored at its end.
    """
    f32_multiple: float
    """Registers of kernels with f32 products, as a multiple of those for the tiles."""
    shared_fraction: float
    """Fraction of the shared memory that the tiles of one program may fill."""
    shared_operand_rows: int
    """
    With at least this many rows, matrix instructions read operands from shared memory;
    0 if they never do.
    """
    matrix_instructions: tuple[MatrixInstruction, ...]
    """Those of 16-bit products: each takes the first one that it fills."""
    warp_instructions: WarpInstructions
    warps_along_rows: bool
    """
    Whether products of a loop body that read each other have warps along rows, and
    those whose columns are too few for all warps; else the shape of the last product
    decides for all of the body.
    """
    second_loop_registers: int
    """The additional registers of a loop that is written in two parts."""
    outer_loop_registers: int
    """The additional registers of a loop around another one, or over tiles."""
    most_unrolled: int
    """The most iterations of a loop that the compiler unrolls."""
    unrolled_loop_registers: int
    """The additional registers of a loop of a product that the compiler unrolls."""
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
    least_group_elements: int
    """The fewest elements of a row that a program of a group gets."""
    most_group_elements: int
    """The most elements of a row that a program of a group gets."""
    copy_bytes: int
    """Loads of at least this many bytes go to shared memory without registers."""
    free_load_bytes: int
    """Loads of at least this many bytes per thread need no registers for addresses."""
    epilogue_subtiles: int
    """The most subtiles in which the epilogue of a kernel is computed, 1 for none."""
    launch_registers: int
    """
    What the most registers of a thread that a launch may give are a multiple of; 0 if
    launches do not give it.
    """
    stores_full_rows: bool
    """Whether stores of clusters have the layout of whole rows, see `clusters`."""
    descriptor_bytes: int
    """
    The alignment of rows (bytes) that copies by tensor descriptors need; 0 if the GPU
    has none.
    """
    specialized: SpecializedWarps | None
    """None if there are no producer warps."""
    stores_converted: bool
    """Whether stores give tiles in the layout of a product one of whole rows."""
    stages_converted: bool
    """Whether loads have stages if products read their values after a conversion."""
    whole_tiles: bool
    """
    Whether kernels without products compute each op on a whole tile before the next.
    """
    rounded_fraction: float
    """
    Fraction of a tile that such kernels hold twice while they round it to bf16, for
    which there is no instruction.
    """
    exposed_fraction: float
    """
    Fraction of the overlapped time that is added to rank tilings: it decides if the
    slowest resource takes equally long.
    """


@dataclass(frozen=True)
class Device:
    """The rates of one GPU, its capacities, and the costs of control."""

    clock: float
    multiprocessors: int
    tensor: Mapping[str, float]
    """Dense matrix operations by element type; a fused multiply-add counts two."""
    vector: Mapping[str, float]
    """Other floating-point operations by element type."""
    function_costs: Mapping[str, float]
    """Costs of elementwise functions and reductions, in additions; by default 1."""
    special_units: frozenset[str]
    """The functions that units of their own compute, beside the vector lanes."""
    hbm_bandwidth: float
    l2_bytes: int
    l2_bandwidth: float
    launch: float
    register_bytes: int
    """Bytes of registers of one multiprocessor."""
    shared_bytes: int
    """Bytes of shared memory that one program can have."""
    reserved_bytes: int
    """Bytes of shared memory that each program takes in addition."""
    warps: int
    """Warps that one multiprocessor can hold."""
    warp_threads: int
    """Threads of a warp."""
    vector_warps: float
    """
    Warps of a multiprocessor with which its vector lanes reach their rate: with fewer,
    lanes wait for the results of earlier operations.
    """
    shared_per_clock: int
    """Bytes one multiprocessor reads from shared memory per clock."""
    load_bytes: int
    """The largest vector width, in bytes."""
    load_latency: float
    """From a load of tiles in device memory to its use."""
    flag_latency: float
    """
    From an instruction on one number of the GPU's own memory to its result: a read of
    a flag, an atomic, or a fence.
    """
    iteration: float
    """Seconds that control and synchronization add to one iteration of a loop."""
    dependent: float
    """
    The least seconds between two waits for loads in a loop that reduces what its
    products give: each instruction waits for the one before.
    """
    exchange: float
    """From storing a value for other programs of the same GPU until they load it."""
    rank_exchange: float
    """The same for programs of other GPUs."""
    most_cluster_blocks: int
    """The most thread blocks of a cluster, 1 if the GPU or Triton has no clusters."""
    cluster_exchange: float
    """From storing a value for other blocks of a cluster, past a barrier, to a load."""
    mean_length: float
    """The mean of lengths that are known at run time, over the longest."""
    compiled: Compiled
    sharing: int = 1
    """How many ranks share the GPU, of which this is one rank's part."""

    @property
    def shared_bandwidth(self) -> float:
        """Bytes per second that all multiprocessors read from shared memory."""
        return self.shared_per_clock * self.clock * self.multiprocessors
