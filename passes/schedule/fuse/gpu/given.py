"""
Kernels by hand: `"h1; q k; mixed"` names what each kernel stores.

A kernel computes its values from arguments and from what other kernels store; what no
kernel stores, each kernel that needs it computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import View
from comet.dialects.compound.dims import unused
from comet.passes.analysis.levels import compute_block
from comet.passes.schedule.fuse.gpu.groups import (
    Part,
    Partition,
    defining_ops,
    disagrees,
    values_read,
)

BORDERS = View | CollectiveOp


def given_partition(func: FuncOp, ops: Sequence[Operation], text: str) -> Partition:
    """
    Return the work of one GPU in the kernels that `text` says.

    Raises PassFailedException for a name that no value has or that is said twice, for a
    value that has to be stored and is not, for a kernel with two extents of one
    dimension, and for kernels that need each other.
    """
    named = value_names(ops)
    stored = _stored(text, named)
    for value in _needed(func, ops):
        if all(value not in values for values in stored):
            raise PassFailedException(
                f"fuse: kernels does not store %{named[value]}, which is a result, or "
                "is renamed or sent; name it in a kernel"
            )
    known = {value for values in stored for value in values}
    kernels = [_kernel(ops, values, known - set(values)) for values in stored]
    for kernel, values in zip(kernels, stored, strict=True):
        if any(disagrees(kernel, (op,)) for op in kernel):
            raise PassFailedException(
                f"fuse: the kernel of %{named[values[0]]} has a dimension with two "
                "extents; store a value in between in another kernel"
            )
    borders = [op for op in ops if isinstance(op, BORDERS)]
    return _in_order((*kernels, *borders))


def format_kernels(
    ops: Sequence[Operation], stored: Iterable[Sequence[SSAValue]]
) -> str:
    """Return the text that makes kernels which store these values."""
    named = value_names(ops)
    kernels = ([named[v] for v in values if v in named] for values in stored)
    return "; ".join(" ".join(names) for names in kernels if names)


def value_names(ops: Sequence[Operation]) -> dict[SSAValue, str]:
    """Return the names of the results of ops, with a number where two are equal."""
    named, taken = dict[SSAValue, str](), set[str]()
    for op in ops:
        for result in op.results:
            hint = result.name_hint or op.name.rpartition(".")[2]
            named[result] = unused(hint, taken, "_")
            taken.add(named[result])
    return named


def _stored(
    text: str, named: Mapping[SSAValue, str]
) -> tuple[tuple[SSAValue, ...], ...]:
    """Return the values that each kernel stores."""
    values = {name: value for value, name in named.items()}
    kernels = [kernel.split() for kernel in text.split(";") if kernel.strip()]
    said = [name.removeprefix("%") for kernel in kernels for name in kernel]
    for name in said:
        if name not in values:
            close = get_close_matches(name, values, n=3) or list(values)[-3:]
            raise PassFailedException(
                f"fuse: kernels names %{name}, which no op computes; values are called "
                f"{', '.join(close)} and so on"
            )
        if said.count(name) > 1:
            raise PassFailedException(
                f"fuse: kernels stores %{name} twice; name it in one kernel"
            )
    stored = tuple(
        tuple(values[name.removeprefix("%")] for name in kernel) for kernel in kernels
    )
    _check_together(stored, named)
    return stored


def _check_together(
    stored: Sequence[Sequence[SSAValue]], named: Mapping[SSAValue, str]
) -> None:
    """Check that no two kernels store results of the same op."""
    first: dict[Operation | Block, tuple[int, SSAValue]] = {}
    for kernel, values in enumerate(stored):
        for value in values:
            other, result = first.setdefault(value.owner, (kernel, value))
            if other != kernel:
                raise PassFailedException(
                    f"fuse: kernels stores %{named[result]} and %{named[value]} in two "
                    "kernels, and one op computes both; name them in one kernel"
                )


def _needed(func: FuncOp, ops: Sequence[Operation]) -> tuple[SSAValue, ...]:
    """Return the computed values that have to be in memory."""
    terminator = compute_block(func).last_op
    assert terminator is not None
    readers = (*(op for op in ops if isinstance(op, BORDERS)), terminator)
    computed = {op for op in ops if not isinstance(op, BORDERS)}
    values = dict.fromkeys(value for op in readers for value in op.operands)
    return tuple(value for value in values if value.owner in computed)


def _kernel(
    ops: Sequence[Operation],
    values: Sequence[SSAValue],
    loaded: set[SSAValue],
) -> tuple[Operation, ...]:
    """Return the ops that compute `values` from `loaded` values and arguments."""
    makers = {value.owner for value in loaded}
    inside = {op for op in ops if not isinstance(op, BORDERS) and op not in makers}
    needed = defining_ops(values, inside)
    return tuple(op for op in ops if op in needed)


def _in_order(parts: Sequence[Part]) -> Partition:
    """Return the parts, each after those that compute what it reads."""
    made: dict[SSAValue, Part] = {}
    for part in parts:
        for op in part if isinstance(part, tuple) else (part,):
            made |= {result: part for result in op.results if result not in made}
    ordered, pending = list[Part](), list(parts)
    while pending:
        ready = [
            part
            for part in pending
            if all(made.get(value) not in pending for value in values_read(part))
        ]
        if not ready:
            raise PassFailedException(
                "fuse: kernels has two that need each other; store a value that goes "
                "from one to the other in a kernel of its own"
            )
        ordered.append(ready[0])
        pending.remove(ready[0])
    return tuple(ordered)
