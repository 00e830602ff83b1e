"""The back end of `torch.compile`: the graphs of a model as kernels of comet."""

from __future__ import annotations

import operator
import warnings
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from os import environ
from typing import cast

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from xdsl.utils.exceptions import VerifyException

from comet.api.loading import interpret_without_gpu, loaded
from comet.api.program import printed
from comet.pytorch import processes
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.collectives import WAIT, chains, group_of, is_collective
from comet.pytorch.complex_numbers import VIEWS, with_real_numbers
from comet.pytorch.decompositions import decompositions
from comet.pytorch.groups import named
from comet.pytorch.importer import (
    imported,
    line_of,
    meta_of,
    refusal,
)
from comet.pytorch.memory import keep_strides, own_results
from comet.pytorch.program_cache import emitted, ranks_of
from comet.pytorch.random_numbers import DRAWS_SEEDS, with_seeds_drawn_at_once
from comet.pytorch.region import Function, Region
from comet.pytorch.rules import op_name
from comet.pytorch.shapes import ByShape, changes
from comet.pytorch.torch_ops import whole_attention
from comet.runtime.one_rank import PlanFunction
from comet.runtime.program import RankProgram
from comet.tools.diagnostics import CometError

HARDWARE = "COMET_HARDWARE"
"""The variable that names the hardware file where options do not."""
CACHE = "COMET_CACHE"
"""The variable that names the folder of compiled programs where options do not."""

REDUCE_OVERHEAD = "reduce-overhead"
"""The mode of `torch.compile` that replays launches as CUDA graphs."""

NOT_ASKED = "the option pipeline_of_ranks does not say how they are compiled"
"""Why collectives run in torch by default."""

AFTER = "after"
"""The keyword of a collective for the one that torch begins before it."""


Compiler = Callable[[fx.GraphModule, Sequence[torch.Tensor]], Function]


class SlowPathWarning(UserWarning):
    """A part of a model runs as torch runs it; the message says which, and why."""


@dataclass(frozen=True)
class Options:
    """The options of the back end, as `torch.compile(options=..)` has them."""

    hardware: str
    """The hardware file of the GPU."""
    pipeline: str = "triton-distributed"
    """The passes."""
    pipeline_of_ranks: str | None = None
    """Those of parts with collectives, which by default run in torch."""
    cache: str | None = None
    """The folder that keeps compiled programs for later processes; by default none."""
    cuda_graphs: bool = False
    """Whether a GPU replays the launches of a call, as by `mode="reduce-overhead"`."""
    strict: bool = False
    """Whether what is not compiled is an error, not a warning."""


