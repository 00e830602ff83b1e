"""A node of GPUs with more of one resource, for sensitivity analysis of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from comet.cost.gpu.launch_plan import Machine


def scaled_machines(machine: Machine, factor: float) -> Mapping[str, Machine]:
    """
    Return, for each resource by name, the machine with `factor` times as much of it.

    Times, such as that of a launch, are divided by `factor`. Capacities are left out:
    as the tiles stay, more capacity changes no price.
    """
    device, net = machine.device, machine.net
    units, memory, times = device.units, device.memory, device.times
    of_units = {
        "tensor cores": replace(units, tensor=_times(units.tensor, factor)),
        "vector lanes": replace(units, vector=_times(units.vector, factor)),
        "shared memory": replace(units, clock=units.clock * factor),
    }
    of_memory = {
        "L2 bandwidth": replace(memory, l2_bandwidth=memory.l2_bandwidth * factor),
        "HBM bandwidth": replace(memory, hbm_bandwidth=memory.hbm_bandwidth * factor),
    }
    of_times = {
        "load latency": replace(times, load_latency=times.load_latency / factor),
        "flag latency": replace(times, flag_latency=times.flag_latency / factor),
        "loop control time": replace(times, iteration=times.iteration / factor),
    }
    nets = {
        "link bandwidth": replace(net, bandwidth=net.bandwidth * factor),
        "link latency": replace(net, latency=net.latency / factor),
        "remote load time": replace(net, load_latency=net.load_latency / factor),
        "signal time": replace(net, signal=net.signal / factor),
        "barrier time": replace(net, barrier=net.barrier / factor),
    }
    devices = {
        **{name: replace(device, units=scaled) for name, scaled in of_units.items()},
        **{name: replace(device, memory=scaled) for name, scaled in of_memory.items()},
        **{name: replace(device, times=scaled) for name, scaled in of_times.items()},
    }
    return {
        **{name: replace(machine, device=scaled) for name, scaled in devices.items()},
        "launch time": replace(machine, launch=machine.launch / factor),
        **(
            {name: replace(machine, net=scaled) for name, scaled in nets.items()}
            if net.ranks > 1
            else {}
        ),
    }


def _times(rates: Mapping[str, float], factor: float) -> Mapping[str, float]:
    return {name: rate * factor for name, rate in rates.items()}
