"""
CUDA graphs of compiled models, for `torch.compile(.., mode="reduce-overhead")`.

A graph of a model launches many kernels, and the CPU needs longer for a launch than a
small kernel takes. So the launches of one call are recorded as a CUDA graph, which
later calls replay in one launch. The recording is torch's own, `cudagraph_trees`, as
inductor has it for the same mode: the first call of each shape runs as usual, the
second one is recorded, and the next call may overwrite the results of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import fx
from torch._dynamo.backends.cudagraphs import (
    check_for_skip,
    find_input_mutations,
    get_device_index,
    get_stack_traces,
)
from torch._inductor.compile_fx import get_static_input_idxs
from torch._inductor.cudagraph_trees import cudagraphify_impl, get_manager
from torch._inductor.cudagraph_utils import (
    OutputType,
    get_placeholder_info,
    log_cudagraph_skip_and_bump_counter,
)
from torch._inductor.utils import InputType, count_tangents, num_fw_fixed_arguments

Boxed = Callable[[list[InputType]], OutputType]
"""A compiled graph: it takes a list of its inputs, which it may empty."""
Inputs = Sequence[torch.Tensor]
Function = Callable[..., object]
Compiler = Callable[[fx.GraphModule, Inputs], Function]


def recording_compilers(compiler: Compiler, inputs: int) -> dict[str, Compiler]:
    """
    Return the compilers of a model of some `inputs`, as `aot_autograd` takes them.

    `compiler` compiles one graph. What these return records its launches, and replays
    them. Graphs that cannot be recorded run as usual: those with tensors of the host,
    of several GPUs, or with ops that a CUDA graph does not have; torch logs why.
    """
    recorder = _Recorder(compiler, inputs)
    return {
        "fw_compiler": recorder.forward,
        "bw_compiler": recorder.backward,
        "inference_compiler": recorder.inference,
    }


@dataclass
class _Recorder:
    """Compilers of the graphs of one model, whose results record their launches."""

    compiler: Compiler
    """Compiles a graph; what it returns launches kernels one by one."""
    inputs: int
    """The number of inputs of the model."""
    _device: int | None = None
    """The GPU of the forward graph, if that is recorded."""

    def forward(self, graph: fx.GraphModule, inputs: Inputs) -> Function:
        """Compile the forward graph of a model that learns."""
        return self._called(graph, inputs, is_inference=False)

    def inference(self, graph: fx.GraphModule, inputs: Inputs) -> Function:
        """Compile the graph of a model that does not learn."""
        return self._called(graph, inputs, is_inference=True)

    def backward(self, graph: fx.GraphModule, inputs: Inputs) -> Function:
        """Compile the gradients: recorded only if the forward graph is."""
        static = range(count_tangents(graph))
        if self._device is None or not _is_recorded(graph, len(static)):
            return self._not_recorded(self.compiler(graph, inputs))
        return self._recorded(graph, inputs, static, is_backward=True)

    def _called(
        self,
        graph: fx.GraphModule,
        inputs: Inputs,
        *,
        is_inference: bool,
    ) -> Function:
        count = num_fw_fixed_arguments(self.inputs, len(inputs))
        if not _is_recorded(graph, count):
            return self.compiler(graph, inputs)
        if not is_inference:
            self._device = get_device_index(graph)
        # Parameters keep their addresses, so that no call copies them.
        static = get_static_input_idxs(count)
        return self._recorded(graph, inputs, static, is_inference=is_inference)

    def _recorded(
        self,
        graph: fx.GraphModule,
        inputs: Inputs,
        static: Sequence[int],
        *,
        is_backward: bool = False,
        is_inference: bool = False,
    ) -> Function:
        """Compile a graph; `static` are the inputs that keep their addresses."""
        facts = {  # Of the graph as it is before parts of it are kernels.
            "device_index": get_device_index(graph),
            "stack_traces": get_stack_traces(graph),
            "placeholders": get_placeholder_info(graph.graph),
            "mutated_input_idxs": tuple(find_input_mutations(graph.graph)),
        }
        launches = self.compiler(graph, inputs)
        recorded = cudagraphify_impl(
            cast(Boxed, launches),
            list(inputs),
            static,
            **facts,
            is_backward=is_backward,
            is_inference=is_inference,
        )
        return _boxed(recorded)

    def _not_recorded(self, launches: Function) -> Function:
        """Return gradients that run as usual, behind a forward graph that may not."""
        manager = None if self._device is None else get_manager(self._device)
        if manager is None:
            return launches

        def run(inputs: list[InputType]) -> OutputType:
            # Otherwise the next forward call would be taken for a part of this step.
            manager.set_to_running_backward()
            return cast(Boxed, launches)(inputs)

        return _boxed(run)


def _is_recorded(graph: fx.GraphModule, static: int) -> bool:
    """Return whether a graph can be recorded; logs why not, as torch does."""
    reason = check_for_skip(graph, static)
    if reason is not None:
        log_cudagraph_skip_and_bump_counter(reason)
    return reason is None


def _boxed(run: Function) -> Function:
    """Return a function that `aot_autograd` gives a list of inputs."""
    setattr(run, "_boxed_call", True)
    return run
