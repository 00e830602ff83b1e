"""
The plan string: loops and launch numbers for the nodes of a tile tree, as text.

`p: M=4 N=8 warps=4 stages=3 group=8; c_k: K=8` gives the node @c_k its loop, and the
kernel @p its grid and its launch numbers. Loops are ordered outermost first. Plans are
the same for accelerators and GPUs; only the kernels of GPUs have launch numbers, and
only in these may `BLOCK_M=64`, the size of a tile, stand for how many there are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.utils.bitwise_casts import is_power_of_two
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound.dims import ALL_LAUNCH_NUMBERS, ceil_div
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.launch import powers_around
from comet.dialects.schedule.node import NodeOp, nodes_around
from comet.passes.schedule.node_names import (
    is_spread,
    nest_number,
    node_kinds,
    node_level,
)

PLAN = "comet.plan"
"""The attribute of a function with its plan string."""

Numbers: TypeAlias = tuple[tuple[str, int], ...]
"""Names with numbers, such as dimensions with the factors of their loops."""

BLOCK = "BLOCK_"
"""The prefix of the size of a tile, in plans and in emitted kernels."""

MOST_LISTED = 24
"""The most nodes that an error lists."""

_ENTRY = re.compile(r"\s*(?P<name>[\w/]+)\s*:(?P<numbers>[^;:]*)$")
_NUMBER = re.compile(r"(?P<key>[A-Za-z_]\w*)=(?P<number>[1-9]\d*)$")


@dataclass(frozen=True)
class PlanEntry:
    """The numbers of a plan for one node."""

    name: str
    numbers: Numbers
    """Dimensions with their factors, outermost loop first, and launch numbers."""

    @property
    def loops(self) -> Numbers:
        """The dimensions with their factors."""
        return tuple(
            entry for entry in self.numbers if entry[0] not in ALL_LAUNCH_NUMBERS
        )

    @property
    def launch(self) -> Mapping[str, int]:
        """The launch numbers that are given."""
        return {key: n for key, n in self.numbers if key in ALL_LAUNCH_NUMBERS}

    def __str__(self) -> str:
        return f"{self.name}: {' '.join(f'{key}={n}' for key, n in self.numbers)}"


def parse_plan(text: str) -> tuple[PlanEntry, ...]:
    """
    Return the entries of a plan string.

    Raises PassFailedException for text that is no entry, and for two entries of a node.
    """
    entries = tuple(map(_parse_entry, filter(str.strip, text.split(";"))))
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise PassFailedException(
                f"the plan '{text.strip()}' has two entries for {name}; write one"
            )
    return entries


def _parse_entry(text: str) -> PlanEntry:
    if (entry := _ENTRY.match(text)) is None:
        raise PassFailedException(
            f"plan entry '{text.strip()}' is not of the form NAME: DIM=FACTOR .."
        )
    numbers: list[tuple[str, int]] = []
    for word in entry["numbers"].split():
        if (found := _NUMBER.match(word)) is None:
            raise PassFailedException(
                f"'{word}' in plan entry '{text.strip()}' is not of the form "
                "DIM=FACTOR with a positive factor"
            )
        numbers.append((found["key"], int(found["number"])))
    keys = [key for key, _ in numbers]
    if len(set(keys)) != len(keys):
        raise PassFailedException(
            f"plan entry '{text.strip()}' gives a number twice; write it once"
        )
    return PlanEntry(entry["name"], tuple(numbers))


def format_plan(entries: Sequence[PlanEntry]) -> str:
    """Return the plan string of `entries`."""
    return "; ".join(str(entry) for entry in entries)


def check_dims(entries: Sequence[PlanEntry], dims: Sequence[str]) -> None:
    """
    Raise PassFailedException if a plan names a dimension that is not in `dims`.

    Numbered dimensions such as N1, which passes make, count as the dimension itself.
    """
    for entry in entries:
        for dim, _ in entry.loops:
            if dim not in dims and dim.rstrip("0123456789") not in dims:
                raise PassFailedException(
                    f"tile: plan entry '{entry}' names the unknown dimension {dim}; "
                    f"there are {', '.join(dims)}"
                )


def with_factors(
    plan: Sequence[PlanEntry], nodes: Mapping[str, NodeOp]
) -> tuple[PlanEntry, ...]:
    """
    Return a plan with numbers of tiles in place of sizes, such as BLOCK_M=64.

    `nodes` are outermost first. Raises PassFailedException for a size that is no power
    of two, and for a dimension with both.
    """
    entries = {entry.name: entry for entry in plan}
    for name, node in nodes.items():
        if name in entries and node.in_kernel:
            found = [_factor(node, *n, entries) for n in entries[name].numbers]
            if len(dict(found)) < len(found):
                raise OpError(
                    node,
                    f"tile: plan entry '{entries[name]}' gives the tiles of a "
                    "dimension both by number and by size; write one",
                )
            entries[name] = PlanEntry(name, tuple(found))
    return tuple(entries.values())


def _factor(
    node: NodeOp, key: str, size: int, entries: Mapping[str, PlanEntry]
) -> tuple[str, int]:
    """Return a number of the plan of `node`, and a size as its number of tiles."""
    dim = key.removeprefix(BLOCK)
    if key in node.factors or dim not in node.factors:
        return key, size
    if not is_power_of_two(size):
        raise OpError(
            node,
            f"tile: {key}={size} is no power of two, as the blocks of Triton are; "
            f"{powers_around(size)}",
        )
    extent = node.outermost.extents.get(dim, node.extents[dim])
    for outer in nodes_around(node):
        planned = entries.get(outer.node_name or "")
        extent = ceil_div(
            extent, 1 if planned is None else dict(planned.loops).get(dim, 1)
        )
    return dim, ceil_div(extent, size)


def plan_nodes(func: FuncOp) -> dict[str, NodeOp]:
    """
    Return the nodes that a plan can address, by name: temporal nodes and grids.

    Outermost first. Raises PassFailedException if two nodes have the same name, as the
    nodes of a split one do.
    """
    nodes: dict[str, NodeOp] = {}
    for op in func.walk():
        if not isinstance(op, SpatialOp | TemporalOp):
            continue
        if isinstance(op, SpatialOp) and op.mesh_name is not None:
            continue
        if (name := op.node_name) is None or name in nodes:
            raise OpError(
                op,
                f"tile: a plan cannot address {op.name} "
                f"{'without a name' if name is None else f'@{name}, as two have it'}; "
                "give it a name of its own",
            )
        nodes[name] = op
    return nodes


def tile_plan_of(func: FuncOp) -> tuple[PlanEntry, ...]:
    """Return the plan with the loops and launch numbers of `func`."""
    found = ((name, _numbers(node)) for name, node in plan_nodes(func).items())
    return tuple(PlanEntry(name, numbers) for name, numbers in found if numbers)


def _numbers(node: NodeOp) -> Numbers:
    loops = tuple(node.factors.items())
    if not isinstance(node, SpatialOp) or node.launch is None:
        return loops
    return (*loops, *node.launch.numbers.items())


def unknown_node(entry: PlanEntry, nodes: Mapping[str, NodeOp]) -> PassFailedException:
    """
    Return the error for an entry that names no node.

    For an entry in the old form, `OB/map: N=2` (level and kinds of ops), it gives the
    new names.
    """
    level, *kinds = entry.name.split("/")
    meant = [
        name
        for name, node in nodes.items()
        if node_level(node) == level
        and {*kinds} <= node_kinds(node) | {nest_number(node)}
    ]
    listed = ", ".join((meant or list(nodes))[:MOST_LISTED])
    there_are = f"{entry.name} is now written" if meant else "there are"
    return PassFailedException(
        f"tile: plan entry '{entry}' is for no node of this name; {there_are} {listed}"
    )


def cuttable(node: NodeOp) -> tuple[str, ...]:
    """
    Return the dimensions that a plan may give `node` loops over.

    In a kernel they are those of its loops, which `fuse` chose; for the loop of a fold,
    the dimension of the fold.
    """
    if node.in_kernel or (node.init_args() and is_spread(node)):
        return tuple(node.factors)
    return tuple(node.extents)
