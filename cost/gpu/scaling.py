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
    devices = {
        "tensor cores": replace(device, tensor=_times(device.tensor, factor)),
        "vector lanes": replace(device, vector=_times(device.vector, factor)),
        "shared memory": replace(device, clock=device.clock * factor),
        "L2 bandwidth": replace(device, l2_bandwidth=device.l2_bandwidth * factor),
        "HBM bandwidth": replace(device, hbm_bandwidth=device.hbm_bandwidth * factor),
        "load latency": replace(device, load_latency=device.load_latency / factor),
        "flag latency": replace(device, flag_latency=device.flag_latency / factor),
        "loop control time": replace(device, iteration=device.iteration / factor),
    }
    nets = {
        "link bandwidth": replace(net, bandwidth=net.bandwidth * factor),
        "link latency": replace(net, latency=net.latency / factor),
        "remote load time": replace(net, load_latency=net.load_latency / factor),
        "signal time": replace(net, signal=net.signal / factor),
        "barrier time": replace(net, barrier=net.barrier / factor),
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
