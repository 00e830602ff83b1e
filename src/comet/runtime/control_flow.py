"""
Assembly in execution order.

Compilers move blocks that they think are rare behind the end of a kernel, and jump
there and back. This puts each block after those that branch to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Jumps:
    """The control flow syntax of one kind of assembly."""

    label: re.Pattern[str]
    """A label; group 1 is the name of its block."""
    branch: re.Pattern[str]
    """A branch, conditional or not; group 1 is the name of its target."""
    end: re.Pattern[str]
    """An unconditional branch, or the end of the kernel."""


@dataclass
class Block:
    """A basic block."""

    number: int
    lines: list[str] = field(default_factory=list[str])
    targets: list[str] = field(default_factory=list[str])
    """The names of the blocks it branches to."""
    ends: bool = False
    """Whether it never falls through to the next block."""


def in_order(text: str, jumps: Jumps) -> str:
    """
    Return the lines of a kernel such that each block follows its predecessors.

    What follows a loop comes after the whole loop. Unreachable blocks come last, in
    their order.
    """
    blocks, names = _blocks(text, jumps)
    following = [_successors(block, blocks, names) for block in blocks]
    order = _reverse_postorder(following)
    order += [number for number in range(len(blocks)) if number not in {*order}]
    return "\n".join(line for number in order for line in blocks[number].lines)


def _blocks(text: str, jumps: Jumps) -> tuple[list[Block], dict[str, int]]:
    """Cut a kernel after branches and before labels; return the blocks, and by name."""
    blocks, names = [Block(0)], dict[str, int]()
    for line in text.splitlines():
        label = jumps.label.match(line)
        if (label and blocks[-1].lines) or blocks[-1].targets or blocks[-1].ends:
            blocks.append(Block(len(blocks)))
        if label:
            names[label[1]] = len(blocks) - 1
        blocks[-1].lines.append(line)
        if branch := jumps.branch.match(line):
            blocks[-1].targets.append(branch[1])
        blocks[-1].ends = bool(jumps.end.match(line))
    return blocks, names


def _successors(
    block: Block, blocks: Sequence[Block], names: dict[str, int]
) -> list[int]:
    """Return the successors of a block."""
    found = [names[name] for name in block.targets if name in names]
    if not block.ends and block.number + 1 < len(blocks):
        found.append(block.number + 1)
    return found


def _reverse_postorder(following: Sequence[Sequence[int]]) -> list[int]:
    """Return the blocks reachable from block 0, loops before what follows them."""
    order: list[int] = []
    seen = {0}
    path = [(0, _exits_first(0, following))]
    while path:
        block, rest = path[-1]
        after = next((n for n in rest if n not in seen), None)
        if after is None:
            order.append(block)
            path.pop()
        else:
            seen.add(after)
            path.append((after, _exits_first(after, following)))
    return order[::-1]


def _exits_first(block: int, following: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield the successors of a block, exits of its loop first: these come last."""
    around = [n for n in following[block] if block in _reachable(n, following)]
    yield from (n for n in following[block] if n not in around)
    yield from around


def _reachable(start: int, following: Sequence[Sequence[int]]) -> set[int]:
    found, left = {start}, [start]
    while left:
        new = {*following[left.pop()]} - found
        found |= new
        left += new
    return found
