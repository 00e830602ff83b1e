"""What an emitted module says about itself, so that it can be run and checked."""

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
    """The name of a torch element type: float16, bfloat16, float32 or int32."""
    terms: int = 1
    """
    An operand of sums of this many products. Checks draw it with variance terms**-1/2,
    so that the sums have variance 1 at every size.
    """
    split: int | None = None
    """
    The axis that ranks share, each ceil(extent / ranks), the last ones what is left;
    None where every rank holds all.
    """
    at_most: int = 1
    """Counts, of int32, are drawn from 1 to this."""
    place: Callable[..., torch.Tensor] | None = None
    """
    Returns, for a plan and the number of a launch, from 1, where this has to lie on the
    rank when it is launched; None: an argument of the launch.
    """
    again: int | None = None
    """The number of the input that this is too: ranks share it in two ways."""
    rounding: float = 0.0
    """The relative error of a result that rounding leads to expect."""


@dataclass(frozen=True)
class Program:
    """One compiled function, with its meaning beside it."""

    launch: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
    """The launch plan: torch tensors in, torch tensors out."""
    reference: Callable[..., Array | tuple[Array, ...]]
    """The same function on float64 numpy arrays."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


RankFunction = Callable[..., "torch.Tensor | tuple[torch.Tensor, ...]"]
"""
What a rank does in each launch: local tensors in, those without a place of their own;
local tensors out.
"""


@dataclass(frozen=True)
class RankProgram:
    """One function compiled for several ranks, with its meaning beside it."""

    plan: Callable[[Rank], RankFunction]
    """Allocates what a rank needs, once; returns what it does in each launch."""
    reference: Callable[..., Array | tuple[Array, ...]]
    """The function on whole float64 numpy arrays."""
    ranks: int
    inputs: tuple[Tensor, ...]
    """The whole arguments, and how ranks share them; one of two ways comes twice."""
    outputs: tuple[Tensor, ...]

    @property
    def arguments(self) -> tuple[Tensor, ...]:
        """The inputs that a launch takes as arguments."""
        return tuple(tensor for tensor in self.inputs if tensor.place is None)


def expect_tensor(
    name: str, tensor: torch.Tensor, shape: tuple[int, ...], dtype: str
) -> None:
    """
    Raise `ValueError` unless a kernel compiled for this shape and type can take it.

    Kernels address rows and columns by the shape alone, so it has to be contiguous. On
    the CPU nothing but Triton's interpreter runs them.
    """
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


def load_module(path: str) -> ModuleType:
    """
    Import an emitted module from its file.

    Raises `ValueError` in one sentence where that cannot be done.
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
    Return what an imported module says about itself.

    Raises `ValueError` where it says nothing.
    """
    program = getattr(module, "PROGRAM", None)
    if not isinstance(program, Program | RankProgram):
        raise ValueError(f"{path} defines no PROGRAM; emit one with -t triton")
    return program
