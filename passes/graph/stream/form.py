"""The interface of a streaming form: the statistics it covers, and its fold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from comet.dialects.blocks import backward_slice
from comet.dialects.compound import MapKind, MapOp, ReduceKind, ReduceOp, YieldOp
from comet.passes.graph.emitter import Emitter

IterArgs = Sequence[SSAValue]
"""The running statistics, one value each."""
Chunks = Sequence[SSAValue]
"""The inputs of a step: one chunk of each input."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of one value over one dimension that a single fold can compute."""

    form: StreamForm
    inputs: tuple[SSAValue, ...]
    """The inputs of the fold."""
    replaced: tuple[SSAValue | None, ...]
    """For each result of the form, the value that it replaces, if there is one."""
    ops: tuple[Operation, ...]
    """
    The ops that compute them, the first reduction first; the fold makes most unused.
    """


class StreamForm(ABC):
    """A kind of statistics and its running form, which is correct for any chunks."""

    name: str
    iter_args: tuple[str, ...]
    """The names of the iter_args, in order."""
    counts: bool = False
    """Whether an iter_arg is a number, the count of elements, which all rows share."""
    inputs: tuple[str, ...] = ("x",)
    """The names of the values that a fold reads, in order."""

    @abstractmethod
    def match(self, first: ReduceOp, dim: str) -> Statistics | None:
        """Return the statistics over `dim` that begin with `first`, or None."""

    @abstractmethod
    def init(self, emit: Emitter, found: Statistics) -> IterArgs:
        """Return the statistics of no elements."""

    @abstractmethod
    def step(self, emit: Emitter, dim: str, chunks: Chunks, now: IterArgs) -> IterArgs:
        """Return the statistics with one more chunk of every input."""

    @abstractmethod
    def merge(self, emit: Emitter, one: IterArgs, other: IterArgs) -> IterArgs:
        """Return the statistics of the union of two sets, of which one may be empty."""

    @abstractmethod
    def join(self, emit: Emitter, dim: str, sets: IterArgs) -> IterArgs:
        """Return the statistics of the union of all sets, which are along `dim`."""

    def results(self, emit: Emitter, last: IterArgs) -> IterArgs:
        """
        Return the results of the last iter_args; the iter_args themselves by default.
        """
        return last

    def step_region(
        self, dim: str, chunks: Sequence[Attribute], iter_args: Sequence[Attribute]
    ) -> Region:
        """Return the step of a fold of this form."""
        block, count = Block(arg_types=[*chunks, *iter_args]), len(chunks)
        old = [f"{name}_old" for name in self.iter_args]
        name_values(block.args, [*self.inputs, *old])
        now = self.step(Emitter(block), dim, block.args[:count], block.args[count:])
        block.add_op(YieldOp(*now))
        return Region(block)

    def merge_region(self, iter_args: Sequence[Attribute]) -> Region:
        """Return the merge of a fold of this form."""
        block = Block(arg_types=[*iter_args, *iter_args])
        sides = ("one", "other")
        names = [f"{name}_{side}" for side in sides for name in self.iter_args]
        name_values(block.args, names)
        one, other = block.args[: len(iter_args)], block.args[len(iter_args) :]
        block.add_op(YieldOp(*self.merge(Emitter(block), one, other)))
        return Region(block)

    def join_region(
        self, dim: str, stacks: Sequence[Attribute], iter_args: Sequence[Attribute]
    ) -> Region:
        """Return the step of a fold that joins the sets that are along `dim`."""
        block, count = Block(arg_types=[*stacks, *iter_args]), len(iter_args)
        names = [f"{name}_{part}" for part in ("set", "old") for name in self.iter_args]
        name_values(block.args, names)
        emit = Emitter(block)
        joined = self.join(emit, dim, block.args[:count])
        block.add_op(YieldOp(*self.merge(emit, block.args[count:], joined)))
        return Region(block)


def name_values(values: Sequence[SSAValue], names: Sequence[str | None]) -> None:
    """Give every value a name hint."""
    for value, name in zip(values, names, strict=True):
        value.name_hint = name


def map_users(value: SSAValue, kind: MapKind) -> Iterator[MapOp]:
    """Yield the maps of a kind that use `value`, each once."""
    users = dict.fromkeys(use.operation for use in value.uses)
    for user in users:
        if isinstance(user, MapOp) and user.kind.data == kind:
            yield user


def sums_over(value: SSAValue, dim: str) -> Iterator[ReduceOp]:
    """Yield the sums of `value` over `dim` alone."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, ReduceOp) and is_reduction(user, ReduceKind.ADD, dim):
            yield user


def is_reduction(op: ReduceOp, kind: ReduceKind, dim: str) -> bool:
    """Return whether `op` reduces by `kind` over `dim` alone."""
    return op.kind.data == kind and op.reduced == (dim,)


def needed(value: SSAValue, results: set[SSAValue]) -> SSAValue | None:
    """Return a value of `results` in the backward slice of `value`, if any."""
    return next((each for each in backward_slice(value) if each in results), None)
