"""Lower bounds of the latency of a launch plan."""

from __future__ import annotations

from comet.cost.gpu.interconnect import body_time, send_time, source_waiting
from comet.cost.gpu.kernel import compute_time, kernel_time
from comet.cost.gpu.launch_plan import Launch, LaunchNode, Machine, Plan
from comet.cost.reals import total


def plan_bound(plan: Plan, machine: Machine) -> float:
    """
    Return a lower bound of the latency (seconds) of a plan, for any cut of messages.

    The kernels of a rank run one after another. Each takes at least the time of its
    nodes without waiting, and that of its messages on the links. A kernel that copies
    counts only by its messages, as the cut changes its tiles.
    """
    return sum(
        machine.launch + max(_without_waits(step, machine), _on_links(step, machine))
        for step in plan
        if isinstance(step, Launch)
    )


def _without_waits(step: Launch, machine: Machine) -> float:
    """Return the seconds of a kernel's nodes without waits, 0 if it copies."""
    if any(node.copies for node in step.nodes):
        return 0.0
    return sum(_least_body(node, machine) for node in step.nodes)


def _least_body(node: LaunchNode, machine: Machine) -> float:
    """
    Return the seconds of a node that waits for no other rank.

    If it receives, a cut of messages may decide whether its loop visits one source
    after another: that fills the pipeline more often, and waits less outside of it.
    """
    work, device = node.work, machine.device
    times = [kernel_time(work, device)]
    if node.receives:
        turns = source_waiting(work, device, machine.net, remote=False)
        times.append(kernel_time(work, device, turns))
    return min(float(body_time(time)) for time in times)


def any_plan_bound(plan: Plan, machine: Machine, tensor_bytes: float) -> float:
    """
    Return a lower bound of the latency of any plan with these operations and messages.

    `tensor_bytes` are the bytes of the inputs and results. A rank launches at least one
    kernel; then products run at most at the peak, inputs and results go through device
    memory at least once, and values that a kernel sends to peers, or loads from them,
    cross the links.
    """
    launches = [step for step in plan if isinstance(step, Launch)]
    nodes = [node for step in launches for node in step.nodes]
    units = machine.device.units
    computing = total(
        node.work.programs * compute_time(node.work, units).seconds for node in nodes
    )
    crossing = (max(map(_crosses_links, step.nodes), default=0.0) for step in launches)
    sending = sum(float(send_time(message, machine.net)) for message in crossing)
    memory = tensor_bytes / machine.device.memory.hbm_bandwidth
    return machine.launch + max(float(computing), memory, sending)


def _crosses_links(node: LaunchNode) -> float:
    """Return the larger of the bytes to and from each peer: links are full duplex."""
    sent = sum(send.message for send in node.sends if send.remote)
    received = sum(load.message for load in node.receives if load.remote)
    return max(sent, received)


def _on_links(step: Launch, machine: Machine) -> float:
    """Return the seconds that the links take for the messages of one node."""
    messages = (
        sum(send.message for send in node.sends if send.remote) for node in step.nodes
    )
    return float(send_time(max(messages, default=0.0), machine.net))
