"""How Triton compiles the kernels of a GPU, from the fields of an `arch.gpu`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from comet.cost.gpu.triton_rules import (
    AddressRegisters,
    CopyRules,
    GroupLimits,
    LoopRegisters,
    MatrixInstruction,
    ProductRules,
    ProgramLimits,
    SpecializedWarps,
    StoreRules,
    TileRegisters,
    TritonRules,
    WarpInstructions,
)
from comet.dialects.arch.fields import Fields, integer, number
from comet.dialects.arch.triton_version import (
    CLUSTERS_SINCE,
    FULL_ROWS_STORED,
    Version,
    read_version,
)
from comet.dialects.schedule.attributes import UNROLLED


def triton_rules(figures: Fields) -> TritonRules:
    """Return how Triton compiles tiles for the GPU of a hardware file."""
    count = partial(integer, figures)
    return TritonRules(
        limits=ProgramLimits(
            most_registers=count("most_registers"),
            spare_registers=count("spare_registers"),
            accumulation_registers=count("accumulation_registers", 0),
            launch_registers=count("launch_registers", 0),
            shared_fraction=number(figures, "shared_fraction"),
        ),
        tiles=_tile_registers(figures),
        loops=LoopRegisters(
            second_loop_registers=count("second_loop_registers"),
            outer_loop_registers=count("outer_loop_registers"),
            most_unrolled=UNROLLED,
            unrolled_loop_registers=count("unrolled_loop_registers", 0),
        ),
        addresses=AddressRegisters(
            nested_address_registers=count("nested_address_registers", 0),
            summed_address_registers=count("summed_address_registers", 0),
            masked_address_registers=count("masked_address_registers", 0),
            stored_address_registers=count("stored_address_registers", 0),
        ),
        products=_product_rules(figures),
        copies=CopyRules(
            copies_pass_registers=count("copies_pass_registers") > 0,
            stages_converted=count("stages_converted", 0) > 0,
            copy_bytes=count("copy_bytes"),
            free_load_bytes=count("free_load_bytes"),
            descriptor_bytes=count("descriptor_bytes", 0),
        ),
        stores=StoreRules(
            epilogue_subtiles=count("epilogue_subtiles", 1),
            stores_full_rows=_triton(figures) >= FULL_ROWS_STORED,
            stores_converted=count("stores_converted", 1) > 0,
        ),
        groups=GroupLimits(
            least_group_elements=count("least_group_elements"),
            most_group_elements=count("most_group_elements"),
        ),
        specialized=_specialized(figures),
    )


def _tile_registers(figures: Fields) -> TileRegisters:
    figure, count = partial(number, figures), partial(integer, figures)
    constant = count("thread_registers")
    return TileRegisters(
        thread_registers=constant,
        vector_registers=count("vector_registers", constant),
        operand_fraction=figure("operand_fraction"),
        operand_terms=count("operand_terms"),
        load_fraction=figure("load_fraction"),
        passed_fraction=figure("passed_fraction", 0),
        f32_multiple=figure("f32_multiple"),
        whole_tiles=count("whole_tiles", 0) > 0,
        rounded_fraction=figure("rounded_fraction", 0),
    )


def _product_rules(figures: Fields) -> ProductRules:
    shapes = cast(Sequence[Sequence[int]], figures["matrix_instructions"])
    sides = cast(Sequence[int], figures["warp_instructions"])
    return ProductRules(
        shared_operand_rows=integer(figures, "shared_operand_rows"),
        matrix_instructions=tuple(MatrixInstruction(*shape) for shape in shapes),
        warp_instructions=WarpInstructions(*sides),
        warps_along_rows=integer(figures, "warps_along_rows", 0) > 0,
    )


def _specialized(figures: Fields) -> SpecializedWarps | None:
    numbers = cast(Mapping[str, int] | None, figures.get("specialized"))
    return None if numbers is None else SpecializedWarps(**numbers)


def most_cluster_blocks(figures: Fields) -> int:
    """Return the most thread blocks of a cluster that Triton compiles, 1 for none."""
    most = integer(figures, "most_cluster_blocks", 1)
    return most if _triton(figures) >= CLUSTERS_SINCE else 1


def _triton(figures: Fields) -> Version:
    """Return the version of Triton that compiles the kernels."""
    version = read_version(cast(str, figures["triton"]))
    assert version is not None, "checked by the schema"
    return version
