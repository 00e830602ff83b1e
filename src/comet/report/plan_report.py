"""The page on a launch plan for GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from comet.codegen.taxes import MODEL
from comet.cost.gpu.spent import RESOURCES, Resource
from comet.cost.gpu.taxes import Taxes
from comet.report.numbers import BYTES, MICROSECONDS, conserved, percent
from comet.report.page import Folded, Part, Section, Table, note, table
from comet.report.plan_figures import Kernel, PlanFigures, by_tax
from comet.report.plots import Plot, stacked, waterfall
from comet.report.sections import (
    Pair,
    compare_section,
    more_section,
    occupancy_section,
    pairs,
    roofline_section,
    timeline_section,
)


def _us(seconds: float) -> str:
    return MICROSECONDS.text(seconds * 1e6)


def _in_microseconds(taxes: Taxes) -> dict[str, float]:
    return {name: 1e6 * seconds for name, seconds in by_tax(taxes).items()}


def facts_of_plan(figures: PlanFigures) -> dict[str, str]:
    """Return the headline: the latency, its bound, and the taxes."""
    latency, bound = figures.latency, figures.bound
    taxes = {
        f"{name}, us": f"{_us(seconds)} ({percent(seconds, latency)})"
        for name, seconds in by_tax(figures.whole).items()
    }
    return {
        "latency, us": _us(latency),
        "lower bound, us": _us(bound),
        "gap": percent(latency - bound, latency),
        **taxes,
    }


NOTE = (
    f"Times are {MODEL}, means over the ranks. No plan with these operations, inputs, "
    "results and messages is faster than the bound: one launch, and after it all "
    "operations at the peak, inputs and results once through device memory, or the "
    "messages at the full rate of the links, whichever is longest."
)
"""The assumptions behind the headline."""


def sections_of_plan(figures: PlanFigures, stem: str) -> Iterator[Section]:
    """Yield the sections on a launch plan; names of files start with `stem`."""
    yield Section("latency", "time", "Where the time goes", tuple(_time(figures)))
    yield timeline_section(
        figures.process,
        MICROSECONDS,
        stem,
        "",
        "All ranks, each in its row: kernels at work (busy), starting them (launch), "
        "waiting for other ranks and their flags, communication that no computation "
        "hides, and intermediates in device memory (locality).",
    )
    yield Section("bytes", "bytes", "Bytes", tuple(_bytes(figures)))
    yield Section("kernels", "kernels", "The kernels", tuple(_kernels(figures)))
    yield occupancy_section(
        figures.rooms,
        "One multiprocessor, with the programs of a kernel that it runs at the same "
        "time. What a program needs is estimated, not read from compiled code.",
    )
    if figures.roofline is not None:
        yield roofline_section(
            figures.roofline,
            "Each kernel that computes, over its own time without launch and waits. It "
            "has a place for the bytes of device memory, and one for those through L2. "
            "A fused multiply-add counts two operations, a function as the additions "
            "that take as long.",
        )
    yield more_section(
        {name: 1e6 * seconds for name, seconds in figures.gains.items()},
        1e6 * figures.latency,
        MICROSECONDS,
        "The same plan on GPUs with 10 % more of one rate, or with a time divided by "
        "1.1; another plan may gain more. Capacities are not here, as tiles stay as "
        "they are.",
    )


def _time(figures: PlanFigures) -> Iterator[Part]:
    bars = {name: _in_microseconds(taxes) for name, taxes in figures.steps.items()}
    draw = partial(waterfall, bars=bars, whole="latency", unit=MICROSECONDS)
    yield Plot("waterfall", 8, 1.4 + 0.3 * len(bars), draw)
    yield _steps(figures)
    yield note(
        "Microseconds, means over the ranks. Synchronization is barriers, waits, "
        "flags, and communication that no computation hides; locality is what "
        "intermediates in device memory add."
    )


def _steps(figures: PlanFigures) -> Table:
    """Return the taxes of each kernel and barrier."""
    rows = [_step(name, taxes, figures) for name, taxes in figures.steps.items()]
    total = sum(taxes.total for taxes in figures.steps.values())
    numbers = (_us(seconds) for seconds in by_tax(figures.whole).values())
    said = conserved(1e6 * total, 1e6 * figures.latency, "the latency")
    rows.append(("sum", *numbers, _us(total), said))
    head = ("kernel or barrier", *by_tax(figures.whole), "all, us", "part")
    return table(head, rows, sums=(len(rows) - 1,))


def _step(name: str, taxes: Taxes, figures: PlanFigures) -> tuple[str, ...]:
    numbers = (_us(seconds) for seconds in by_tax(taxes).values())
    return (name, *numbers, _us(taxes.total), percent(taxes.total, figures.latency))


def _bytes(figures: PlanFigures) -> Iterator[Part]:
    bars = figures.moved
    draw = partial(stacked, bars=bars, label="bytes")
    yield Plot("bytes", 8, 1.4 + 0.4 * len(bars), draw)
    yield _traffic(figures)
    yield note(
        "Of one rank. L2 is what programs load through it and store; device memory "
        "(HBM) is what of that L2 does not keep. Both have to be what the model "
        "prices. Links are what a rank pushes to all peers, or loads from them as "
        "often as it does; what is pushed has to be what the peers read."
    )


def _traffic(figures: PlanFigures) -> Table:
    device, net, traffic = figures.machine.device, figures.machine.net, figures.traffic
    bars = figures.moved
    rates = {
        "HBM": device.memory.hbm_bandwidth,
        "L2": device.memory.l2_bandwidth,
        "links": net.rate(net.peers),
    }
    pushed, read = sum(traffic.sent.values()), sum(traffic.received.values())
    said = {
        **{
            level: conserved(sum(bars[level].values()), priced, "the model")
            for level, priced in figures.priced.items()
        },
        "links": f"pushes {conserved(pushed, read, 'what peers read')}",
    }
    rows: list[tuple[str, ...]] = []
    sums: list[int] = []
    for level, moved in bars.items():
        for tensor, size in (*moved.items(), ("all", sum(moved.values()))):
            seconds = size / rates[level]
            part = percent(seconds, figures.latency)
            rows.append((level, tensor, f"{size:,.0f}", _us(seconds), part, ""))
        sums.append(len(rows) - 1)
        rows[-1] = (*rows[-1][:-1], said[level])
    head = ("level", "tensor", "bytes", "us at full rate", "of the latency", "check")
    return table(head, rows, words=(1, 5), sums=sums)


def _kernels(figures: PlanFigures) -> Iterator[Part]:
    head = ("kernel", "programs", "waves", "at a time", "warps", "stages")
    more = ("registers, bytes", "shared memory, bytes")
    yield table((*head, *more), [_kernel(kernel) for kernel in figures.kernels])
    yield note(
        "Programs at a time are those that one multiprocessor holds; registers and "
        "shared memory are those of one program."
    )
    spent = [kernel.spent for kernel in figures.kernels]
    used: list[Resource] = [
        name for name in RESOURCES if any(parts.get(name) for parts in spent)
    ]
    rows = [
        (kernel.name, *(_us(parts.get(name, 0.0)) for name in used))
        for kernel, parts in zip(figures.kernels, spent, strict=True)
    ]
    yield table(("us limited by", *used), rows)
    yield note(
        "The time of each kernel alone, divided among what limits it: where several "
        "overlap, the one that takes longest."
    )


def _kernel(kernel: Kernel) -> tuple[str, ...]:
    work = kernel.work
    needs, stages = work.needs, work.loops.stages
    counts = (work.programs, kernel.waves, kernel.occupancy, needs.warps, stages)
    rooms = (needs.registers, needs.shared)
    return kernel.name, *(f"{float(number):,.0f}" for number in (*counts, *rooms))


def compare_plans(mine: PlanFigures, name: str, other: PlanFigures) -> Section:
    """Return the section that compares this plan with another one, in file `name`."""
    both = (mine, other)
    taxes = _in_microseconds(mine.whole), _in_microseconds(other.whole)
    latencies = (1e6 * plan.latency for plan in both)
    bounds = (1e6 * plan.bound for plan in both)
    numbers = [
        Pair("latency", MICROSECONDS, *latencies),
        Pair("lower bound", MICROSECONDS, *bounds),
        *pairs(MICROSECONDS, *taxes),
        *(
            Pair(level, BYTES, *(sum(plan.moved[level].values()) for plan in both))
            for level in mine.moved
            if level in other.moved
        ),
    ]
    return compare_section(
        name,
        taxes,
        numbers,
        MICROSECONDS,
        note(f"This is {mine.title}; the other is {other.title}."),
        Folded("Where the time of the other goes", (_steps(other),)),
    )
