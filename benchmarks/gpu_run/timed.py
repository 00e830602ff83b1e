"""Times alternatives in turns: comet's modules, and what users of torch would run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

import torch
from gpu_device.baselines import Baseline, baseline, baselines
from gpu_device.inputs import drawn
from gpu_device.references import KINDS, compared, reference
from gpu_device.timing import (
    DRY,
    Clock,
    GpuClock,
    Rounds,
    Timing,
    WallClock,
    Work,
    time_in_turns,
)

from comet.runtime.check import as_tuple
from comet.runtime.program import Program
from comet.runtime.virtual import Device
from gpu_run.checked import alone, fitting, verdict
from gpu_run.rank_runs import DeviceHost, host_of, on_device, ready
from gpu_run.results import Alternative, Times
from gpu_run.work import Order
from gpu_run.workers import sentence


@dataclass
class _Together:
    """What is to be timed, and what is known of each alternative."""

    found: dict[str, Alternative] = field(default_factory=dict[str, Alternative])
    works: dict[str, Work] = field(default_factory=dict[str, Work])
    graphs: dict[str, Work] = field(default_factory=dict[str, Work])
    """The works as captured graphs, of those that are captured already."""

    def prepare(
        self,
        name: str,
        make: Callable[[], Work],
        judged: Callable[[object], Alternative] = lambda result: Alternative(),
    ) -> None:
        """
        Make a work, do it once, and note what is judged of its result; or why it fails.

        One alternative that fails does not cost the case its other alternatives, unless
        it leaves the GPU in disorder: then this raises, too.
        """

        def done() -> Alternative:
            work = make()
            result = work()
            synchronize()
            self.works[name] = work
            return judged(result)

        try:
            self.found[name] = fitting(done)
        except Exception as error:
            synchronize()
            self.found[name] = Alternative(missing=sentence(error))

    def add_baselines(self, found: Iterable[Baseline]) -> None:
        """Take in what users of torch would run, or why it is missing."""
        for each in found:
            if each.work is None:
                self.found[each.name] = Alternative(missing=each.missing)
            else:
                self.works[each.name] = each.work
                self.found[each.name] = Alternative(partial=each.partial)
                if each.own_graph:
                    self.graphs[each.name] = each.work

    def note(self, condition: str, times: Mapping[str, Timing]) -> None:
        """Keep the times of all works in one condition."""
        for name, time in times.items():
            self.found[name].setdefault("times", {})[condition] = _figures(time)


def synchronize() -> None:
    """Wait for the GPU, if there is one; raises what its kernels did wrong."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(order: Order) -> dict[str, Alternative]:
    """Return the times of all alternatives of a case."""
    clock = WallClock() if order.dry_run else GpuClock()
    rounds = DRY if order.dry_run else Rounds(counted=order.rounds)
    if order.case.ranks == 1:
        return _timed_one(order, clock, rounds)
    # Launches are one of the costs that patterns differ in: eager times contain them.
    idle = WallClock() if order.dry_run else GpuClock(cover=0)
    clocks = {"eager": idle, "graph": clock}
    return on_device(order, lambda device: _timed_ranks(order, device, clocks, rounds))


def _timed_one(order: Order, clock: Clock, rounds: Rounds) -> dict[str, Alternative]:
    """Time a kernel of one rank, with a cold and with a warm L2, and compare it."""
    together = _Together()
    inputs: Sequence[torch.Tensor] = ()
    expected: torch.Tensor | None = None
    for name, path in order.modules().items():
        program = alone(path)
        if not inputs:
            inputs = _drawn(order, program)
            known = order.case.kind in KINDS
            expected = reference(order.case.kind, inputs) if known else None
        judged = partial(_judged, program, expected)
        together.prepare(name, partial(partial, program.launch, *inputs), judged)
    del expected
    if inputs and order.case.baselines != "none":
        wanted = baselines(order.case.kind, inputs, order.case.baselines)
        together.add_baselines(wanted.values())
    for condition, cold in (("cold", True), ("warm", False)):
        times = time_in_turns(together.works, clock, rounds, cold=cold)
        together.note(condition, times)
    return together.found


def _judged(
    program: Program, expected: torch.Tensor | None, result: object
) -> Alternative:
    """Return how far a result is from what is expected, if that is known."""
    if expected is None:
        return Alternative()
    (output,), (own,) = program.outputs, as_tuple(cast("torch.Tensor", result))
    return verdict(compared(own, expected, output, 0.0))


def _drawn(order: Order, program: Program) -> Sequence[torch.Tensor]:
    """Return the inputs of a case, the same for all its modules."""
    return drawn(program.inputs, order.case.seed, order.device, order.lengths)


def _timed_ranks(
    order: Order, device: Device, clocks: Mapping[str, Clock], rounds: Rounds
) -> dict[str, Alternative]:
    """Time the patterns of one program, launched one by one and as a graph."""
    together = _Together()
    hosts = {name: host_of(order, path) for name, path in order.modules().items()}
    for name, host in hosts.items():
        together.prepare(name, partial(_launches, together, device, name, host))
    if hosts and order.case.baselines != "none":
        host = next(iter(hosts.values()))
        together.add_baselines(bare(order.case.kind, host.drawn(0), order.case.ranks))
    for name in together.works.keys() - together.graphs.keys():
        together.graphs[name] = clocks["graph"].captured(together.works[name])
    for condition, works in (("eager", together.works), ("graph", together.graphs)):
        times = time_in_turns(works, clocks[condition], rounds, cold=True)
        together.note(condition, times)
    return together.found


def _launches(together: _Together, device: Device, name: str, host: DeviceHost) -> Work:
    """Return what launches a program for all ranks, and keep it as a graph too."""
    work = ready(device, host)
    work()  # a capture compiles nothing
    together.graphs[name] = device.captured(work)
    return work


def bare(kind: str, inputs: tuple[torch.Tensor, ...], ranks: int) -> Iterable[Baseline]:
    """
    Yield what one GPU would do for all ranks together.

    Of products that is one by cuBLAS, as large as those of all ranks.
    """
    if kind == "flash_decode":
        yield from baselines(kind, inputs).values()
        return
    a, b = inputs
    columns = b.repeat(1, ranks) if kind == "ag_gemm" else b
    yield replace(baseline("eager", "gemm", (a, columns)), name="product", partial=True)


def _figures(time: Timing) -> Times:
    return Times(median=time.median, lower=time.lower, upper=time.upper, n=time.n)
