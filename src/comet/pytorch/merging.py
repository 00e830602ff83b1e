"""
One graph of all ranks, from the graphs of some of them.

They may differ in numbers that grow with the rank, and in the part of an axis that a
rank takes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeAlias, cast

import torch
from torch import fx
from torch.fx.node import Argument
from torch.utils._pytree import tree_flatten

from comet.pytorch.parts import number_of_rank, part_of_rank
from comet.pytorch.rules import op_name
from comet.tools.diagnostics import UsageError

NUMBERS = frozenset(
    f"aten.{name}" for name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge")
)
"""The ops whose second operand may be another number on each rank."""
SPLITS = frozenset({"aten.split", "aten.split_with_sizes", "aten.chunk"})
"""The ops of whose results a rank may take its own one."""

Nodes: TypeAlias = Sequence[fx.Node]
"""The same node in the graphs of several ranks."""


def one_graph(graphs: Mapping[int, fx.Graph], ranks: int) -> fx.Graph:
    """
    Return the graph of all `ranks`, from those of some of them, which it changes.

    The first ranks are 0 and 1. Raises UsageError for a node by which they differ in
    another way.
    """
    numbers, first = tuple(graphs), graphs[0]
    rows = [[*graph.nodes] for graph in graphs.values()]
    if len({len(row) for row in rows}) > 1:
        _refuse("the first rank does something else than the last")
    merging = _Merging(numbers, ranks, first)
    for nodes in zip(*rows, strict=True):
        merging.merge(nodes)
    return first


class _Merging:
    """The graph of the first rank, which becomes that of all."""

    def __init__(self, numbers: Sequence[int], ranks: int, graph: fx.Graph) -> None:
        """Begin; `numbers` are those of the ranks that have a graph each."""
        self._numbers, self._ranks, self._graph = numbers, ranks, graph
        self._same: dict[object, fx.Node] = {}
        """The node of the first graph that a node of another one is."""

    def merge(self, nodes: Nodes) -> None:
        """Let the first of the nodes do what all of them do."""
        node = nodes[0]
        if len({(each.op, each.target) for each in nodes}) > 1:
            _refuse(
                f"in {_called(node)} the first rank does something else than others"
            )
        leaves = [tree_flatten((each.args, each.kwargs))[0] for each in nodes]
        if len({len(each) for each in leaves}) > 1:
            _refuse(f"{_called(node)} has other operands on other ranks")
        differs = any(len({*map(self._known, each)}) > 1 for each in zip(*leaves))
        self._same |= dict.fromkeys(nodes, node)
        if not differs:
            return
        if node.target is operator.getitem:
            self._take_part(nodes)
        elif op_name(node) in NUMBERS:
            self._take_number(nodes)
        else:
            self._refuse_operand(node)

    def _known(self, operand: object) -> object:
        """Return an operand as the first graph has it, with its type if a number."""
        return self._same.get(operand) or (type(operand), operand)

    def _take_part(self, nodes: Nodes) -> None:
        """Let each rank take its own one of equal parts."""
        node = nodes[0]
        parts, places = node.args[0], tuple(each.args[1] for each in nodes)
        if not isinstance(parts, fx.Node) or places != self._numbers:
            self._refuse_operand(node)
        shapes = [
            part.shape for part in cast("Sequence[torch.Tensor]", parts.meta["val"])
        ]
        if op_name(parts) not in SPLITS or shapes != shapes[:1] * self._ranks:
            self._refuse_operand(node)
        whole = cast("fx.Node", parts.args[0])
        axis = cast("int", [*parts.args, 0][2]) % len(shapes[0])
        arguments = whole, axis, self._ranks
        part = self._insert(node, part_of_rank, arguments, node.meta)
        node.replace_all_uses_with(part)
        self._same |= dict.fromkeys((part, *nodes), part)

    def _take_number(self, nodes: Nodes) -> None:
        """Let the second operand of a node be a number that grows with the rank."""
        node = nodes[0]
        values = [cast("float", each.args[1]) for each in nodes]
        if any(isinstance(value, fx.Node) for value in values):
            self._refuse_operand(node)
        first, step = values[0], values[1] - values[0]
        if values != [first + number * step for number in self._numbers]:
            self._refuse_operand(node)
        like = cast("torch.Tensor", cast("fx.Node", node.args[0]).meta["val"])
        meta = {"val": torch.empty((), dtype=like.dtype, device="meta")}
        number = self._insert(node, number_of_rank, (first, step), meta)
        node.update_arg(1, number)

    def _insert(
        self,
        before: fx.Node,
        function: Callable[..., object],
        arguments: tuple[Argument, ...],
        meta: Mapping[str, object],
    ) -> fx.Node:
        with self._graph.inserting_before(before):
            node = self._graph.call_function(function, arguments)
        node.meta = {**meta}
        return node

    def _refuse_operand(self, node: fx.Node) -> NoReturn:
        _refuse(f"{_called(node)} has other operands on other ranks")


def _called(node: fx.Node) -> str:
    return f"{node.name} ({op_name(node)})"


def _refuse(difference: str) -> NoReturn:
    raise UsageError(
        f"{difference}; from_torch needs one program of all ranks: they may take equal "
        "parts of an axis by their number, and add to, multiply and compare with "
        "numbers that grow with it"
    )
