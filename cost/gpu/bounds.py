"""Lower bounds of the latency of a launch plan."""

from __future__ import annotations

from comet.cost.gpu.interconnect import body_time, send_time
from comet.cost.gpu.kernel import compute_time, kernel_time
from comet.cost.gpu.launch_plan import Launch, Machine, Part, Plan
from comet.cost.reals import total


def plan_bound(plan: Plan, machine: Machine) -> float:
    """
    Return a lower bound of the latency of a plan, however its messages are cut.

    The kernels of a rank follow each other. Each takes at least the time of its nodes
    alone, or of its messages on the links; a kernel that also copies counts only by
    these, as the cut changes its tiles.
    """
    return sum(
        machine.launch + max(_alone(step, machine), _on_links(step, machine))
        for step in plan
        if isinstance(step, Launch)
    )


def _alone(step: Launch, machine: Machine) -> float:
    """Return the seconds of a kernel's nodes without waits and peers."""
    if any(part.copies for part in step.parts):
        return 0.0
    times = (kernel_time(part.work, machine.device) for part in step.parts)
    return float(total(body_time(time) for time in times))


def program_bound(plan: Plan, machine: Machine, least_bytes: float) -> float:
    """
    Return a lower bound of the latency of any plan with these operations and messages.

    `least_bytes` are those of the inputs and results. A rank starts at least one
    kernel, and after it none of its resources is faster than its rate: programs compute
    at most at the peak, inputs and results cross device memory at least once, and what
    a kernel sends to its peers, or loads from them, crosses the links.
    """
    launches = [step for step in plan if isinstance(step, Launch)]
    parts = [part for step in launches for part in step.parts]
    computing = total(
        part.work.programs * compute_time(part.work, machine.device) for part in parts
    )
    crossing = (max(map(_crosses_links, step.parts), default=0.0) for step in launches)
    sending = sum(float(send_time(message, machine.net)) for message in crossing)
    memory = least_bytes / machine.device.hbm_bandwidth
    return machine.launch + max(float(computing), memory, sending)


def _crosses_links(part: Part) -> float:
    """Return the bytes to each peer, or from it; links carry both at the same time."""
    sent = sum(send.message for send in part.sends if send.remote)
    return max(sent, sum(each.message for each in part.receives if each.remote))


def _on_links(step: Launch, machine: Machine) -> float:
    """Return the seconds that the links take for the messages of one node."""
    messages = (
        sum(send.message for send in part.sends if send.remote) for part in step.parts
    )
    return float(send_time(max(messages, default=0.0), machine.net))
