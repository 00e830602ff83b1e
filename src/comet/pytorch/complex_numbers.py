"""
Complex numbers as pairs of real ones, before a graph is cut into parts.

A tensor of complex numbers becomes one with a last axis of two, as `view_as_real` sees
it. So rotary embeddings by complex products are real arithmetic. Arguments and results
stay as they are: these are views of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TypeAlias, cast

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch._ops import OpOverload
from torch.fx.node import Argument, map_arg

from comet.pytorch.rules import op_name

aten = torch.ops.aten

VIEWS = "aten.view_as_real", "aten.view_as_complex"
"""What is left of complex numbers: views of memory, between the parts of a graph."""

Rule: TypeAlias = "Callable[..., fx.Node | None]"
"""
Takes the graph and the arguments of an op, and returns the pairs of its result, or, if
that is real, the result. None is for arguments without a translation.
"""

RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def with_real_numbers(graph: fx.GraphModule) -> fx.GraphModule:
    """Return a graph whose ops on complex numbers are ops on pairs, if they can be."""
    tensors = [node.meta.get("val") for node in graph.graph.nodes]
    fixed = all(
        type(extent) is int
        for tensor in tensors
        if isinstance(tensor, torch.Tensor)
        for extent in tensor.shape
    )
    if fixed and any(map(is_complex, graph.graph.nodes)):
        with detect_fake_mode(tensors) or nullcontext():
            _Pairs(graph.graph).rewrite()
        graph.recompile()
    return graph


def is_complex(value: object) -> bool:
    """Whether a value is a node with complex numbers."""
    tensor = value.meta.get("val") if isinstance(value, fx.Node) else None
    return isinstance(tensor, torch.Tensor) and tensor.is_complex()


class _Pairs:
    """The pairs of a graph's complex numbers."""

    def __init__(self, graph: fx.Graph) -> None:
        self._graph = graph
        self._known: dict[fx.Node, fx.Node] = {}

    def rewrite(self) -> None:
        """Replace the ops on complex numbers that have a rule."""
        replaced: list[fx.Node] = []
        for node in [*self._graph.nodes]:
            known = RULES.get(op_name(node)) if node.op == "call_function" else None
            if known and any(map(is_complex, (node, *node.all_input_nodes))):
                with self._graph.inserting_before(node):
                    result = known(self, *node.args, **node.kwargs)
                if result is None:
                    continue
                replaced.append(node)
                if is_complex(node):
                    self._known[node] = result
                else:
                    node.replace_all_uses_with(result)
        for node in reversed(replaced):
            if node.users:
                with self._graph.inserting_before(node):
                    whole = self.call(aten.view_as_complex.default, self.of(node))
                node.replace_all_uses_with(whole)
            self._graph.erase_node(node)

    def call(self, op: OpOverload, *args: object, **kwargs: object) -> fx.Node:
        """Return a new node, with what torch says of its result."""
        node = self._graph.call_function(
            op, cast("tuple[Argument, ...]", args), cast("dict[str, Argument]", kwargs)
        )
        given = map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
        of_args, of_kwargs = cast("tuple[tuple[object, ...], dict[str, object]]", given)
        node.meta["val"] = op(*of_args, **of_kwargs)
        return node

    def of(self, node: fx.Node | complex) -> fx.Node:
        """Return the pairs of a node of complex numbers, or that of a number."""
        if not isinstance(node, fx.Node):
            parts = node.real, node.imag
            return self.joined(*(self.call(aten.full.default, [], x) for x in parts))
        if node not in self._known:
            self._known[node] = self.call(aten.view_as_real.default, node)
        return self._known[node]

    def parts(self, node: fx.Node | complex) -> tuple[fx.Node, fx.Node]:
        """Return the real and the imaginary part."""
        pairs = self.of(node)
        real, imaginary = (self.call(aten.select.int, pairs, -1, n) for n in (0, 1))
        return real, imaginary

    def joined(self, real: fx.Node, imaginary: fx.Node) -> fx.Node:
        """Return pairs of both parts: each is selected at its place."""
        device = real.meta["val"].device
        places = self.call(aten.arange.default, 2, device=device)
        first = self.call(aten.eq.Scalar, places, 0)
        parts = (self.call(aten.unsqueeze.default, x, -1) for x in (real, imaginary))
        return self.call(aten.where.self, first, *parts)

    def rank(self, node: fx.Node) -> int:
        """Return how many axes a tensor has."""
        return cast("torch.Tensor", node.meta["val"]).dim()


