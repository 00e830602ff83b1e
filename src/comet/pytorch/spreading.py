"""
Models that are spread over ranks by DTensors: the graph of what one rank does.

The model runs once on tensors without numbers. What DTensors do is in the graph as ops
on the tensors of a rank and functional collectives; where they lie is noted aside.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeAlias, cast
from unittest.mock import patch

import torch
from torch import Tensor, distributed, fx
from torch._functorch.compile_utils import (
    fx_graph_cse,  # pyright: ignore[reportUnknownVariableType]
)
from torch.distributed import distributed_c10d
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard
from torch.func import functional_call, functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves

from comet.pytorch.collectives import is_collective
from comet.pytorch.decompositions import with_whole_attention
from comet.pytorch.merging import one_graph
from comet.pytorch.torch_ops import whole_attention
from comet.tools.diagnostics import UsageError

SHARED = -1
"""In place of an axis: all ranks have the same tensor."""

Shards: TypeAlias = Mapping[str, "int | None"]
"""By names of arguments, the axis of which a rank has a part; None if it has all."""


@dataclass(frozen=True)
class Spread:
    """What one rank does."""

    graph: fx.Graph
    shards: Shards
    """Those that are known."""
    ranks: int
    """The number of ranks of the mesh; 1 if there are no DTensors."""


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
    a mesh of several axes or shards of different sizes, if ranks do different things,
    and if the model changes tensors that it is given.
    """
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    state = parameters | buffers
    given = [*state.values(), *inputs]
    names = [f"p_{name}" for name in parameters] + [f"b_{name}" for name in buffers]
    names += ["input"] * len(inputs)
    ranks, axes = max(map(_ranks, given), default=1), [*map(_axis, given)]

    def run(*local: Tensor) -> list[Tensor]:
        pairs = zip(local, given, strict=True)
        tensors = [_placed_like(tensor, like) for tensor, like in pairs]
        arguments = tuple(tensors[len(state) :])
        outputs = functional_call(module, dict(zip(state, tensors)), arguments)
        return [_local(each) for each in tree_leaves(outputs)]

    local = [_local(tensor.detach()) for tensor in given]
    several = ranks if ranks > 1 else distributed.get_world_size()
    with torch.no_grad(), whole_attention(module), _with_marks():
        graph, marks = _without_marks(_graph(run, local, several), names)
    placed_at = zip(graph.find_nodes(op="placeholder"), axes, strict=True)
    known = {node.name: _or_none(axis) for node, axis in placed_at if axis is not None}
    return Spread(graph, marks | known, ranks)


def _graph(run: Callable[..., object], local: Sequence[Tensor], ranks: int) -> fx.Graph:
    """Return the graph of what all ranks run, in ops without side effects."""
    first, last = (_traced(run, local, rank) for rank in (0, ranks - 1))
    if first.code == last.code:
        return _pure(first, local)
    differing = {0: first, ranks - 1: last}
    if ranks > 2:
        differing = {0: first, 1: _traced(run, local, 1), ranks - 1: last}
    pure = {rank: _pure(each, local) for rank, each in differing.items()}
    return one_graph(pure, ranks)


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


def _traced(
    run: Callable[..., object], local: Sequence[Tensor], rank: int
) -> fx.GraphModule:
    """Return the graph of what a rank runs, wherever this process is."""

    def number(*_: object) -> int:
        return rank

    def coordinate(_: DeviceMesh) -> tuple[int, ...]:
        return (rank,)

    asked = [
        (DeviceMesh, "_sym_get_coordinate"),
        (DeviceMesh, "get_local_rank"),
        (DeviceMesh, "get_rank"),
        (distributed.ProcessGroup, "rank"),
        (distributed, "get_rank"),
        (distributed_c10d, "get_rank"),
    ]
    with ExitStack() as stack:
        stack.enter_context(patch.object(DeviceMesh, "get_coordinate", coordinate))
        for owner, name in asked:
            stack.enter_context(patch.object(owner, name, number))
        return make_fx(run, tracing_mode="fake")(*local)


@contextmanager
def _with_marks() -> Generator[None]:
    """Let the graph show the placements that `DTensor.from_local` gets."""
    made = DTensor.from_local

    def from_local(
        local: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        **others: object,
    ) -> DTensor:
        axis = None if placements is None else _axis_of(placements, local.dim())
        if axis is not None:
            local = placed(local, axis)
        return made(local, device_mesh, placements, **others)  # pyright: ignore[reportArgumentType]

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


def _ranks(tensor: Tensor) -> int:
    """Return the number of ranks over which a tensor is spread."""
    return tensor.device_mesh.size() if isinstance(tensor, DTensor) else 1


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


def _axis(tensor: Tensor) -> int | None:
    """
    Return the axis of which ranks have parts of a DTensor, or SHARED; None if unknown.

    Raises UsageError for parts of different sizes.
    """
    if not isinstance(tensor, DTensor):
        return None
    axis, ranks = _axis_of(tensor.placements, tensor.dim()), _ranks(tensor)
    if axis not in (None, SHARED) and tensor.shape[axis] % ranks:
        raise UsageError(
            f"{tensor.shape[axis]} elements have shards of different sizes on {ranks} "
            "ranks; from_torch needs equal ones"
        )
    return axis


def _axis_of(placements: Sequence[Placement], rank: int) -> int | None:
    """Return the same of placements of a tensor with `rank` axes."""
    if len(placements) > 1:
        raise UsageError(
            f"a mesh of {len(placements)} axes is not translated; use one of one axis"
        )
    placement = placements[0]
    if isinstance(placement, Shard):
        dim = cast("int", placement.dim)
        return dim % rank
    return SHARED if isinstance(placement, Replicate) else None
