"""Compares what modules compute with references."""

# Triton has no type stubs.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import torch
from gpu_device.inputs import drawn
from gpu_device.references import compared, reference
from triton.runtime.errors import OutOfResources

from comet.runtime.check import CheckResult, as_tuple, check
from comet.runtime.check_ranks import check_ranks
from comet.runtime.one_rank import one_rank
from comet.runtime.program import Program, load_module, program_of
from comet.runtime.rank_backends import backend
from comet.runtime.request import Request
from comet.runtime.virtual import Device
from gpu_run.rank_runs import EPOCHS, compared_ranks, host_of, in_order, on_device
from gpu_run.results import Alternative
from gpu_run.work import Order
from gpu_run.workers import sentence


def checked(order: Order) -> dict[str, Alternative]:
    """Return how far each module of a case is from its reference."""
    judges = {
        ("check", True): _check_of_one,
        ("check", False): _check_of_ranks,
        ("compare", True): _comparison_of_one,
        ("compare", False): _comparison_of_ranks,
    }
    judge = judges[order.case.task, order.case.ranks == 1]
    return {
        name: fitting(partial(judge, order, path))
        for name, path in order.modules().items()
    }


def fitting(work: Callable[[], Alternative]) -> Alternative:
    """Return what the work returns, or why the machine has no room for it."""
    try:
        return work()
    except (OutOfResources, torch.OutOfMemoryError) as error:
        return Alternative(missing=sentence(error))


def alone(path: str) -> Program:
    """Return the program of a module; `ValueError` where it is for several ranks."""
    program = one_rank(program_of(load_module(path), path))
    if program is None:
        raise ValueError(f"{path} is compiled for several ranks")
    return program


def _check_of_one(order: Order, path: str) -> Alternative:
    return verdict(check(alone(path), order.case.seed, order.device))


def _check_of_ranks(order: Order, path: str) -> Alternative:
    name, seed = "virtual" if order.dry_run else "gpu", order.case.seed
    launched, replayed = (
        check_ranks(path, seed, EPOCHS, backend(Request(path, name, seed, graph=graph)))
        for graph in (False, True)
    )
    return verdict(launched, replayed)


def _comparison_of_one(order: Order, path: str) -> Alternative:
    program = alone(path)
    inputs = drawn(program.inputs, order.case.seed, order.device, order.lengths)
    (result,) = as_tuple(program.launch(*inputs))
    (output,) = program.outputs
    expected = reference(order.case.kind, inputs)
    return verdict(compared(result, expected, output, 0.0))


def _comparison_of_ranks(order: Order, path: str) -> Alternative:
    host, kind = host_of(order, path), order.case.kind

    def body(device: Device) -> Alternative:
        launched = compared_ranks(device, host, kind, graph=False)
        replayed = compared_ranks(device, host, kind, graph=True)
        return in_order(device, verdict(worst(launched), worst(replayed)))

    return on_device(order, body)


def worst(results: Iterable[CheckResult]) -> CheckResult:
    """Return the result that is farthest from its reference, for its tolerance."""
    return max(results, key=lambda result: result.excess)


def verdict(launched: CheckResult, replayed: CheckResult | None = None) -> Alternative:
    """Return how far a module is from its reference, replays of a graph included."""
    farthest = launched if replayed is None else worst([launched, replayed])
    finite = math.isfinite(farthest.max_error)
    found = Alternative(
        error=farthest.max_error if finite else None,
        tolerance=farthest.tolerance,
        ok=farthest.ok,
    )
    if launched.ok and not farthest.ok:
        found["remark"] = "wrong only where a graph is replayed"
    return found
