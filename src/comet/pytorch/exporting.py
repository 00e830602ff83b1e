"""Models of torch as programs: `comet.from_torch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature

import torch
from torch import distributed, fx
from torch.export import ExportedProgram, export
from torch.export.graph_signature import OutputKind
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from xdsl.dialects.builtin import ModuleOp

from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.complex_numbers import with_real_numbers
from comet.pytorch.decompositions import with_whole_attention
from comet.pytorch.importer import Imported, imported
from comet.pytorch.random_numbers import take_seeds
from comet.tools.checks import verify_module
from comet.tools.diagnostics import UsageError, errors_as_sentences


class _Function(torch.nn.Module):
    """A function as a module, which `torch.export` takes."""

    def __init__(self, function: Callable[..., object]):
        super().__init__()
        self._function = function

    def forward(self, *inputs: torch.Tensor) -> object:
        return self._function(*inputs)


def _module_of(
    model: Callable[..., object] | ExportedProgram, inputs: Sequence[object]
) -> torch.nn.Module:
    """Return a model as a module; raise UsageError if it does not take `inputs`."""
    if isinstance(model, ExportedProgram):
        model = model.module()
    if not callable(model):
        kind = type(model).__name__
        raise UsageError(f"from_torch: a model is a module or a function, not {kind}")
    for number, value in enumerate(inputs, 1):
        if not isinstance(value, torch.Tensor):
            kind = type(value).__name__
            raise UsageError(
                f"from_torch: input {number} is a tensor, not {kind}; give a function "
                "of tensors, which calls the model with all else"
            )
    is_module = isinstance(model, torch.nn.Module)
    try:
        signature(model.forward if is_module else model).bind(*inputs)
    except ValueError:
        pass  # Functions of C have no signature.
    except TypeError as error:
        reason = f"the model does not take {len(inputs)} inputs, {error}"
        raise UsageError(f"from_torch: {reason}") from error
    return model if is_module else _Function(model)


def _exported(
    module: torch.nn.Module, inputs: Sequence[torch.Tensor]
) -> ExportedProgram:
    """Return what `torch.export` traces; raise UsageError for what it cannot trace."""
    try:
        return export(module, tuple(inputs))
    except GuardOnDataDependentSymNode:
        raise
    except Exception as error:  # Whatever the code of a model raises.
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UsageError(
            f"from_torch: torch.export does not trace the model ({reason}); call "
            "torch.export.export with it, which says where"
        ) from error


def _without_assertions(graph: fx.Graph) -> fx.Graph:
    """Remove what `torch.export` checks of types and shapes while a model runs."""
    for node in [*graph.nodes]:
        if node.op == "call_function" and node.meta.get("val") is None:
            graph.erase_node(node)
    return graph


def _imported(
    module: torch.nn.Module, inputs: Sequence[torch.Tensor], name: str
) -> Imported:
    """Return a model as a function; in a process group, what its ranks do."""
    if distributed.is_available() and distributed.is_initialized():
        from comet.pytorch.spreading import spread

        found = spread(module, inputs)
        return imported(found.graph, name, found.shards, found.group)
    exported = _exported(module, inputs)
    pure = exported.run_decompositions(with_whole_attention())  # pyright: ignore[reportUnknownMemberType]
    outputs = pure.graph_signature.output_specs
    changes = [each for each in outputs if each.kind != OutputKind.USER_OUTPUT]
    if changes:
        raise UsageError(
            f"the model changes {changes[0].target}; call its eval(), or compute "
            "without changes"
        )
    graph = _without_assertions(with_real_numbers(pure.graph_module).graph)
    take_seeds(graph)
    return imported(graph, name)


def from_torch(
    model: Callable[..., object] | ExportedProgram,
    *inputs: torch.Tensor,
    name: str = "main",
) -> ModuleOp:
    """
    Return what a model computes as a program of elementary ops, without its gradients.

    `model` is a `torch.nn.Module`, a function of tensors, or what `torch.export` has
    made of one; it is traced with `inputs` by `torch.export`, so shapes are those of
    `inputs`, and may be on the device `meta`.
    The function `name` takes the parameters and buffers of the model, and then the
    inputs, each in the order of memory and without axes of one element; axes that the
    program cuts, such as those of heads, are several. Behind these it takes a seed for
    each random op, as of dropout. Its results are in the order of
    their axes. A result that is an argument, or a view of one or of another result, is
    left out. Needs the extra `run`. Raises CometError if the model does not take the
    inputs, changes its buffers or its inputs, or decides by the value of a tensor, if
    no result is left, or if an op has no translation.
    """
    with errors_as_sentences():
        try:
            found = _imported(_module_of(model, inputs), inputs, name)
        except UnsupportedError as error:
            raise UsageError(
                f"from_torch: {error}; compute it outside of the model, or by ops that "
                "docs/pytorch.md lists"
            ) from error
        except GuardOnDataDependentSymNode as error:
            raise UsageError(
                "from_torch: the model decides by the value of a tensor; compute both "
                "cases, and choose with torch.where"
            ) from error
        if not found.computes:
            raise UsageError(
                "from_torch: all results are arguments or views of them, so there is "
                "nothing to compute; return what the model computes"
            )
        verify_module(found.module)
        return found.module
