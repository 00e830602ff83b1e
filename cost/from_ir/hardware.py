"""An `arch.system` as numbers: the machines that the models price for."""

from __future__ import annotations

from comet.cost.accelerator.hardware import Hardware
from comet.cost.estimate import CostError
from comet.cost.fields import Fields
from comet.cost.gpu.interconnect import Interconnect
from comet.cost.gpu.kernel import Compiled, Device
from comet.cost.gpu.launch_plan import Machine
from comet.cost.read_hardware import read_hardware
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.arch.schema import GPU_DEFAULTS
from comet.dialects.arch.yaml import fields_of_system


def hardware_of(system: SystemOp) -> Hardware:
    """
    The machine of an `arch.system`; raises `CostError` for a field that is missing or
    contradicts another.
    """
    return read_hardware(fields_of_system(system))


def device_of(system: SystemOp) -> Device:
    """
    The GPU of an `arch.system`.

    Raises `CostError` where the system has none, `ArchError` where it has too few
    levels of memory for one.
    """
    figures, levels = _figures(system), gpu_levels(system)
    number, count = figures.number, figures.integer
    return Device(
        clock=number("clock_ghz") * 1e9,
        multiprocessors=count("multiprocessors"),
        tensor=_each(figures, "tensor_tflops", 1e12),
        vector=_each(figures, "vector_tflops", 1e12),
        function_costs=_each(figures, "function_costs"),
        hbm_bandwidth=number("hbm_gb_per_s") * 1e9,
        l2_bytes=count("l2_bytes"),
        l2_bandwidth=number("l2_gb_per_s") * 1e9,
        launch=number("launch_us") * 1e-6,
        register_bytes=system.level(levels.registers).memory.bytes,
        shared_bytes=system.level(levels.shared).memory.bytes,
        warps=count("warps"),
        warp_threads=count("warp_threads"),
        shared_per_clock=count("shared_bytes_per_clock"),
        load_bytes=count("load_bytes"),
        load_latency=number("load_latency_us") * 1e-6,
        iteration=number("iteration_us") * 1e-6,
        compiled=Compiled(
            tile_registers=count("tile_registers"),
            tile_registers_f32=count("tile_registers_f32"),
            thread_registers=count("thread_registers"),
            register_multiple=number("register_multiple"),
            register_share=number("register_share"),
            shared_share=number("shared_share"),
            shared_operand_rows=count("shared_operand_rows"),
            copy_bytes=count("copy_bytes"),
            free_load_bytes=count("free_load_bytes"),
            exposed_share=number("exposed_share"),
        ),
    )


def machine_of(system: SystemOp, ranks: int, *, graph: bool = False) -> Machine:
    """
    The node of GPUs of an `arch.system`, `ranks` of its GPUs in use.

    With `graph`, kernels are started by replaying a captured graph. Raises `CostError`
    where the system has no GPU.
    """
    figures, device = _figures(system), device_of(system)
    latency = figures.number("link_latency_us") * 1e-6
    away = device.load_latency + latency
    if figures.has("remote_load_us"):
        away = figures.number("remote_load_us") * 1e-6
    launch = device.launch
    if graph and figures.has("graph_launch_us"):
        launch = figures.number("graph_launch_us") * 1e-6
    net = Interconnect(
        ranks=ranks,
        bandwidth=figures.number("link_gb_per_s") * 1e9,
        links=figures.integer("links"),
        latency=latency,
        load_latency=away,
        signal=figures.number("signal_us") * 1e-6,
        barrier=figures.number("barrier_us") * 1e-6,
        caches=figures.integer("remote_caches", device.multiprocessors),
        flag_bytes=figures.integer("flag_bytes"),
    )
    return Machine(device, net, launch, figures.number("skew"))


def _figures(system: SystemOp) -> Fields:
    if (gpu := system.gpu) is None:
        raise CostError(
            f"@{system.system_name} is no GPU: its hardware file has no comet.gpu "
            "section; attach h200x1.yaml or the like"
        )
    return Fields(gpu.figures, "comet: gpu")


def _each(figures: Fields, name: str, scale: float = 1) -> dict[str, float]:
    """Return a figure for each of some names, those of the defaults included."""
    default = Fields(GPU_DEFAULTS, "the defaults").below(name, name)
    given = figures.below(name, name)
    names = {**default.values, **given.values}
    return {key: Fields(names, name).number(key) * scale for key in names}
