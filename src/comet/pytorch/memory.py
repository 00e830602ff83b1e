"""What torch expects of the memory of tensors: strides, and that it is their own."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import cast

import torch
from torch import fx
from torch._guards import TracingContext
from torch._ops import OpOverload

from comet.pytorch.importer import meta_of
from comet.pytorch.region import Region


def keep_strides(graph: fx.GraphModule) -> None:
    """
    Let ops of torch read tensors with the strides with which torch has traced them.

    Kernels store their results in the order of their axes, also those that a backward
    graph takes; some views of torch, such as one as complex numbers, need its own.
    """
    for node in graph.graph.nodes:
        if not _is_of_torch(node) or _writes(node):
            continue
        for operand in node.all_input_nodes:
            strides = _strides(operand)
            if strides is not None and _may_differ(operand):
                with graph.graph.inserting_before(node):
                    same = graph.graph.call_function(strided, (operand, strides))
                same.meta = operand.meta
                node.replace_input_with(operand, same)
    graph.recompile()


def _writes(node: fx.Node) -> bool:
    """Whether a node writes to its operands, which are those that torch has."""
    target = cast("object", node.target)
    return isinstance(target, OpOverload) and target._schema.is_mutable  # pyright: ignore[reportPrivateUsage]


def _strides(node: fx.Node) -> tuple[int, ...] | None:
    """
    Return the strides that torch knows; None if there are several tensors.

    A tensor without elements has none that matter: it may be the token of an effect,
    such as an error of torch, which is None when the graph runs.
    """
    known = meta_of(node)
    if len(known) != 1 or any(type(n) is int and not n for n in known[0].shape):
        return None
    strides = known[0].stride()
    return strides if all(type(stride) is int for stride in strides) else None


def _is_of_torch(node: fx.Node) -> bool:
    """Whether an op of torch computes a node."""
    return node.op == "call_function" and node.target not in (operator.getitem, strided)


def _may_differ(node: fx.Node) -> bool:
    """Whether a node is a result of a region, or an argument, which may be one."""
    if node.target is operator.getitem:
        return _may_differ(cast(fx.Node, node.args[0]))
    return node.op in ("call_module", "placeholder")


def strided(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """Return a tensor with these strides, a copy if it has others."""
    axes = zip(tensor.shape, tensor.stride(), strides, strict=True)
    if all(old == new for extent, old, new in axes if extent > 1):
        return tensor
    return copied(tensor, strides)


def copied(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """Return a copy of a tensor with these strides."""
    like = torch.empty_strided(
        tensor.shape, strides, dtype=tensor.dtype, device=tensor.device
    )
    # It is the same along axes whose stride is 0, which have one element in memory.
    part = tuple(slice(None if stride else 1) for stride in strides)
    like[part].copy_(tensor[part])
    return like


def own_results(graph: fx.GraphModule) -> None:
    """
    Give each result of a model memory of its own where torch does so.

    A copy is no op of kernels, so a region may return an argument for it, which the
    model may change in place later. What a backward graph takes is not changed.
    """
    (output,) = graph.graph.find_nodes(op="output")
    arguments = graph.graph.find_nodes(op="placeholder")
    results = cast("list[object]", output.args[0])
    nodes = dict.fromkeys(each for each in results if isinstance(each, fx.Node))
    known = Counter(map(_memory, {*arguments, *nodes}))
    copies: dict[fx.Node, fx.Node] = {}
    for node in dict.fromkeys(results[: _returned(arguments, len(results))]):
        if isinstance(node, fx.Node) and known[_memory(node)] == 1:
            strides = _strides(node)
            if strides is not None and _shares(graph, node):
                with graph.graph.inserting_before(output):
                    operands = node, strides
                    copies[node] = graph.graph.call_function(copied, operands)
    output.args = ([copies.get(cast(fx.Node, each), each) for each in results],)
    graph.recompile()


def _returned(arguments: Sequence[fx.Node], count: int) -> int:
    """Return how many of a graph's first results are those of the model."""
    if any("tangents" in node.name for node in arguments):
        return 0  # It is a backward graph.
    context = TracingContext.try_get()
    known = None if context is None else context.fw_metadata
    return count if known is None else known.num_forward_returns


def _memory(node: fx.Node) -> object:
    """Return what is the same for tensors that share memory in torch."""
    known = meta_of(node)
    return known[0].untyped_storage()._cdata if len(known) == 1 else node  # pyright: ignore[reportPrivateUsage]


def _shares(graph: fx.GraphModule, node: fx.Node) -> bool:
    """Whether a node is a result of a region that has no memory of its own."""
    number = 0
    if node.target is operator.getitem:
        node, number = cast("tuple[fx.Node, int]", node.args)
    if node.op != "call_module":
        return False
    region = graph.get_submodule(cast(str, node.target))
    return isinstance(region, Region) and region.shares(number)
