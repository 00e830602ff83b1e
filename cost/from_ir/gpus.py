"""An `arch.system` of GPUs as numbers: one of them, and the node of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import cast

from xdsl.dialects.builtin import DictionaryAttr

from comet.cost.estimate import CostError
from comet.cost.from_ir.triton_rules import most_cluster_blocks, triton_rules
from comet.cost.gpu.device import Device, Limits, Memory, Times, Units
from comet.cost.gpu.interconnect import Interconnect
from comet.cost.gpu.launch_plan import Machine, shared_device, shared_memory_net
from comet.dialects.arch import SystemOp
from comet.dialects.arch.fields import Fields, integer, number
from comet.dialects.arch.gpu import GpuOp, with_defaults
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.arch.schema import GPU_DEFAULTS

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
    gpu, levels = _gpu(system), gpu_levels(system)
    registers, shared = (
        system.level(name).memory.bytes for name in (levels.registers, levels.shared)
    )
    return _device(gpu.fields, registers, shared)


@lru_cache(maxsize=64)
def _device(fields: DictionaryAttr, registers: int, shared: int) -> Device:
    """
    Return the GPU with these fields, and so many bytes of registers and shared memory.

    Passes ask for the same GPU many times.
    """
    figures = with_defaults(fields)
    figure, count = partial(number, figures), partial(integer, figures)
    device = Device(
        multiprocessors=count("multiprocessors"),
        units=_units(figures),
        memory=_memory(figures),
        limits=Limits(
            register_bytes=registers,
            shared_bytes=shared,
            reserved_bytes=count("reserved_shared_bytes"),
            warps=count("warps"),
            warp_threads=count("warp_threads"),
            most_cluster_blocks=most_cluster_blocks(figures),
        ),
        times=_times(figures),
        triton=triton_rules(figures),
        exposed_fraction=figure("exposed_fraction"),
        mean_length=figure("mean_length"),
    )
    sharing = count(SHARING)
    return device if sharing == 1 else shared_device(device, sharing)


def _units(figures: Fields) -> Units:
    figure = partial(number, figures)
    return Units(
        clock=figure("clock_ghz") * 1e9,
        tensor=_rates(figures, "tensor_tflops", 1e12),
        vector=_rates(figures, "vector_tflops", 1e12),
        function_costs=_rates(figures, "function_costs"),
        special_units=frozenset(cast(Sequence[str], figures.get("special_units", ()))),
        vector_warps=figure("vector_warps"),
    )


def _memory(figures: Fields) -> Memory:
    figure, count = partial(number, figures), partial(integer, figures)
    return Memory(
        hbm_bandwidth=figure("hbm_gb_per_s") * 1e9,
        l2_bytes=count("l2_bytes"),
        l2_bandwidth=figure("l2_gb_per_s") * 1e9,
        shared_per_clock=count("shared_bytes_per_clock"),
        load_bytes=count("load_bytes"),
    )


def _times(figures: Fields) -> Times:
    def seconds(name: str) -> float:
        return number(figures, f"{name}_us") * 1e-6

    return Times(
        launch=seconds("launch"),
        load_latency=seconds("load_latency"),
        flag_latency=seconds("flag_latency"),
        iteration=seconds("iteration"),
        dependent=seconds("dependent"),
        exchange=seconds("exchange"),
        rank_exchange=sum(number(figures, name) for name in RANK_EXCHANGE) * 1e-6,
        cluster_exchange=seconds("cluster_exchange"),
    )


def machine_of(system: SystemOp, ranks: int, *, graph: bool = False) -> Machine:
    """
    Return the node of GPUs of an `arch.system`, with `ranks` of its GPUs in use, or the
    one GPU that these ranks share.

    With `graph`, kernels are started by replaying a captured graph. Raises `CostError`
    where the system has no GPU.
    """
    figures, device = _gpu(system).figures, device_of(system)
    figure = partial(number, figures)
    latency = figure("link_latency_us") * 1e-6
    away = device.times.load_latency + latency
    if "remote_load_us" in figures:
        away = figure("remote_load_us") * 1e-6
    launch = device.times.launch
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


def _gpu(system: SystemOp) -> GpuOp:
    if (gpu := system.gpu) is None:
        raise CostError(
            f"@{system.system_name} is no GPU: its hardware file has no comet.gpu "
            "section; attach h200x1.yaml or the like"
        )
    return gpu


def _rates(figures: Fields, name: str, scale: float = 1) -> dict[str, float]:
    """Return a map of figures by name, times `scale`, with the defaults."""
    maps = (fields.get(name) for fields in (GPU_DEFAULTS, figures))
    names = {
        k: v for rates in maps if isinstance(rates, Mapping) for k, v in rates.items()
    }
    return {key: number(names, key) * scale for key in names}
