"""The figures of one launch plan on GPUs by the cost model, as data with units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from comet.codegen.chrome_trace import Process, process_of
from comet.codegen.taxes import title_of
from comet.cost.from_ir.program import priced
from comet.cost.from_ir.traffic import Traffic, traffic_of
from comet.cost.gpu.bounds import any_plan_bound
from comet.cost.gpu.device import Device
from comet.cost.gpu.interconnect import remote_traffic
from comet.cost.gpu.kernel import (
    KernelTime,
    compute_time,
    kernel_time,
    occupancy_of,
    wave_count,
)
from comet.cost.gpu.launch_plan import Launch, LaunchNode, Machine, Plan
from comet.cost.gpu.scaling import scaled_machines
from comet.cost.gpu.spent import Resource
from comet.cost.gpu.taxes import Taxes, price_plan, taxes_by_step
from comet.cost.gpu.work import KernelWork
from comet.dialects.arch import attached_system
from comet.dialects.dataflow.program import programs_in
from comet.report.numbers import MORE, Mark, Roof, Roofline, Room, Stack, percent
from comet.tools.diagnostics import UsageError


@dataclass(frozen=True)
class Kernel:
    """One node on the launch grid."""

    name: str
    work: KernelWork
    time: KernelTime
    occupancy: int
    """Programs that run at a time on a multiprocessor."""
    waves: int

    @property
    def operations(self) -> float:
        """The operations of all programs; a function counts as several additions."""
        work = self.work
        per_program = work.operations.tensor + work.operations.vector
        return float(work.programs * per_program)

    @property
    def device_bytes(self) -> float:
        """The bytes of device memory that all programs load and store."""
        return float(self.work.moved.device)

    @property
    def l2_bytes(self) -> float:
        """The bytes that all programs load through L2 and store."""
        return float(self.work.programs * self.work.moved.l2)

    def peak(self, device: Device) -> float:
        """Return the operations per second if programs only compute."""
        return self.operations / float(
            self.work.programs * compute_time(self.work, device.units).seconds
        )

    @property
    def spent(self) -> Mapping[Resource, float]:
        """The seconds of each resource; their sum is the time of a launch."""
        return self.time.spent.divided(0)


@dataclass(frozen=True)
class PlanFigures:
    """The figures of one launch plan in a report; times are seconds."""

    title: str
    """The function, the number of its ranks, and their machine."""
    ranks: int
    whole: Taxes
    """Means over the ranks, which add up to the latency."""
    steps: Mapping[str, Taxes]
    """The same of each kernel and barrier."""
    bound: float
    """A lower bound of the latency."""
    kernels: tuple[Kernel, ...]
    traffic: Traffic
    priced: Mapping[str, float]
    """The bytes that the model prices of device memory and of L2."""
    loaded: Mapping[str, float]
    """The bytes that kernels load from peers, by channel."""
    flags: float
    """The bytes on the links to set flags."""
    machine: Machine
    rooms: tuple[Room, ...]
    roofline: Roofline | None
    """None if the kernels only move data."""
    gains: Mapping[str, float]
    """The latency with more of each resource."""
    process: Process

    @property
    def latency(self) -> float:
        """Seconds until the last rank has finished."""
        return self.whole.total

    @property
    def moved(self) -> dict[str, Stack]:
        """Bytes by memory level and tensor; links only if there are peers."""
        traffic = self.traffic
        links = {**traffic.sent, **self.loaded, "flags": self.flags}
        levels = {"HBM": traffic.device, "L2": traffic.l2}
        return {**levels, "links": links} if self.ranks > 1 else levels

    @property
    def bottleneck(self) -> str:
        """A sentence on the largest tax, its largest step, and the best gain."""
        taxes = by_tax(self.whole)
        name = max(taxes, key=lambda tax: taxes[tax])
        step = max(self.steps, key=lambda step: by_tax(self.steps[step])[name])
        share = by_tax(self.steps[step])[name]
        best = min(self.gains, key=lambda resource: self.gains[resource])
        saved = percent(self.latency - self.gains[best], self.latency)
        return (
            f"The largest part of the latency is {name} "
            f"({percent(taxes[name], self.latency)}), most of it in {step} "
            f"({percent(share, self.latency)}); what helps most is {best}: 10 % "
            f"better saves {saved}."
        )


def by_tax(taxes: Taxes) -> dict[str, float]:
    """Return the seconds of work, and of each tax."""
    return {
        "busy": taxes.busy,
        "launch": taxes.launch,
        "synchronization": taxes.synchronization,
        "locality": taxes.locality,
    }


def plan_figures_of(module: ModuleOp) -> PlanFigures:
    """
    Return the figures of the launch plan in a module.

    Raises UsageError if there are none or several, CostError if it cannot be priced.
    """
    programs = programs_in(module)
    if len(programs) != 1:
        raise UsageError(
            f"the module has {len(programs)} launch plans; a report is about one, as "
            "triton-distributed{to=dataflow} makes of one function"
        )
    (program,) = programs
    system = attached_system(module)
    price = priced(program, system)
    plan, machine, timeline = price.plan, price.machine, price.timeline
    traffic = traffic_of(program, system)
    kernels = tuple(_kernels(plan, machine))
    title = title_of(program, system)
    steps = taxes_by_step(timeline)
    return PlanFigures(
        title=title,
        ranks=timeline.ranks,
        whole=price.taxes,
        steps=steps,
        bound=any_plan_bound(plan, machine, traffic.tensor_bytes),
        kernels=kernels,
        traffic=traffic,
        priced=_priced(plan),
        loaded=_loaded(kernels, plan, machine),
        flags=_flags(plan, machine),
        machine=machine,
        rooms=tuple(_rooms(kernels, machine)),
        roofline=_roofline(kernels, machine),
        gains={
            name: price_plan(plan, more).total
            for name, more in scaled_machines(machine, MORE).items()
        },
        process=process_of(title, timeline),
    )


def _nodes(plan: Plan) -> Iterator[LaunchNode]:
    for step in plan:
        if isinstance(step, Launch):
            yield from step.nodes


def _kernels(plan: Plan, machine: Machine) -> Iterator[Kernel]:
    device = machine.device
    for node in _nodes(plan):
        occupancy = occupancy_of(node.work, device)
        waves = wave_count(node.work.programs, device.multiprocessors * occupancy)
        time = kernel_time(node.work, device)
        yield Kernel(node.name, node.work, time, int(occupancy), int(waves))


def _priced(plan: Plan) -> dict[str, float]:
    """Return the bytes of device memory and of L2 that the model prices."""
    works = [node.work for node in _nodes(plan)]
    moved = sum(float(work.programs * work.moved.l2) for work in works)
    stored = sum(float(work.moved.device) for work in works)
    libraries = sum(getattr(step, "intermediates", 0.0) for step in plan)
    return {"HBM": stored + libraries, "L2": moved}


def _loaded(
    kernels: tuple[Kernel, ...], plan: Plan, machine: Machine
) -> dict[str, float]:
    """Return the bytes that kernels load from peers, by channel; repeats count."""
    loaded: dict[str, float] = {}
    for kernel, node in zip(kernels, _nodes(plan), strict=True):
        for receive in node.receives:
            if receive.remote:
                moved = remote_traffic(
                    receive.message, receive.again, kernel.waves, machine.net
                )
                name = receive.channel.rpartition(" ")[0]
                loaded[name] = loaded.get(name, 0.0) + float(moved)
    return loaded


def _flags(plan: Plan, machine: Machine) -> float:
    net = machine.net
    return sum(
        float(node.work.programs) * net.flag_bytes * net.peers
        for node in _nodes(plan)
        for send in node.sends
        if send.signals
    )


def _rooms(kernels: tuple[Kernel, ...], machine: Machine) -> Iterator[Room]:
    """Yield the use of one multiprocessor by the programs of each kernel."""
    device = machine.device
    for kernel in kernels:
        work = kernel.work
        waves = wave_count(work.programs, device.multiprocessors)
        count = min(kernel.occupancy, int(waves))
        for what, capacity, used, unit in (
            ("registers", device.limits.register_bytes, work.needs.registers, "bytes"),
            ("shared memory", device.limits.shared_bytes, work.needs.shared, "bytes"),
            ("warps", device.limits.warps, work.needs.warps, "warps"),
        ):
            here = {f"program {n + 1}": float(used) for n in range(count)}
            yield Room(f"{kernel.name}: {what}", capacity, here, unit)


def _roofline(kernels: tuple[Kernel, ...], machine: Machine) -> Roofline | None:
    """Return the roofline with a point for each kernel, over its own time."""
    device = machine.device
    computing = [kernel for kernel in kernels if kernel.operations]
    if not computing:
        return None
    peak = max(kernel.peak(device) for kernel in computing)
    moved = {
        "HBM": [k.device_bytes for k in computing],
        "L2": [k.l2_bytes for k in computing],
    }
    rates = {"HBM": device.memory.hbm_bandwidth, "L2": device.memory.l2_bandwidth}
    roofs = (
        Roof(level, rates[level], tuple(map(_mark, computing, sizes)))
        for level, sizes in moved.items()
    )
    return Roofline("kernels", "second", peak, tuple(roofs))


def _mark(kernel: Kernel, moved: float) -> Mark:
    operations = kernel.operations
    seconds = float(kernel.time.seconds) - float(kernel.time.launch)
    return Mark(kernel.name, operations / moved, operations / seconds)
