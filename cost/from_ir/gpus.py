"""An `arch.system` of GPUs as numbers: one of them, and the node of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from comet.cost.estimate import CostError
from comet.cost.gpu.device import (
    Compiled,
    Device,
    MatrixInstruction,
    SpecializedWarps,
    WarpInstructions,
)
from comet.cost.gpu.interconnect import Interconnect
from comet.cost.gpu.launch_plan import Machine, shared_device, shared_memory_net
from comet.dialects.arch import SystemOp
from comet.dialects.arch.fields import Fields, integer, number
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.arch.schema import GPU_DEFAULTS
from comet.dialects.arch.triton_version import (
    CLUSTERS_SINCE,
    FULL_ROWS_STORED,
    Version,
    read_version,
)
from comet.dialects.schedule.attributes import UNROLLED

INSTRUCTIONS = "matrix_instructions"
SHARING = "sharing_ranks"
RANK_EXCHANGE = ("exchange_us", "link_latency_us", "signal_us")
"""
The times that add up to an exchange between programs of two GPUs: as on one GPU, and
the value passes a link, then its flag.
"""


def device_of(system: SystemOp) -> Device:
    """
    Return the GPU of an `arch.system`, or the part that a rank has if several share it.

    Raises `CostError` where the system has none, `ArchError` where it has too few
    levels of memory for one.
    """
    figures, levels = _figures(system), gpu_levels(system)
    figure, count = partial(number, figures), partial(integer, figures)
    device = Device(
        clock=figure("clock_ghz") * 1e9,
        multiprocessors=count("multiprocessors"),
        tensor=_rates(figures, "tensor_tflops", 1e12),
        vector=_rates(figures, "vector_tflops", 1e12),
        function_costs=_rates(figures, "function_costs"),
        special_units=frozenset(cast(Sequence[str], figures.get("special_units", ()))),
        hbm_bandwidth=figure("hbm_gb_per_s") * 1e9,
        l2_bytes=count("l2_bytes"),
        l2_bandwidth=figure("l2_gb_per_s") * 1e9,
        launch=figure("launch_us") * 1e-6,
        register_bytes=system.level(levels.registers).memory.bytes,
        shared_bytes=system.level(levels.shared).memory.bytes,
        reserved_bytes=count("reserved_shared_bytes"),
        warps=count("warps"),
        warp_threads=count("warp_threads"),
        vector_warps=figure("vector_warps"),
        shared_per_clock=count("shared_bytes_per_clock"),
        load_bytes=count("load_bytes"),
        load_latency=figure("load_latency_us") * 1e-6,
        flag_latency=figure("flag_latency_us") * 1e-6,
        iteration=figure("iteration_us") * 1e-6,
        dependent=figure("dependent_us") * 1e-6,
        exchange=figure("exchange_us") * 1e-6,
        rank_exchange=sum(map(figure, RANK_EXCHANGE)) * 1e-6,
        most_cluster_blocks=_most_cluster_blocks(figures),
        cluster_exchange=figure("cluster_exchange_us") * 1e-6,
        mean_length=figure("mean_length"),
        compiled=_compiled(figures),
    )
    sharing = count(SHARING)
    return device if sharing == 1 else shared_device(device, sharing)


def _compiled(figures: Fields) -> Compiled:
    """Return how Triton compiles tiles for a GPU."""
    figure, count = partial(number, figures), partial(integer, figures)
    return Compiled(
        thread_registers=count("thread_registers"),
        vector_registers=integer(
            figures, "vector_registers", count("thread_registers")
        ),
        most_registers=count("most_registers"),
        spare_registers=count("spare_registers"),
        accumulation_registers=integer(figures, "accumulation_registers", 0),
        operand_fraction=figure("operand_fraction"),
        operand_terms=count("operand_terms"),
        load_fraction=figure("load_fraction"),
        passed_fraction=number(figures, "passed_fraction", 0),
        copies_pass_registers=count("copies_pass_registers") > 0,
        f32_multiple=figure("f32_multiple"),
        shared_fraction=figure("shared_fraction"),
        shared_operand_rows=count("shared_operand_rows"),
        matrix_instructions=tuple(
            MatrixInstruction(*shape)
            for shape in cast(Sequence[Sequence[int]], figures[INSTRUCTIONS])
        ),
        warp_instructions=WarpInstructions(
            *cast(Sequence[int], figures["warp_instructions"])
        ),
        warps_along_rows=integer(figures, "warps_along_rows", 0) > 0,
        second_loop_registers=count("second_loop_registers"),
        outer_loop_registers=count("outer_loop_registers"),
        most_unrolled=UNROLLED,
        unrolled_loop_registers=integer(figures, "unrolled_loop_registers", 0),
        nested_address_registers=integer(figures, "nested_address_registers", 0),
        summed_address_registers=integer(figures, "summed_address_registers", 0),
        masked_address_registers=integer(figures, "masked_address_registers", 0),
        stored_address_registers=integer(figures, "stored_address_registers", 0),
        least_group_elements=count("least_group_elements"),
        most_group_elements=count("most_group_elements"),
        copy_bytes=count("copy_bytes"),
        free_load_bytes=count("free_load_bytes"),
        epilogue_subtiles=integer(figures, "epilogue_subtiles", 1),
        launch_registers=integer(figures, "launch_registers", 0),
        stores_full_rows=_triton(figures) >= FULL_ROWS_STORED,
        descriptor_bytes=integer(figures, "descriptor_bytes", 0),
        specialized=_specialized(figures),
        stores_converted=integer(figures, "stores_converted", 1) > 0,
        stages_converted=integer(figures, "stages_converted", 0) > 0,
        whole_tiles=integer(figures, "whole_tiles", 0) > 0,
        rounded_fraction=number(figures, "rounded_fraction", 0),
        exposed_fraction=figure("exposed_fraction"),
    )


def machine_of(system: SystemOp, ranks: int, *, graph: bool = False) -> Machine:
    """
    Return the node of GPUs of an `arch.system`, with `ranks` of its GPUs in use, or the
    one GPU that these ranks share.

    With `graph`, kernels are started by replaying a captured graph. Raises `CostError`
    where the system has no GPU.
    """
    figures, device = _figures(system), device_of(system)
    figure = partial(number, figures)
    latency = figure("link_latency_us") * 1e-6
    away = device.load_latency + latency
    if "remote_load_us" in figures:
        away = figure("remote_load_us") * 1e-6
    launch = device.launch
    if graph and "graph_launch_us" in figures:
        launch = figure("graph_launch_us") * 1e-6
    if integer(figures, SHARING) > 1:
        flag_bytes = integer(figures, "flag_bytes")
        return Machine(device, shared_memory_net(device, ranks, flag_bytes), launch)
    net = Interconnect(
        ranks=ranks,
        bandwidth=figure("link_gb_per_s") * 1e9,
        links=integer(figures, "links"),
        latency=latency,
        load_latency=away,
        signal=figure("signal_us") * 1e-6,
        barrier=figure("barrier_us") * 1e-6,
        caches=integer(figures, "remote_caches", device.multiprocessors),
        flag_bytes=integer(figures, "flag_bytes"),
    )
    return Machine(device, net, launch, figure("skew"))


def _figures(system: SystemOp) -> Fields:
    if (gpu := system.gpu) is None:
        raise CostError(
            f"@{system.system_name} is no GPU: its hardware file has no comet.gpu "
            "section; attach h200x1.yaml or the like"
        )
    return gpu.figures


def _specialized(figures: Fields) -> SpecializedWarps | None:
    numbers = cast(Mapping[str, int] | None, figures.get("specialized"))
    return None if numbers is None else SpecializedWarps(**numbers)


def _most_cluster_blocks(figures: Fields) -> int:
    """Return the most thread blocks of a cluster that Triton compiles, 1 for none."""
    most = integer(figures, "most_cluster_blocks", 1)
    return most if _triton(figures) >= CLUSTERS_SINCE else 1


def _triton(figures: Fields) -> Version:
    """Return the version of Triton that compiles the kernels."""
    version = read_version(cast(str, figures["triton"]))
    assert version is not None, "checked by the schema"
    return version


def _rates(figures: Fields, name: str, scale: float = 1) -> dict[str, float]:
    """Return a map of figures by name, times `scale`, with the defaults."""
    maps = (fields.get(name) for fields in (GPU_DEFAULTS, figures))
    names = {
        k: v for rates in maps if isinstance(rates, Mapping) for k, v in rates.items()
    }
    return {key: number(names, key) * scale for key in names}
