"""An `arch.system` as numbers: the machines that the models price for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from xdsl.ir import Block

from comet.cost.accelerator.hardware import (
    ROOT_MEMORY,
    Hardware,
    Level,
    Memory,
    Network,
    Unit,
)
from comet.cost.estimate import CostError, HardwareError
from comet.cost.gpu.interconnect import Interconnect
from comet.cost.gpu.kernel import Compiled, Device
from comet.cost.gpu.launch_plan import Machine
from comet.dialects.arch import ComputeOp, LevelOp, MemoryOp, Path, SystemOp, UnitOp
from comet.dialects.arch.fields import Fields, fields_of, number
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.arch.schema import GPU_DEFAULTS


def hardware_of(system: SystemOp) -> Hardware:
    """
    The machine of an `arch.system`, whose verifier has checked the fields.

    A unit may hang under several memories: the parent with the most instances counts
    (COMET tool). Raises `HardwareError` where there is no level, or a memory is larger
    than the COMET tool can count.
    """
    levels: dict[str, Level] = {}
    networks: dict[tuple[str, str], Network] = {}
    for node in _explored(system.body.block):
        name, above = node.level_name, node.parent_level
        if above is not None:
            networks[above.level_name, name] = _network(node)
        if (known := levels.get(name)) is None:
            levels[name] = _level(node)
        elif above and above.instances > levels[known.parent or ""].instances:
            total = above.total_instances * known.instances
            levels[name] = replace(
                known, parent=above.level_name, total_instances=total
            )
    if not levels:
        raise HardwareError(
            f"the hardware @{system.system_name} has no level; list its root memory in "
            "the Hierarchy"
        )
    return Hardware(tuple(levels.values()), networks)


def _explored(block: Block) -> Iterator[LevelOp | UnitOp]:
    """Yield nodes as the COMET tool explores them: `connects`, `drains`, `fills`."""
    nodes = [op for op in block.ops if isinstance(op, LevelOp | UnitOp)]
    order = [None, *Path]
    for node in sorted(
        nodes, key=lambda node: order.index(node.path and node.path.data)
    ):
        yield node
        if isinstance(node, LevelOp):
            yield from _explored(node.body.block)


def _level(node: LevelOp | UnitOp) -> Level:
    kind = _unit(node.compute) if isinstance(node, UnitOp) else _memory(node.memory)
    name, above = node.level_name, node.parent_level
    if isinstance(kind, Memory) and name != ROOT_MEMORY and kind.capacity >= 2**32:
        raise HardwareError(
            f"level {name} holds {kind.capacity} bytes, which overflows the 32 bits in "
            "which the COMET tool counts them; make its width times its depth smaller"
        )
    return Level(
        name,
        kind,
        None if above is None else above.level_name,
        node.instances,
        node.total_instances,
        _network(node) if node.link_field("link_transfers") is True else None,
    )


def _unit(row: ComputeOp) -> Unit:
    fields = fields_of(row.fields)
    count = partial(_integer, fields)
    return Unit(
        kind=row.kind.data,
        latency=count("computeLatency"),
        startup=count("startupLatency"),
        width=count("computeWidth", 8),
        rows=count("array_rows", 32),
        columns=count("array_cols", 32),
        row_arrays=count("num_sa_rows", 1),
        column_arrays=count("num_sa_cols", 1),
        energy=number(fields, "compute_energy"),
    )


def _memory(row: MemoryOp) -> Memory:
    """Bandwidths are bytes per cycle; a plain `bw` stands for all six."""
    fields = fields_of(row.fields)
    count, energy = partial(_integer, fields), partial(number, fields)

    def bandwidth(name: str) -> int:
        return count("bw" if "bw" in fields else name)

    return Memory(
        kind=row.kind.data,
        width=count("width", 1),
        depth=count("depth", 1),
        ports=count("ports", 1),
        parent_read_bandwidth=bandwidth("parent_read_bw"),
        parent_write_bandwidth=bandwidth("parent_write_bw"),
        child_read_bandwidth=bandwidth("child_read_bw"),
        child_write_bandwidth=bandwidth("child_write_bw"),
        link_read_bandwidth=bandwidth("link_read_bw"),
        link_write_bandwidth=bandwidth("link_write_bw"),
        parent_read_energy=energy("parent_read_energy"),
        parent_write_energy=energy("parent_write_energy"),
        child_read_energy=energy("child_read_energy"),
        child_write_energy=energy("child_write_energy"),
        shares_ports=fields.get("parent_child_ports_shared") is True,
        one_bus="bw" in fields,
        contiguous=fields.get("dma_contiguous") is True,
    )


def _network(node: LevelOp | UnitOp) -> Network:
    fields = {} if node.link is None else fields_of(node.link)
    count = partial(_integer, fields)
    return Network(
        bandwidth=count("bw"),
        mesh=node.mesh_shape if fields.keys() & {"mesh", "meshX"} else None,
        hop_latency=count("hop_latency", 1),
        queuing_delay=count("queuing_delay"),
        channel_width=count("channel_width", 32),
        broadcast=fields.get("broadcast_support") is True,
        reduction=fields.get("reduction_support") is True,
    )


def _integer(fields: Fields, name: str, default: int = 0) -> int:
    """A number as an integer: the COMET tool truncates."""
    return int(number(fields, name, default))


def device_of(system: SystemOp) -> Device:
    """
    The GPU of an `arch.system`.

    Raises `CostError` where the system has none, `ArchError` where it has too few
    levels of memory for one.
    """
    figures, levels = _figures(system), gpu_levels(system)
    figure, count = partial(number, figures), partial(_integer, figures)
    return Device(
        clock=figure("clock_ghz") * 1e9,
        multiprocessors=count("multiprocessors"),
        tensor=_each(figures, "tensor_tflops", 1e12),
        vector=_each(figures, "vector_tflops", 1e12),
        function_costs=_each(figures, "function_costs"),
        hbm_bandwidth=figure("hbm_gb_per_s") * 1e9,
        l2_bytes=count("l2_bytes"),
        l2_bandwidth=figure("l2_gb_per_s") * 1e9,
        launch=figure("launch_us") * 1e-6,
        register_bytes=system.level(levels.registers).memory.bytes,
        shared_bytes=system.level(levels.shared).memory.bytes,
        warps=count("warps"),
        warp_threads=count("warp_threads"),
        shared_per_clock=count("shared_bytes_per_clock"),
        load_bytes=count("load_bytes"),
        load_latency=figure("load_latency_us") * 1e-6,
        iteration=figure("iteration_us") * 1e-6,
        compiled=Compiled(
            thread_registers=count("thread_registers"),
            most_registers=count("most_registers"),
            spare_registers=count("spare_registers"),
            operand_fraction=figure("operand_fraction"),
            load_fraction=figure("load_fraction"),
            f32_multiple=figure("f32_multiple"),
            shared_fraction=figure("shared_fraction"),
            shared_operand_rows=count("shared_operand_rows"),
            copy_bytes=count("copy_bytes"),
            free_load_bytes=count("free_load_bytes"),
            exposed_fraction=figure("exposed_fraction"),
        ),
    )


def machine_of(system: SystemOp, ranks: int, *, graph: bool = False) -> Machine:
    """
    The node of GPUs of an `arch.system`, `ranks` of its GPUs in use.

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
    net = Interconnect(
        ranks=ranks,
        bandwidth=figure("link_gb_per_s") * 1e9,
        links=_integer(figures, "links"),
        latency=latency,
        load_latency=away,
        signal=figure("signal_us") * 1e-6,
        barrier=figure("barrier_us") * 1e-6,
        caches=_integer(figures, "remote_caches", device.multiprocessors),
        flag_bytes=_integer(figures, "flag_bytes"),
    )
    return Machine(device, net, launch, figure("skew"))


def _figures(system: SystemOp) -> Fields:
    if (gpu := system.gpu) is None:
        raise CostError(
            f"@{system.system_name} is no GPU: its hardware file has no comet.gpu "
            "section; attach h200x1.yaml or the like"
        )
    return gpu.figures


def _each(figures: Fields, name: str, scale: float = 1) -> dict[str, float]:
    """Return a figure for each of some names, those of the defaults included."""
    given = (fields.get(name) for fields in (GPU_DEFAULTS, figures))
    names = {
        k: v for each in given if isinstance(each, Mapping) for k, v in each.items()
    }
    return {key: number(names, key) * scale for key in names}
