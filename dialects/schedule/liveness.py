"""The only definition of which values are alive at each op of a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from xdsl.ir import Block, Operation, SSAValue

NONE_LATE: Mapping[SSAValue, Operation] = {}
"""No late values: all that enter a block are alive from its start."""


def alive_before(
    block: Block,
    entering: Iterable[SSAValue],
    late: Mapping[SSAValue, Operation] = NONE_LATE,
) -> Iterator[tuple[Operation, tuple[SSAValue, ...]]]:
    """
    Yield each op of a block with the values that are alive before it.

    These are the values `entering` the block, then results in the order of their ops.
    `late` values become alive only before the given op. A value dies at its last use in
    the block; one without uses lives until the end.
    """
    last_use = {value: op for op in block.ops for value in op.operands}
    alive = dict.fromkeys(value for value in entering if value not in late)
    for op in block.ops:
        if late:
            alive |= dict.fromkeys(v for v, first in late.items() if first is op)
        yield op, tuple(alive)
        for value in op.operands:
            if last_use[value] is op:
                alive.pop(value, None)
        alive |= dict.fromkeys(op.results)
