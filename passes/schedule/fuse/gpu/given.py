"""
The option `kernels` of `fuse`: `"h1; q k; mixed"` names the values each kernel stores.

A kernel computes its values from arguments and from values that other kernels store. A
value that no kernel stores is computed by each kernel that needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from comet.dialects.errors import OpError
from comet.digraph import topological_order
from comet.passes.analysis.levels import compute_block
from comet.passes.analysis.op_groups import BlockSizes, defining_ops
from comet.passes.analysis.stored_values import named_values, value_names
from comet.passes.schedule.fuse.gpu.groups import Border, Group, Partition, values_read
from comet.passes.schedule.fuse.gpu.scatters import meet_in_memory, scatters_of


def given_partition(func: FuncOp, ops: Sequence[Operation], text: str) -> Partition:
    """
    Return the work of one GPU, with kernels that store the values named in `text`.

    Raises PassFailedException for a name that no value has or that occurs twice, for a
    value that has to be stored and is not named, for a kernel that scatters what
    another one stores, for a kernel with two extents of one dimension, and for kernels
    that need each other.
    """
    named = value_names(ops)
    stored = named_values(text, named, "fuse", "kernel")
    for value in _needed(func, ops):
        if all(value not in values for values in stored):
            raise OpError(
                func,
                f"fuse: kernels does not store %{named[value]}, which is a result, or "
                "is renamed or sent; name it in a kernel",
            )
    known = {value for values in stored for value in values}
    kernels = [_kernel(ops, values, known - set(values)) for values in stored]
    sizes = BlockSizes(ops)
    for kernel, values in zip(kernels, stored, strict=True):
        if mistake := _mistake(kernel, named, sizes):
            raise OpError(func, f"fuse: the kernel of %{named[values[0]]} {mistake}")
    borders = [(op,) for op in ops if isinstance(op, Border)]
    return _in_order((*kernels, *borders))


def _mistake(
    kernel: Sequence[Operation], named: Mapping[SSAValue, str], sizes: BlockSizes
) -> str | None:
    """Return why ops cannot be one kernel, None if they can."""
    for op in scatters_of(kernel):
        if op.values.owner not in kernel:
            return (
                f"adds %{named[op.values]} to rows, and another kernel stores that; "
                "name both in one kernel"
            )
    if meet_in_memory(kernel, kernel):
        return (
            "reads sums that it scatters, or computes their ids; store them in another "
            "kernel"
        )
    if any(sizes.conflict(kernel, (op,)) for op in kernel):
        return (
            "has a dimension with two extents, or a shard and the whole of one; store "
            "a value in between in another kernel"
        )
    return None


def _needed(func: FuncOp, ops: Sequence[Operation]) -> tuple[SSAValue, ...]:
    """Return the results and the operands of views and collectives: they are stored."""
    terminator = compute_block(func).last_op
    assert terminator is not None
    readers = (*(op for op in ops if isinstance(op, Border)), terminator)
    computed = {op for op in ops if not isinstance(op, Border)}
    values = dict.fromkeys(value for op in readers for value in op.operands)
    values |= dict.fromkeys(op.ids for op in scatters_of(ops))
    return tuple(value for value in values if value.owner in computed)


def _kernel(
    ops: Sequence[Operation],
    values: Sequence[SSAValue],
    loaded: set[SSAValue],
) -> tuple[Operation, ...]:
    """Return the ops that compute `values` from `loaded` values and arguments."""
    producers = {value.owner for value in loaded}
    inside = {op for op in ops if not isinstance(op, Border) and op not in producers}
    needed = defining_ops(values, inside)
    return tuple(op for op in ops if op in needed)


def _in_order(groups: Sequence[Group]) -> Partition:
    """Return the groups, each after those that compute what it reads."""
    made: dict[SSAValue, Group] = {}
    for group in groups:
        for op in group:
            made |= {result: group for result in op.results if result not in made}

    def producers(group: Group) -> Iterator[Group]:
        return (made[value] for value in values_read(group) if value in made)

    try:
        return tuple(topological_order(groups, producers))
    except CycleError as error:
        cycle: Sequence[Group] = error.args[1]
        raise OpError(
            min(cycle, key=groups.index)[0],
            "fuse: kernels has two that depend on each other; store a value that "
            "goes from one to the other in a third kernel",
        ) from None
