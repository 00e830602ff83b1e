"""
The graph of kernels that priority fusion merges: groups of ops, views and collectives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Self, TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import (
    ContractOp,
    Elementwise,
    FoldOp,
)
from comet.dialects.compound.dims import names_of
from comet.digraph import reachable, topological_order
from comet.passes.analysis.op_groups import BlockSizes, connected, defining_ops
from comet.passes.dataflow.launches import Dependences
from comet.passes.schedule.fuse.gpu.groups import (
    Group,
    Kernel,
    Partition,
    Values,
    inputs_of,
    is_kernel,
)
from comet.passes.schedule.fuse.gpu.scatters import meet_in_memory, scatters_of, units

REUSING = (ContractOp, FoldOp)
"""Ops that may read a tile several times, and would recompute it each time."""

Groups: TypeAlias = tuple[Group, ...]

State: TypeAlias = tuple[dict[Operation, Group], dict[Group, Groups]]


class _HashedOnce(tuple[Operation, ...]):
    """A group of ops that is looked up often: its hash would visit each op."""

    _hash: int

    def __new__(cls, ops: Iterable[Operation]) -> Self:
        group = super().__new__(cls, ops)
        group._hash = super().__hash__(group)
        return group

    def __hash__(self) -> int:
        return self._hash


class KernelGraph:
    """
    A graph of groups of ops: kernels, views and collectives.

    Ops of `recomputed` are in each group that needs them, and form no group themselves.
    """

    def __init__(self, ops: Sequence[Operation], recomputed: AbstractSet[Operation]):
        self._recomputed = recomputed
        self._position = {op: index for index, op in enumerate(ops)}
        self._scatters = bool(scatters_of(ops))
        self._group_of = dict[Operation, Group]()
        self._merged_from: dict[Group, Groups] = {}
        """The groups that each merged group consists of."""
        self._users_of: dict[SSAValue, frozenset[Operation]] = {}
        self._outputs: dict[Group, Values] = {}
        self._inputs = cache(inputs_of)
        self._sizes = cache(BlockSizes(ops).of)
        self._read_from: dict[Group, tuple[Operation, ...]] = {}
        self._read_by: dict[Group, tuple[Operation, ...]] = {}
        """The ops whose results a group reads, and those that read its results."""
        self._numbers: dict[Group, int] = {}
        """Topological numbers: producers have lower ones than consumers, if known."""
        for unit in units(ops):
            self.add(unit)

    # What there is.

    def kernels(self) -> Iterator[Group]:
        """Yield the groups that are kernels, not views or collectives."""
        return filter(is_kernel, self._groups())

    def merged(self, one: Group, other: Group) -> Group:
        """Return the ops of two groups, in program order."""
        return self._in_order({*one, *other})

    def can_merge(self, one: Group, other: Group) -> bool:
        """Return whether both are there, and may be one kernel."""
        return (
            one != other
            and self._exists(one)
            and self._exists(other)
            and not self._sizes(one).conflicts_with(self._sizes(other))
            and not (self._scatters and meet_in_memory(one, other))
            and not self._passes_third(one, other)
            and not self._passes_third(other, one)
        )

    def outputs_of(self, group: Group) -> Values:
        """Return the results of a group that other groups use."""
        if (found := self._outputs.get(group)) is None:
            inside = set(group)
            self._outputs[group] = found = tuple(
                result
                for op in self._not_recomputed(group)
                for result in op.results
                if not inside.issuperset(self._used_by(result))
            )
        return found

    def neighbours(self, group: Group, *, later: bool = False) -> Iterator[Group]:
        """
        Yield the producers and consumers of `group`, and kernels with a common input.

        With `later` only those whose first op comes after that of `group`.
        """
        siblings = self._groups_of(self._users(self._inputs(group)))
        found = dict.fromkeys(
            (*self._producers(group), *siblings, *self._consumers(group))
        )
        found.pop(group, None)
        start = self._position[self._first(group)]
        for other in filter(is_kernel, found):
            if not later or self._position[self._first(other)] > start:
                yield other

    def dependences(self) -> Dependences[Kernel]:
        """Return the kernels with their outputs, and those that each one reads from."""
        groups = filter(is_kernel, self.partition())
        kernels = {group: (group, self.outputs_of(group)) for group in groups}
        read = {
            kernel: frozenset(kernels[each] for each in self._kernels_before(group))
            for group, kernel in kernels.items()
        }
        return Dependences(tuple(read), read)

    def partition(self) -> Partition:
        """Return the groups in an order in which producers come first."""
        groups = sorted(self._groups(), key=lambda group: self._position[group[-1]])
        return tuple(topological_order(groups, self._producers))

    def epilogues(self) -> Iterator[Group]:
        """
        Yield the elementwise ops that could end a kernel of products.

        They are a chain: each op is the only user of the result before it, and has its
        dimensions. The chain begins with a value that the kernel stores, and another
        kernel has it, with more ops.
        """
        for group in self.kernels():
            if any(isinstance(op, ContractOp) for op in group):
                for value in self.outputs_of(group):
                    chain = tuple(self._chain_after(value))
                    if chain and set(chain) != set(
                        self._not_recomputed(self._group_of[chain[0]])
                    ):
                        yield chain

    # How it changes.

    def add(self, ops: Iterable[Operation]) -> None:
        """Make ops a group, with the recomputed ops that they need."""
        kept = [op for op in ops if op not in self._recomputed]
        read = (value for op in kept for value in op.operands)
        if kept:
            self._set(self._in_order({*kept, *defining_ops(read, self._recomputed)}))

    def merge(self, one: Group, other: Group) -> Group:
        """Merge two groups; return the merged one."""
        merged = self._join(one, other)
        self._merged_from[merged] = one, other
        return merged

    def undo(self, group: Group) -> Groups:
        """
        Undo the merge that made `group`; return the two groups.

        Empty if there was no merge, or there is no such group any more.
        """
        merged = self._merged_from.get(group, ()) if self._exists(group) else ()
        for each in merged:
            self._set(each)
        return merged

    def redo(self, group: Group) -> None:
        """Take back `undo`."""
        self._set(group)

    def separate(self, group: Group) -> Groups:
        """
        Make products that only have inputs in common kernels of their own.

        Each has its epilogue. Returns these kernels; empty if there is only one, or if
        ops that do not depend on the others have no product and no fold.
        """
        apart = connected(self._not_recomputed(group))
        have_products = (any(isinstance(op, REUSING) for op in ops) for ops in apart)
        if len(apart) < 2 or not all(have_products):
            return ()
        for ops in apart:
            self.add(ops)
        return tuple(self._group_of[ops[0]] for ops in apart)

    def state(self) -> State:
        """Return the state to which `restore` goes back."""
        return dict(self._group_of), dict(self._merged_from)

    def restore(self, state: State) -> None:
        """Go back to a former state."""
        self._group_of, self._merged_from = state
        self._numbers = {}

    def move(self, ops: Group) -> Groups:
        """
        Move ops of a kernel to the only other kernel that computes their operands.

        Returns the two kernels after that; empty if it is not legal.
        """
        kernel = self._not_recomputed(self._group_of[ops[0]])
        rest = [op for op in kernel if op not in ops]
        if not rest:
            return ()
        self.add(ops)
        self.add(rest)
        moved, left = self._group_of[ops[0]], self._group_of[rest[0]]
        producers = self._producers(moved)
        if left in producers or len(producers) != 1:
            return ()
        (producer,) = producers
        if not self._merge_if_legal(moved, producer):
            return ()
        return self._group_of[ops[0]], left

    def add_epilogues(self) -> None:
        """
        Merge each elementwise op with the only producer it has, if it is the only user.

        Its recomputed ops must not read inputs that the producer does not read.
        """
        for op in self._group_of:
            group, producers = self._group_of[op], self._producers((op,))
            if isinstance(op, Elementwise) and len(producers) == 1:
                (producer,) = producers
                recomputed = tuple(each for each in group if each in self._recomputed)
                if not set(inputs_of(recomputed)).issubset(inputs_of(producer)):
                    continue
                read = [value for value in op.operands if value.owner in producer]
                if all(_is_only_for(value, op) for value in read):
                    self._merge_if_legal(group, producer)

    def add_prologues(self) -> None:
        """Merge elementwise ops with the only op that reads them."""
        for op in reversed(self._group_of):
            group = self._group_of[op]
            consumers = self._consumers(group)
            if (
                all(isinstance(each, Elementwise) for each in group)
                and len(consumers) == len(self.outputs_of(group)) == 1
                and not any(isinstance(each, REUSING) for each in consumers[0])
            ):
                self._merge_if_legal(group, consumers[0])

    # Helpers.

    def _groups(self) -> tuple[Group, ...]:
        # All ops of a group have the same tuple, and a hash of it would visit them.
        return tuple({id(group): group for group in self._group_of.values()}.values())

    def _exists(self, group: Group) -> bool:
        return self._group_of[self._first(group)] == group

    def _in_order(self, ops: Iterable[Operation]) -> Group:
        return _HashedOnce(sorted(ops, key=self._position.__getitem__))

    def _set(self, group: Group) -> None:
        """Make `group` the group of its ops."""
        self._group_of.update(dict.fromkeys(self._not_recomputed(group), group))
        self._numbers = {}

    def _join(self, one: Group, other: Group) -> Group:
        """
        Make two groups one; return it.

        It gets the number of one of them if the others can keep theirs.
        """
        numbers, merged = self._numbers, self.merged(one, other)
        self._set(merged)
        if numbers:
            low, high = sorted((numbers.pop(one), numbers.pop(other)))
            if all(numbers[each] > high for each in self._consumers(merged)):
                self._numbers, numbers[merged] = numbers, high
            elif all(numbers[each] < low for each in self._producers(merged)):
                self._numbers, numbers[merged] = numbers, low
        return merged

    def _merge_if_legal(self, group: Group, kernel: Group) -> bool:
        """
        Merge a group with a kernel; return whether that is legal.

        `undo` leaves them merged.
        """
        legal = is_kernel(kernel) and self.can_merge(group, kernel)
        if legal:
            self._join(group, kernel)
        return legal

    def _not_recomputed(self, group: Group) -> tuple[Operation, ...]:
        """Return the ops of a group that are in no other."""
        return tuple(op for op in group if op not in self._recomputed)

    def _first(self, group: Group) -> Operation:
        """Return the first op that is in no other group: it identifies the group."""
        return next(op for op in group if op not in self._recomputed)

    def _used_by(self, value: SSAValue) -> frozenset[Operation]:
        """Return the ops that use a value, directly or through recomputed ops."""
        if value not in self._users_of:
            found = set[Operation]()
            for user in (use.operation for use in value.uses):
                if user in self._recomputed:
                    found.update(*map(self._used_by, user.results))
                else:
                    found.add(user)
            self._users_of[value] = frozenset(found)
        return self._users_of[value]

    def _producers(self, group: Group) -> tuple[Group, ...]:
        """Return the groups that compute what `group` reads."""
        if (ops := self._read_from.get(group)) is None:
            owners = dict.fromkeys(value.owner for value in self._inputs(group))
            ops = tuple(
                op
                for op in owners
                if isinstance(op, Operation) and op in self._group_of
            )
            self._read_from[group] = ops
        return self._groups_of(ops)

    def _kernels_before(self, group: Group) -> Iterator[Group]:
        """Yield the kernels that `group` reads from, directly or through views."""
        for producer in self._producers(group):
            if is_kernel(producer):
                yield producer
            else:
                yield from self._kernels_before(producer)

    def _consumers(self, group: Group) -> tuple[Group, ...]:
        """Return the groups that read what `group` computes."""
        if (ops := self._read_by.get(group)) is None:
            inside = set(group)
            users = self._users(self.outputs_of(group))
            self._read_by[group] = ops = tuple(op for op in users if op not in inside)
        return self._groups_of(ops)

    def _users(self, values: Iterable[SSAValue]) -> list[Operation]:
        """Return the ops that read one of `values`, in program order."""
        users = set[Operation]().union(*map(self._used_by, values))
        return sorted(users & self._position.keys(), key=self._position.__getitem__)

    def _groups_of(self, ops: Iterable[Operation]) -> tuple[Group, ...]:
        """Return the groups of ops, each once."""
        return tuple(dict.fromkeys(self._group_of[op] for op in ops))

    def _passes_third(self, source: Group, target: Group) -> bool:
        """Return whether `target` depends on `source` through another group."""
        last = self._number(target)

        def consumers(group: Group) -> Sequence[Group]:
            return self._consumers(group) if self._number(group) < last else ()

        others = (group for group in self._consumers(source) if group != target)
        return target in reachable(others, consumers)

    def _number(self, group: Group) -> int:
        """Return the topological number of a group."""
        if not self._numbers:
            self._numbers = {each: index for index, each in enumerate(self.partition())}
        return self._numbers[group]

    def _chain_after(self, value: SSAValue) -> Iterator[Operation]:
        """Yield the elementwise ops of one group that only read `value`, in a chain."""
        group: Group | None = None
        while len(users := self._used_by(value)) == 1:
            (op,) = users
            group_of_op = self._group_of.get(op, ())
            ends = not isinstance(op, Elementwise) or not _same_dims(value, op)
            if ends or group_of_op != (group or group_of_op):
                return
            yield op
            group, value = group_of_op, op.results[0]


def _is_only_for(value: SSAValue, op: Operation) -> bool:
    """Return whether only `op` reads a value, and has the same dimensions."""
    return _same_dims(value, op) and all(use.operation is op for use in value.uses)


def _same_dims(value: SSAValue, op: Operation) -> bool:
    """Return whether the result of an op has the dimensions of a value."""
    return set(names_of(value)) == set(names_of(op.results[0]))
