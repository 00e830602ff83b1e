"""An `arch.system` as numbers: the machines that the models price for."""

from __future__ import annotations

from comet.cost.accelerator.hardware import Hardware
from comet.cost.estimate import CostError
from comet.cost.gpu.interconnect import Interconnect
from comet.cost.gpu.kernel import Device
from comet.cost.gpu.launch_plan import Machine
from comet.cost.read_hardware import read_hardware
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
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
    if (rates := system.gpu) is None:
        raise CostError(
            f"@{system.system_name} is no GPU: its hardware file has no comet.gpu "
            "section; attach h200x1.yaml or the like"
        )
    levels = gpu_levels(system)
    registers, shared = (
        system.level(name).memory.bytes for name in (levels.registers, levels.shared)
    )
    return Device(
        rates.clock,
        rates.multiprocessors,
        rates.tensor,
        rates.vector,
        rates.hbm_bandwidth,
        rates.l2_bytes,
        rates.l2_bandwidth,
        rates.launch,
        register_bytes=registers,
        shared_bytes=shared,
    )


def machine_of(system: SystemOp, ranks: int, *, graph: bool = False) -> Machine:
    """
    The node of GPUs of an `arch.system`, `ranks` of its GPUs in use.

    With `graph`, kernels are started by replaying a captured graph. Raises `CostError`
    where the system has no GPU.
    """
    device, rates = device_of(system), system.gpu
    assert rates is not None
    away = rates.remote_load
    net = Interconnect(
        ranks=ranks,
        bandwidth=rates.link_bandwidth,
        links=rates.links,
        latency=rates.link_latency,
        load_latency=device.load_latency + rates.link_latency if away is None else away,
        signal=rates.signal,
        barrier=rates.barrier,
        caches=rates.remote_caches or rates.multiprocessors,
    )
    launch = rates.graph_launch if graph else rates.launch
    return Machine(device, net, launch, rates.skew)
