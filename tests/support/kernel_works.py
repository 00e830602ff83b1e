"""The work of kernels with some numbers changed, for tests of their times."""

from __future__ import annotations

from dataclasses import replace

from comet.cost.gpu.work import KernelWork
from comet.cost.reals import Real


def computing(work: KernelWork, **changes: Real | str) -> KernelWork:
    """Return a work with other `operations`."""
    return replace(work, operations=replace(work.operations, **changes))


def moving(work: KernelWork, **changes: Real) -> KernelWork:
    """Return a work that moves other bytes."""
    return replace(work, moved=replace(work.moved, **changes))


def looping(work: KernelWork, **changes: Real) -> KernelWork:
    """Return a work with other loops."""
    return replace(work, loops=replace(work.loops, **changes))


def needing(work: KernelWork, **changes: Real) -> KernelWork:
    """Return a work whose programs need something else."""
    return replace(work, needs=replace(work.needs, **changes))
