"""The kernels of a function: those of one choice, and what a search has chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Self

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.passes.schedule.fuse.gpu.groups import Partition, elementary_ops
from comet.passes.schedule.fuse.gpu.narrow import NarrowedProduct
from comet.passes.schedule.fuse.gpu.plan import PlanKernel, Step, plan_steps
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.tile_tree import Spatial


@dataclass(frozen=True)
class Fused:
    """A strategy, and the kernels into which it fuses a function."""

    func: FuncOp
    choice: Strategy
    partition: Partition
    plan: PlanKernel
    steps: tuple[Step, ...]
    cuts: int | None = None
    """How often kernels may still be cut in two, None if without a limit."""
    recomputed: frozenset[Operation] = frozenset()
    """The ops that every kernel recomputes instead of loading their results."""

    @classmethod
    def of(
        cls,
        func: FuncOp,
        choice: Strategy,
        partition: Partition,
        plan: PlanKernel,
        cuts: int | None = None,
        recomputed: frozenset[Operation] = frozenset(),
    ) -> Self:
        """Return the fused kernels, one for each group of a partition."""
        steps = plan_steps(func, partition, plan)
        return cls(func, choice, partition, plan, steps, cuts, recomputed)

    def with_partition(self, partition: Partition) -> Self:
        """Return the same with another partition."""
        steps = plan_steps(self.func, partition, self.plan)
        return replace(self, partition=partition, steps=steps)

    def with_casts(self, casts: Iterable[NarrowedProduct]) -> Self:
        """
        Return the same kernels, with the casts of the products that each computes.
        """
        changed = self._changed(cast.cast for cast in casts)
        return replace(changed, cuts=None)

    def undone(self, casts: Iterable[NarrowedProduct]) -> Self:
        """Return the same kernels, without casts that are removed again."""
        return self._changed(cast.undone for cast in casts)

    def _changed(
        self, changes: Iterable[Callable[[Iterable[Operation]], Iterable[Operation]]]
    ) -> Self:
        """Return the same kernels with changed ops; a kernel without ops is dropped."""
        partition = self.partition
        for change in changes:
            partition = tuple(tuple(change(group)) for group in partition)
        return self.with_partition(tuple(filter(None, partition)))

    def cut(self, partition: Partition) -> Self:
        """Return the kernels of `partition`, in which one kernel was cut in two."""
        left = None if self.cuts is None else self.cuts - 1
        return replace(self.with_partition(partition), cuts=left)

    @property
    def kernels(self) -> tuple[Spatial, ...]:
        """The steps that are kernels, in order."""
        return tuple(step for step in self.steps if isinstance(step, Spatial))


@dataclass(frozen=True)
class Narrowing:
    """The products that were tried as narrow ones, and those stored so, by name."""

    tried: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """The choice of a search, to be repeated for functions with the same text."""

    choice: Strategy
    narrowing: Narrowing
    groups: tuple[tuple[int, ...], ...]
    """
    The partition, as numbers of ops; the casts of narrow products are among these.
    """

    @classmethod
    def of(cls, fused: Fused, narrowing: Narrowing) -> Self:
        """Return the choice of kernels."""
        number = {op: index for index, op in enumerate(elementary_ops(fused.func))}
        groups = (tuple(number[op] for op in group) for group in fused.partition)
        return cls(fused.choice, narrowing, tuple(groups))
