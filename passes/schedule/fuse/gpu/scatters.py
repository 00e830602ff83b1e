"""
`compound.scatter_add` in kernels: results are added to the rows that ids name.

As a gather changes the addresses of loads, a scatter changes those of stores, which
become atomic additions. It belongs to the kernel that computes the added values; these
values, not the sums, are results of the tile tree. The sums are complete only when the
launch has ended, and the ids must be in memory before it starts: a kernel neither reads
sums that it scatters nor computes their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError
from itertools import chain

from xdsl.ir import Operation, OpResult, SSAValue

from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import FillOp, ScatterAddOp, View
from comet.dialects.compound.gather import scatterings
from comet.dialects.errors import OpError
from comet.digraph import topological_order
from comet.passes.schedule.tile_tree import Spatial


def scatters_of(ops: Iterable[Operation]) -> tuple[ScatterAddOp, ...]:
    """Return the scatters among `ops`."""
    return tuple(op for op in ops if isinstance(op, ScatterAddOp))


def without_scatters(ops: Iterable[Operation]) -> tuple[Operation, ...]:
    """Return `ops` without scatters, as a tile tree has them."""
    return tuple(op for op in ops if not isinstance(op, ScatterAddOp))


def computed(values: Iterable[SSAValue]) -> tuple[SSAValue, ...]:
    """Return the results of a tile tree for the values that its kernel stores."""
    found = (v.owner.values if isinstance(v.owner, ScatterAddOp) else v for v in values)
    return tuple(dict.fromkeys(found))


def with_scatters(op: Operation) -> tuple[Operation, ...]:
    """Return an op and the scatters of its results."""
    return (op, *chain.from_iterable(map(scatterings, op.results)))


def stored_by(kernel: Spatial) -> Iterator[SSAValue]:
    """Yield the values that a kernel stores; for a scattered value, the sums."""
    for value in kernel.outs:
        sums, inside = scatterings(value), set(kernel.ops)
        if not sums or any(op not in inside.union(sums) for op in _readers(value)):
            yield value
        yield from (op.result for op in sums)


def _readers(value: SSAValue) -> Iterator[Operation | None]:
    """Yield the ops that read a value, also in the regions of their steps."""
    for use in value.uses:
        block = value.owner.parent_block() if isinstance(value, OpResult) else None
        op = use.operation
        yield op if block is None else block.find_ancestor_op_in_block(op)


def after_their_values(ops: Sequence[Operation]) -> tuple[Operation, ...]:
    """
    Return `ops` with each scatter right after the op that computes its values.

    Raises PassFailedException where no op computes them, as of a constant, or where ids
    depend on them.
    """
    scatters = scatters_of(ops)
    if not scatters:
        return tuple(ops)
    for op in scatters:
        if isinstance(op.values.owner, FillOp):
            raise OpError(
                op,
                f"fuse: '{op.name}' adds a constant, and programs split the values "
                "that they load; make it an argument of the function",
            )
        elsewhere = View | CollectiveOp | ScatterAddOp
        if op.values.owner not in ops or isinstance(op.values.owner, elsewhere):
            raise OpError(
                op,
                f"fuse: '{op.name}' has values that no kernel makes; run lower-views "
                "before fuse",
            )
    together = tuple(units(ops))
    unit_of = {op: unit for unit in together for op in unit}

    def producers(unit: tuple[Operation, ...]) -> Iterator[tuple[Operation, ...]]:
        read = {value.owner for op in unit for value in op.operands}
        return (unit_of[op] for op in unit_of.keys() & read.difference(unit))

    try:
        return tuple(chain.from_iterable(topological_order(together, producers)))
    except CycleError:
        raise OpError(
            scatters[-1],
            "fuse: ids of a 'compound.scatter_add' depend on its values, or on "
            "other sums of these; run lower-views before fuse, or add other values",
        ) from None


def units(ops: Iterable[Operation]) -> Iterator[tuple[Operation, ...]]:
    """Yield each op, together with those right after it that scatter its results."""
    for op in ops:
        if not isinstance(op, ScatterAddOp):
            yield with_scatters(op)


def meet_in_memory(one: Sequence[Operation], other: Sequence[Operation]) -> bool:
    """Return whether one group reads sums that another scatters, or makes their ids."""
    return _reaches(one, other) or _reaches(other, one)


def _reaches(scattered: Sequence[Operation], ops: Sequence[Operation]) -> bool:
    if not (scatters := scatters_of(scattered)):
        return False
    read = {value for op in ops for value in op.operands}
    return any(op.result in read or op.ids.owner in ops for op in scatters)