@_rule("aten.view_as_real", "aten.clone", "aten.alias", "aten.detach")
def _same(to: _Pairs, node: fx.Node, **_: object):
    return to.of(node)


@_rule("aten.view_as_complex")
def _of_pairs(to: _Pairs, node: fx.Node):
    return node


@_rule("aten.complex")
def _joined(to: _Pairs, real: fx.Node, imaginary: fx.Node):
    return to.joined(real, imaginary)


@_rule("aten.polar")
def _polar(to: _Pairs, length: fx.Node, angle: fx.Node):
    cos, sin = (to.call(op, angle) for op in (aten.cos.default, aten.sin.default))
    real, imaginary = (to.call(aten.mul.Tensor, length, each) for each in (cos, sin))
    return to.joined(real, imaginary)


@_rule("aten._conj", "aten.conj_physical")
def _conjugate(to: _Pairs, node: fx.Node | complex):
    real, imaginary = to.parts(node)
    return to.joined(real, to.call(aten.neg.default, imaginary))


@_rule("aten.neg")
def _negative(to: _Pairs, node: fx.Node):
    return to.call(aten.neg.default, to.of(node))


@_rule("aten.abs")
def _length(to: _Pairs, node: fx.Node):
    squares = (to.call(aten.mul.Tensor, part, part) for part in to.parts(node))
    return to.call(aten.sqrt.default, to.call(aten.add.Tensor, *squares))


@_rule("aten.add")
def _sum(to: _Pairs, one: fx.Node, other: object, **named: object):
    return _of_both(to, aten.add.Tensor, one, other, named)


@_rule("aten.sub")
def _difference(to: _Pairs, one: fx.Node, other: object, **named: object):
    return _of_both(to, aten.sub.Tensor, one, other, named)


def _of_both(
    to: _Pairs, op: OpOverload, one: fx.Node, other: object, named: dict[str, object]
) -> fx.Node | None:
    if named or not (is_complex(one) and is_complex(other)):
        return None
    return to.call(op, to.of(one), to.of(cast(fx.Node, other)))


@_rule("aten.mul")
def _product(to: _Pairs, one: fx.Node, other: object):
    if not is_complex(one) and isinstance(other, fx.Node):
        one, other = other, one
    if not is_complex(other):
        return _scaled(to, aten.mul.Tensor, one, other)
    (a, b), (c, d) = to.parts(one), to.parts(cast(fx.Node, other))
    ac, bd, ad, bc = (
        to.call(aten.mul.Tensor, x, y) for x, y in ((a, c), (b, d), (a, d), (b, c))
    )
    return to.joined(to.call(aten.sub.Tensor, ac, bd), to.call(aten.add.Tensor, ad, bc))


@_rule("aten.div")
def _quotient(to: _Pairs, one: fx.Node, other: object, **named: object):
    if named or is_complex(other):
        return None
    return _scaled(to, aten.div.Tensor, one, other)


def _scaled(to: _Pairs, op: OpOverload, node: fx.Node, by: object) -> fx.Node | None:
    """Return complex numbers times real ones, or divided by them, or times i."""
    if isinstance(by, fx.Node):
        return to.call(op, to.of(node), to.call(aten.unsqueeze.default, by, -1))
    if isinstance(by, complex):
        if by.real or op is not aten.mul.Tensor:
            return None
        real, imaginary = to.parts(node)
        turned = to.joined(to.call(aten.neg.default, imaginary), real)
        return to.call(op, turned, by.imag)
    return to.call(op, to.of(node), by)


@_rule("aten.view", "aten.reshape", "aten._unsafe_view")
def _reshaped(to: _Pairs, node: fx.Node, shape: Sequence[int]):
    whole = cast("torch.Tensor", node.meta["val"]).reshape(shape).shape
    return to.call(aten.reshape.default, to.of(node), [*whole, 2])


