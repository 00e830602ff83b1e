"""
Graphs whose shapes change from call to call, as those of a server.

Programs have static shapes. So a graph of Dynamo in which some are symbols is compiled
again for each of the first shapes that come, and runs in torch for others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import deepcopy
from typing import cast

import torch
from torch import fx
from torch._dynamo import config
from torch._guards import TracingContext, tracing
from torch.fx.node import map_arg

Function = Callable[..., object]
Compile = Callable[[fx.GraphModule, Sequence[object]], Function]


def changes(value: object) -> bool:
    """Return whether an input is a symbol, or a tensor with one in its shape."""
    if isinstance(value, torch.Tensor):
        return any(map(changes, (*value.shape, *value.stride())))
    return isinstance(value, torch.SymInt)


class ByShape:
    """
    A function that is compiled for each shape it is called with, up to a limit.

    That is torch's limit of compilations of a function (`recompile_limit`). Numbers
    that torch passes, as the extents of axes and floats of a module, are constants of
    what is compiled.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        inputs: Sequence[object],
        compile: Compile,
        warn: Callable[[str], None],
    ) -> None:
        """Compile `graph` by `compile`; `warn` is called once shapes are too many."""
        self._graph = graph
        self._compile = compile
        self._warn = warn
        self._warned = False
        self._known: dict[Hashable, Function] = {}
        arguments = graph.graph.find_nodes(op="placeholder")
        self._numbers = [n for n, node in enumerate(arguments) if _is_number(node)]
        self._changing = [n for n, value in enumerate(inputs) if changes(value)]

    def __call__(self, *inputs: object) -> object:
        """Run the graph, compiled for the shapes of these inputs if they may be."""
        shapes = tuple(_shape_of(inputs[number]) for number in self._changing)
        numbers = {n: _number(inputs[n]) for n in self._numbers}
        key = shapes, tuple(numbers.values())
        if key not in self._known and len(self._known) < config.recompile_limit:
            with tracing(TracingContext(None)):  # Where torch notes what it returns.
                graph = _with_numbers(self._graph, numbers)
                self._known[key] = self._compile(graph, inputs)
        if (function := self._known.get(key)) is not None:
            return function(*inputs)
        if not self._warned:
            self._warned = True
            self._warn(_too_many(len(self._known)))
        return self._graph(*inputs)


def _too_many(count: int) -> str:
    return (
        f"a graph runs in torch for other shapes than the first {count}: raise "
        "torch._dynamo.config.recompile_limit, or pad inputs"
    )


def _shape_of(value: object) -> Hashable:
    """Return the extents and strides of a tensor; a number has none."""
    if isinstance(value, torch.Tensor):
        return (*value.shape, *value.stride())
    return ()


def _is_number(node: fx.Node) -> bool:
    """Whether an argument is an integer, or a float in a tensor, as torch has them."""
    value = node.meta.get("example_value")
    return isinstance(value, torch.SymInt) or any(map(_is_item, node.users))


def _is_item(node: fx.Node) -> bool:
    return node.op == "call_method" and node.target == "item"


def _number(value: object) -> float:
    """Return a number that torch passes."""
    return value.item() if isinstance(value, torch.Tensor) else cast(float, value)


def _with_numbers(graph: fx.GraphModule, numbers: dict[int, float]) -> fx.GraphModule:
    """Return a graph in which numbers are constants, by the place of the argument."""
    copy = fx.GraphModule(graph, deepcopy(graph.graph))
    arguments = copy.graph.find_nodes(op="placeholder")
    for place, number in numbers.items():
        argument = arguments[place]
        items = [user for user in argument.users if _is_item(user)]
        for node in items or [argument]:
            _replace(node, number)
        for node in items:
            copy.graph.erase_node(node)
    copy.recompile()
    return copy


def _replace(node: fx.Node, number: float) -> None:
    """Let the users of a node have a number in its place."""

    def constant(each: fx.Node) -> fx.Node | float:
        return number if each is node else each

    for user in [*node.users]:
        user.args = map_arg(user.args, constant)
        user.kwargs = map_arg(user.kwargs, constant)