def comet_backend(
    graph: fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    *,
    mode: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Function:
    """
    Compile a graph of Dynamo, for `torch.compile(model, backend="comet")`.

    `options` are the fields of `Options`, and the mode "reduce-overhead" is
    `cuda_graphs`. Gradients are compiled as well, and graphs whose shapes change for
    each of the first shapes. What has no translation, or does not
    compile, runs in torch with a `SlowPathWarning`. Raises CometError for wrong
    options, and if `strict` for what is not compiled.
    """
    if mode not in (None, REDUCE_OVERHEAD):
        raise CometError(
            f"the back end 'comet' has no mode {mode!r}; it has {REDUCE_OVERHEAD!r}, "
            "for CUDA graphs"
        )
    chosen = _options(options or {})
    if mode == REDUCE_OVERHEAD:
        chosen = replace(chosen, cuda_graphs=True)
    interpret_without_gpu()

    def compiled(part: fx.GraphModule, _: Sequence[torch.Tensor]) -> Function:
        fused = with_kernels(part, chosen)
        own_results(fused)
        return make_boxed_func(fused.forward)

    compilers = {"fw_compiler": compiled}
    if any(map(changes, inputs)):
        compile_ = partial(_with_gradients, compilers)
        return ByShape(graph, inputs, compile_, partial(_slow, options=chosen))
    if chosen.cuda_graphs:
        from comet.pytorch.cuda_graphs import recording_compilers

        compilers = recording_compilers(compiled, len(inputs))
    return _with_gradients(compilers, graph, inputs)


def _with_gradients(
    compilers: Mapping[str, Compiler], graph: fx.GraphModule, inputs: Sequence[object]
) -> Function:
    """Return a graph of Dynamo and its gradients, compiled by the compilers of each."""
    compiler = aot_autograd(**compilers, decompositions=decompositions())
    with whole_attention(graph):
        return cast(Function, compiler(graph, inputs))


def _options(given: Mapping[str, object]) -> Options:
    """Return the options, or raise CometError for those that there are not."""
    names = Options.__dataclass_fields__
    if wrong := [name for name in given if name not in names]:
        raise CometError(
            f"the back end 'comet' has no option {wrong[0]!r}; it has "
            f"{', '.join(names)}"
        )
    named = {"hardware": environ.get(HARDWARE), "cache": environ.get(CACHE)}
    known = named | dict(given)
    if not known["hardware"]:
        raise CometError(
            "the back end 'comet' needs a hardware file: "
            f"options={{'hardware': ..}}, or the variable {HARDWARE}"
        )
    texts = {name: str(known[name]) for name in names if known.get(name)}
    graphs, strict = (bool(texts.pop(name, "")) for name in ("cuda_graphs", "strict"))
    return Options(**texts, cuda_graphs=graphs, strict=strict)


class _Support(OperatorSupportBase):
    """
    The nodes that have a translation, and why others have none.

    `reasons` has why for the name of an op, and `lines` has for a reason the first line
    of the model to which it applies, where torch knows it.
    """

    def __init__(self, device: torch.device, obstacles: Mapping[str, str]) -> None:
        """Refuse the collectives of groups to which there is an obstacle."""
        self._device = device
        self._obstacles = obstacles
        self._known: dict[fx.Node, bool] = {}
        self.reasons: dict[str, str] = {}
        self.lines: dict[str, str] = {}

    def is_node_supported(
        self, submodules: Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        return self.has(node)

    def has(self, node: fx.Node) -> bool:
        """Return whether a node has a translation, as it was when first asked for."""
        if node not in self._known:
            self._known[node] = self._is_translated(node)
        return self._known[node]

    def _is_translated(self, node: fx.Node) -> bool:
        if node.op != "call_function" or node.meta.get("val") is None:
            return False  # What computes nothing is a check, as of indices.
        if op_name(node) in VIEWS or DRAWS_SEEDS in node.meta:
            return False
        if node.target is operator.getitem:
            return self.has(cast(fx.Node, node.args[0]))
        if any(tensor.device != self._device for tensor in meta_of(node)):
            return False  # Numbers that a program on the host computes.
        reason = self._obstacles.get(group_of(node) or "") or refusal(node)
        if op_name(node) == WAIT and not reason:
            begun = cast(fx.Node, node.args[0])
            if not is_collective(begun) or not self.has(begun):
                reason = "it waits for what torch has begun"
        if reason is None:
            return True
        self.reasons[op_name(node)] = reason
        if line := line_of(node):
            self.lines.setdefault(reason, line)
        return False


def with_kernels(graph: fx.GraphModule, options: Options) -> fx.GraphModule:
    """
    Return a graph of ATen ops whose largest translatable parts are regions.

    Those with collectives are programs of the ranks of one group, if `options` say how
    these are compiled. Other collectives are between regions, and all are if such a
    program does not compile. Warns, or raises CometError if `options.strict`, of what
    runs in torch.
    """
    graph = with_seeds_drawn_at_once(with_real_numbers(graph))
    groups = chains(graph.graph)
    obstacles = dict.fromkeys(groups, NOT_ASKED)
    if groups and options.pipeline_of_ranks is not None:
        ranks = ranks_of(options.pipeline_of_ranks)
        obstacles = processes.obstacles(graph.graph, ranks)
    if len(obstacles) < len(groups):
        try:
            copy = fx.GraphModule(graph, deepcopy(graph.graph))
            return _partitioned(copy, options, obstacles)
        except _NotOfRanksError as error:
            obstacles = dict.fromkeys(groups, str(error)) | obstacles
    return _partitioned(graph, options, obstacles)


class _NotOfRanksError(Exception):
    """A part with collectives that does not compile; the message says why."""


def _partitioned(
    graph: fx.GraphModule, options: Options, obstacles: Mapping[str, str]
) -> fx.GraphModule:
    """
    Return a graph with regions, which have the collectives of the group that
    `obstacles` lacks.
    """
    device = _device_of(graph)
    support = _Support(device, obstacles)
    with _in_order(graph, support):
        partitioner = CapabilityBasedPartitioner(
            graph, support, allows_single_node_partition=True
        )
        fused = partitioner.fuse_partitions(partitioner.propose_partitions())
    keep_strides(fused)
    for name, part in list(fused.named_children()):
        # A part without inputs makes constants, and torch knows on which device.
        if isinstance(part, fx.GraphModule) and part.graph.find_nodes(op="placeholder"):
            setattr(fused, name, _region(part, device, options))
    for message in _by_reason(support):
        _slow(message, options)
    return fused


@contextmanager
def _in_order(graph: fx.GraphModule, support: _Support) -> Generator[None]:
    """
    Let no part be such that the collectives which torch begins change their order.

    Other processes may have other parts, but must begin them in the same order. So each
    one is an operand of the next one until the parts are known.
    """
    begun = [
        node
        for node in graph.graph.nodes
        if is_collective(node) and op_name(node) != WAIT and not support.has(node)
    ]
    for before, node in pairwise(begun):
        node.kwargs = {**node.kwargs, AFTER: before}
    yield
    for node in graph.graph.nodes:
        node.kwargs = {key: node.kwargs[key] for key in node.kwargs if key != AFTER}
    graph.recompile()


def _by_reason(support: _Support) -> Iterator[str]:
    """Yield a sentence for each reason why ops run in torch; it names two of them."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name, reason in support.reasons.items():
        alike[reason].append(name)
    for reason, names in alike.items():
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        verb = "run" if len(names) > 1 else "runs"
        where = f" ({line})" if (line := support.lines.get(reason)) else ""
        yield f"{', '.join(names[:2])}{more} {verb} in torch: {reason}{where}"


def _device_of(graph: fx.GraphModule) -> torch.device:
    """Return the device of a graph: the host, if no tensor is on another one."""
    devices = (tensor.device for node in graph.graph.nodes for tensor in meta_of(node))
    return next((each for each in devices if each.type != "cpu"), torch.device("cpu"))


def _region(
    part: fx.GraphModule, device: torch.device, options: Options
) -> torch.nn.Module:
    """Return a compiled part, or the part itself if it does not compile."""
    group = next(filter(None, map(group_of, part.graph.nodes)), None)
    try:
        source = imported(part.graph, "graph")
        text = printed(source.module)
        function = None
        if source.computes and group is None:
            function = _loaded(text, options, device)
        elif source.computes:
            function = _loaded_for_ranks(text, options, device, group)
    except (CometError, UnsupportedError, VerifyException) as error:
        if group is not None:
            raise _NotOfRanksError(
                f"their program does not compile: {error}"
            ) from error
        size = len(part.graph.nodes)
        _slow(f"a part of {size} nodes runs in torch: {error}", options)
        return part
    (output,) = part.graph.find_nodes(op="output")
    single = isinstance(output.args[0], fx.Node)
    return Region(source, function, device, single=single)


@cache
def _loaded(text: str, options: Options, device: torch.device) -> Function:
    """Return the function of a program; equal ones are compiled once."""
    how = options.hardware, options.pipeline, options.cache
    module = emitted(text, *how, graph=options.cuda_graphs)
    function = cast(Function, loaded(module).graph)
    if options.cuda_graphs and isinstance(function, PlanFunction):
        with unset_fake_temporarily():  # Tensors made by a compilation have no memory.
            function.allocate(device)
    return function


@cache
def _loaded_for_ranks(
    text: str, options: Options, device: torch.device, name: str
) -> Function:
    """
    Return what this process does in a program of the ranks of the group `name`.

    The first of these compiles.
    """
    assert options.pipeline_of_ranks is not None  # Or parts have no collectives.
    how = options.hardware, options.pipeline_of_ranks, options.cache
    make = partial(emitted, text, *how, graph=options.cuda_graphs)
    group = named(name)
    module = processes.from_first_rank(make, group)
    program = cast(RankProgram, loaded(module).PROGRAM)
    return processes.rank_function(program, device, group)


def _slow(message: str, options: Options) -> None:
    if options.strict:
        raise CometError(message)
    warnings.warn(message, SlowPathWarning, stacklevel=2)
