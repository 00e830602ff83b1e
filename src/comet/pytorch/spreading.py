"""
Models that are spread over ranks by DTensors: the graph of what one rank does.

The model runs once on tensors without numbers. What DTensors do is in the graph as ops
on the tensors of a rank and functional collectives; where they lie is noted aside.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias, cast
from unittest.mock import patch

import torch
from torch import Tensor, fx
from torch._functorch.compile_utils import (
    fx_graph_cse,  # pyright: ignore[reportUnknownVariableType]
)
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import (
    DeviceMesh,
    _mesh_resources,  # pyright: ignore[reportPrivateUsage]
)
from torch.distributed.tensor import DTensor, Placement
from torch.func import functional_call, functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves

from comet.pytorch.collectives import is_collective
from comet.pytorch.decompositions import with_whole_attention
from comet.pytorch.groups import of_all_processes
from comet.pytorch.merging import one_graph
from comet.pytorch.meshes import SHARED, as_rank, part_of, spread_over
from comet.pytorch.torch_ops import whole_attention
from comet.tools.diagnostics import UsageError

Shards: TypeAlias = Mapping[str, "int | None"]
"""By names of arguments, the axis of which a rank has a part; None if it has all."""


@dataclass(frozen=True)
class Spread:
    """What one rank does."""

    graph: fx.Graph
    shards: Shards
    """Those that are known."""
    group: str | None
    """
    The name of the group of ranks; None without DTensors, if all ranks do the same.
    """


@torch.library.custom_op("comet::placed", mutates_args=())
def placed(local: Tensor, axis: int) -> Tensor:
    """Mark a rank's part of an axis, or SHARED, in a graph."""
    return local.clone()


@placed.register_fake  # pyright: ignore[reportUnknownMemberType]
def _(local: Tensor, axis: int) -> Tensor:
    return torch.empty_like(local)


def spread(module: torch.nn.Module, inputs: Sequence[Tensor]) -> Spread:
    """
    Return what one rank does in a module, whose tensors and inputs may be DTensors.

    The arguments of the graph are parameters, buffers and inputs. Raises UsageError for
    shards along several axes of a mesh or of different sizes, if ranks do different
    things, and if the model changes tensors that it is given.
    """
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    state = parameters | buffers
    given = [*state.values(), *inputs]
    names = [f"p_{name}" for name in parameters] + [f"b_{name}" for name in buffers]
    names += ["input"] * len(inputs)
    mesh_axis = spread_over(given)
    ranks = mesh_axis or of_all_processes()
    axes = [_axis(tensor, ranks) for tensor in given]

    def run(*local: Tensor) -> list[Tensor]:
        pairs = zip(local, given, strict=True)
        tensors = [_placed_like(tensor, like) for tensor, like in pairs]
        arguments = tuple(tensors[len(state) :])
        outputs = functional_call(module, dict(zip(state, tensors)), arguments)
        return [_local(each) for each in tree_leaves(outputs)]

    local = [_local(tensor.detach()) for tensor in given]
    with torch.no_grad(), whole_attention(module), _with_marks(ranks):
        whole, differ = _graph(run, local, ranks)
        graph, marks = _without_marks(whole, names)
    placed_at = zip(graph.find_nodes(op="placeholder"), axes, strict=True)
    known = {node.name: _or_none(axis) for node, axis in placed_at if axis is not None}
    group = None if mesh_axis is None and not differ else ranks.group_name
    return Spread(graph, marks | known, group)


def _graph(
    run: Callable[..., object], local: Sequence[Tensor], ranks: ProcessGroup
) -> tuple[fx.Graph, bool]:
    """
    Return the graph of what all ranks run, in ops without side effects, and whether
    they do different things.
    """

    def traced(rank: int) -> fx.GraphModule:
        with as_rank(rank, ranks):
            return make_fx(run, tracing_mode="fake")(*local)

    count = ranks.size()
    first, last = traced(0), traced(count - 1)
    if first.code == last.code:
        return _pure(first, local), False
    differing = {0: first, count - 1: last}
    if count > 2:
        differing = {0: first, 1: traced(1), count - 1: last}
    pure = {rank: _pure(each, local) for rank, each in differing.items()}
    return one_graph(pure, count), True