@_rule("aten.unsqueeze")
def _with_axis(to: _Pairs, node: fx.Node, dim: int):
    return to.call(aten.unsqueeze.default, to.of(node), dim % (to.rank(node) + 1))


@_rule("aten.squeeze")
def _without_axes(to: _Pairs, node: fx.Node, dim: int | Sequence[int] | None = None):
    axes = (
        range(to.rank(node)) if dim is None else [dim] if isinstance(dim, int) else dim
    )
    return to.call(aten.squeeze.dims, to.of(node), [n % to.rank(node) for n in axes])


@_rule("aten.expand")
def _expanded(to: _Pairs, node: fx.Node, shape: Sequence[int]):
    return to.call(aten.expand.default, to.of(node), [*shape, 2])


@_rule("aten.permute")
def _permuted(to: _Pairs, node: fx.Node, order: Sequence[int]):
    rank = to.rank(node)
    axes = [*(axis % rank for axis in order), rank]
    return to.call(aten.permute.default, to.of(node), axes)


@_rule("aten.transpose")
def _transposed(to: _Pairs, node: fx.Node, dim0: int, dim1: int):
    axes = (dim % to.rank(node) for dim in (dim0, dim1))
    return to.call(aten.transpose.int, to.of(node), *axes)


@_rule("aten.slice")
def _sliced(to: _Pairs, node: fx.Node, dim: int = 0, *bounds: object):
    return to.call(aten.slice.Tensor, to.of(node), dim % to.rank(node), *bounds)


@_rule("aten.select")
def _selected(to: _Pairs, node: fx.Node, dim: int, index: int):
    return to.call(aten.select.int, to.of(node), dim % to.rank(node), index)


@_rule("aten.index")
def _indexed(to: _Pairs, node: fx.Node, indices: Sequence[fx.Node | None]):
    return to.call(aten.index.Tensor, to.of(node), indices)


@_rule("aten.cat")
def _concatenated(to: _Pairs, nodes: Sequence[fx.Node], dim: int = 0):
    pairs = [to.of(node) for node in nodes if is_complex(node)]
    return to.call(aten.cat.default, pairs, dim % to.rank(nodes[0]))


@_rule("aten.sum")
def _summed(
    to: _Pairs,
    node: fx.Node,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    **_: object,
):
    rank = to.rank(node)
    axes = [n % rank for n in dim or range(rank)]
    return to.call(aten.sum.dim_IntList, to.of(node), axes, keepdim)


@_rule("aten.full")
def _filled(to: _Pairs, shape: Sequence[int], number: complex, **how: object):
    if number:
        return None
    dtype = torch.float64 if how.get("dtype") is torch.complex128 else torch.float32
    device = how.get("device")
    return to.call(aten.full.default, [*shape, 2], 0.0, dtype=dtype, device=device)


@_rule("aten.scalar_tensor")
def _number(to: _Pairs, number: complex, **_: object):
    return to.of(complex(number))


@_rule("aten.where")
def _chosen(to: _Pairs, condition: fx.Node, one: fx.Node, other: fx.Node):
    if not (is_complex(one) and is_complex(other)):
        return None
    where = to.call(aten.unsqueeze.default, condition, -1)
    return to.call(aten.where.self, where, to.of(one), to.of(other))


@_rule("aten.index_put")
def _put(
    to: _Pairs,
    node: fx.Node,
    indices: Sequence[fx.Node | None],
    values: fx.Node,
    accumulate: bool = False,
):
    pairs = to.of(node), indices, to.of(values)
    return to.call(aten.index_put.default, *pairs, accumulate)


@_rule("aten.slice_scatter")
def _slice_put(to: _Pairs, node: fx.Node, part: fx.Node, dim: int = 0, *bounds: object):
    pairs = to.of(node), to.of(part)
    return to.call(aten.slice_scatter.default, *pairs, dim % to.rank(node), *bounds)


@_rule("aten.select_scatter")
def _select_put(to: _Pairs, node: fx.Node, part: fx.Node, dim: int, index: int):
    pairs = to.of(node), to.of(part)
    return to.call(aten.select_scatter.default, *pairs, dim % to.rank(node), index)
