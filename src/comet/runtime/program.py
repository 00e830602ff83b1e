"""Descriptions in an emitted module, by which it is run and checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch

    from comet.runtime.ranks import Rank

    Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class Tensor:
    """Shape and element type of an argument or result, in elements."""

    shape: tuple[int, ...]
    dtype: str
    """
    The name of a torch element type: float16, bfloat16, float32, int8, int32, int64 or
    bool.
    """
    terms: int = 1
    """
    The number of products in the sums that this operand takes part in. Checks draw it
    with variance terms**-1/2, so that the sums have variance 1 at every size.
    """
    split: int | None = None
    """
    The axis that is sharded over the ranks: ceil(extent / ranks) each, the last shards
    fewer. None: every rank has the whole tensor.
    """
    at_least: int = 1
    at_most: int = 1
    """An input of integers is drawn from `at_least` to `at_most`."""
    address: Callable[..., torch.Tensor] | None = None
    """
    Takes a plan and the number of a launch, from 1; returns where on the rank this
    input has to be for that launch. None: it is an argument of the launch.
    """
    same_as: int | None = None
    """The index of the input that this one repeats with another sharding."""
    rounding: float = 0.0
    """The expected relative rounding error of a result."""


@dataclass(frozen=True)
class Program:
    """One compiled function, with its reference."""

    launch: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
    """The launch plan: torch tensors in, torch tensors out."""
    reference: Callable[..., Array | tuple[Array, ...]]
    """The same function on numpy arrays of float64."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


RankFunction = Callable[..., "torch.Tensor | tuple[torch.Tensor, ...]"]
"""
What a rank does in each launch: takes its shards of `RankProgram.arguments`, returns
its shards of the outputs.
"""


@dataclass(frozen=True)
class RankProgram:
    """One function compiled for several ranks, with its reference."""

    plan: Callable[[Rank], RankFunction]
    """Allocates a rank's memory once; returns what the rank does in each launch."""
    reference: Callable[..., Array | tuple[Array, ...]]
    """The function on unsharded numpy arrays of float64."""
    ranks: int
    inputs: tuple[Tensor, ...]
    """The unsharded arguments; one with two shardings is listed twice."""
    outputs: tuple[Tensor, ...]

    @property
    def arguments(self) -> tuple[Tensor, ...]:
        """The inputs that a launch takes as arguments."""
        return tuple(tensor for tensor in self.inputs if tensor.address is None)


def expect_tensor(
    name: str, tensor: torch.Tensor, shape: tuple[int, ...], dtype: str
) -> None:
    """
    Raise `ValueError` unless the tensor is what the kernel was compiled for.

    Kernels compute addresses from the shape, so it has to be contiguous. On the CPU
    only Triton's interpreter runs kernels. Kernels have no gradients, so none may be
    asked for.
    """
    import torch

    if not hasattr(tensor, "is_contiguous"):
        kind = type(tensor)
        raise ValueError(
            f"{name} is a {kind.__module__}.{kind.__name__}; pass a tensor of torch"
        )
    if tensor.device.type == "cpu" and os.environ.get("TRITON_INTERPRET", "0") != "1":
        raise ValueError(
            f"{name} is on the CPU, where only Triton's interpreter runs kernels: use "
            "comet-run, or set TRITON_INTERPRET=1 before triton is imported; else move "
            "the inputs to a GPU"
        )
    found = (tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
    if found != (shape, dtype):
        raise ValueError(
            f"{name} is {found[1]} of shape {found[0]}; the kernel was compiled for "
            f"{dtype} of shape {shape}"
        )
    if not tensor.is_contiguous():
        raise ValueError(f"{name} is not contiguous; pass {name}.contiguous()")
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ValueError(
            f"{name} requires a gradient, which emitted kernels do not compute; call "
            'under torch.no_grad(), or use torch.compile(backend="comet")'
        )


def load_module(path: str) -> ModuleType:
    """
    Import an emitted module from its file.

    Raises `ValueError`, in one sentence, if that is impossible.
    """
    spec = spec_from_file_location("comet_emitted", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file; emit one with -t triton")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except SyntaxError as error:
        raise ValueError(f"{path}:{error.lineno} is not Python: {error.msg}") from error
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{path} needs the package {error.name}, which is not installed; "
            "install comet-compiler[run]"
        ) from error
    return module


def program_of(module: ModuleType, path: str) -> Program | RankProgram:
    """
    Return the `PROGRAM` of an imported module.

    Raises `ValueError` if it has none.
    """
    program = getattr(module, "PROGRAM", None)
    if not isinstance(program, Program | RankProgram):
        raise ValueError(f"{path} defines no PROGRAM; emit one with -t triton")
    return program
