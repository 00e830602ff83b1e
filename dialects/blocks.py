"""Blocks: what they take, have and yield, and where ops after a value go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from comet.digraph import reachable


def terminator_of(block: Block) -> Operation:
    """Return the last op of a block that is complete."""
    assert block.last_op is not None
    return block.last_op


def yielded_by(block: Block) -> tuple[SSAValue, ...]:
    """Return what a block yields or returns; nothing before it has a terminator."""
    return () if block.last_op is None else tuple(block.last_op.operands)


def block_taking(values: Sequence[SSAValue]) -> Block:
    """Return a block with an argument for each value, of its type and its name."""
    block = Block(arg_types=[value.type for value in values])
    copy_names(values, block.args)
    return block


def copy_names(values: Iterable[SSAValue], to: Iterable[SSAValue]) -> None:
    """Give values the names of as many others, in order."""
    for value, other in zip(values, to, strict=True):
        other.name_hint = value.name_hint


def after_value(value: SSAValue) -> InsertPoint:
    """Return the place right after the definition of a value."""
    if isinstance(value.owner, Operation):
        return InsertPoint.after(value.owner)
    return InsertPoint.at_start(value.owner)


def defined_in(block: Block) -> Iterator[SSAValue]:
    """Yield the arguments of a block, then the results of its own ops, in order."""
    yield from block.args
    for op in block.ops:
        yield from op.results


def values_in(block: Block) -> Iterator[SSAValue]:
    """Yield all block arguments, then all results, in a block and in its ops."""
    for inner in block.walk_blocks():
        yield from inner.args
    for op in block.walk():
        yield from op.results


def backward_slice(value: SSAValue) -> Iterator[SSAValue]:
    """Yield `value`, and the values that it is computed from, each once."""
    return reachable(
        (value,),
        lambda each: each.owner.operands if isinstance(each.owner, Operation) else (),
    )


def captured_by(inside: Operation | Block) -> Iterator[SSAValue]:
    """
    Yield the values from outside that an op and its regions, or a block, read.

    In the order of use; a value that is read twice comes twice.
    """
    if isinstance(inside, Operation) and not inside.regions:
        yield from inside.operands
        return
    ops, blocks = set(inside.walk()), set(inside.walk_blocks())
    for op in inside.walk():
        for value in op.operands:
            if value.owner not in ops and value.owner not in blocks:
                yield value