def _pure(traced: fx.GraphModule, local: Sequence[Tensor]) -> fx.Graph:
    """Return a graph in ops without side effects, and with numbers for constants."""
    run = functionalize(cast("Callable[..., object]", traced))
    pure = make_fx(run, with_whole_attention(), "fake")(*local)  # pyright: ignore[reportArgumentType]
    for node in pure.graph.find_nodes(op="get_attr"):
        constant = cast("Tensor", getattr(pure, cast("str", node.target)))
        if constant.numel() != 1:
            raise UsageError(
                f"the model makes a tensor of {constant.numel()} numbers; make it a "
                "buffer"
            )
        full, shape = torch.ops.aten.full.default, [*constant.shape]
        with pure.graph.inserting_before(node):
            number = pure.graph.call_function(
                full, (shape, constant.item()), {"dtype": constant.dtype}
            )
        number.meta = {"val": torch.empty_like(constant, device="meta")}
        node.replace_all_uses_with(number)
        pure.graph.erase_node(node)
    pure.graph.eliminate_dead_code(_is_kept)
    return fx_graph_cse(pure.graph)


def _is_kept(node: fx.Node) -> bool:
    """Whether a node means something although nothing is computed from it."""
    return node.is_impure() or node.target is torch.ops.comet.placed.default


@contextmanager
def _with_marks(ranks: ProcessGroup) -> Generator[None]:
    """Let the graph show the placements that `DTensor.from_local` gets."""
    made = DTensor.from_local

    def from_local(
        local: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        **others: object,
    ) -> DTensor:
        mesh = device_mesh or _mesh_resources.get_current_mesh()
        if placements is not None:
            axis = part_of(local.dim(), mesh, placements, ranks)
            local = local if axis is None else placed(local, axis)
        return made(local, mesh, placements, **others)  # pyright: ignore[reportArgumentType]

    with patch.object(DTensor, "from_local", staticmethod(from_local)):
        yield


def _without_marks(
    graph: fx.Graph, names: Sequence[str]
) -> tuple[fx.Graph, dict[str, int | None]]:
    """
    Return a graph without marks, and the shards of its arguments, which these say.

    Arguments from which alone something is computed that is the same on all ranks are
    the same on all ranks, too.
    """
    result, new = fx.Graph(), dict[fx.Node, fx.Node]()
    sources = dict[fx.Node, frozenset[str]]()
    shards, shared = dict[str, "int | None"](), set[str]()
    named = iter(names)
    for node in graph.nodes:
        before = [sources[each] for each in node.all_input_nodes]
        sources[node] = frozenset().union(*before)
        if node.target is torch.ops.comet.placed.default:
            operand, axis = cast("tuple[fx.Node, int]", node.args)
            new[node] = new[operand]
            if axis == SHARED:
                shared |= sources[node]
            elif operand.op == "placeholder":
                shards[new[operand].name] = axis
            continue
        if node.target is torch.ops.aten.copy_.default:
            raise UsageError(
                f"the model changes {new[node.args[0]].name}; call its eval(), or "
                "compute without changes"
            )
        if node.op == "placeholder":
            new[node] = result.placeholder(next(named).replace(".", "_"))
            new[node].meta = node.meta
            sources[node] = frozenset({new[node].name})
        else:
            new[node] = result.node_copy(node, new.__getitem__)
        if is_collective(node):
            sources[node] = frozenset()
    return result, dict.fromkeys(shared) | shards


def _local(tensor: Tensor) -> Tensor:
    """Return the part of a tensor that this rank has."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _placed_like(local: Tensor, tensor: Tensor) -> Tensor:
    """Return a rank's part as a DTensor, if `tensor` is one."""
    if not isinstance(tensor, DTensor):
        return local
    where = tensor.device_mesh, tensor.placements
    return DTensor.from_local(
        local, *where, run_check=False, shape=tensor.shape, stride=tensor.stride()
    )


def _or_none(axis: int) -> int | None:
    """Return an axis, and None in place of SHARED."""
    return None if axis == SHARED else axis


def _axis(tensor: Tensor, ranks: ProcessGroup) -> int | None:
    """
    Return the axis of which ranks have parts of a DTensor, or SHARED; None if unknown.

    Raises UsageError for parts of different sizes.
    """
    if not isinstance(tensor, DTensor):
        return None
    count = ranks.size()
    axis = part_of(tensor.dim(), tensor.device_mesh, tensor.placements, ranks)
    if axis not in (None, SHARED) and tensor.shape[axis] % count:
        raise UsageError(
            f"{tensor.shape[axis]} elements have shards of different sizes on {count} "
            "ranks; from_torch needs equal ones"
        )
    return axis
