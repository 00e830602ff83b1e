"""A part of a graph of torch as a module that launches kernels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import cast

import numpy as np
import torch

from comet.pytorch.importer import Imported

Function = Callable[..., object]


class Region(torch.nn.Module):
    """A part of a graph that comet has compiled."""

    def __init__(
        self,
        source: Imported,
        function: Function | None,
        device: torch.device,
        *,
        single: bool,
    ):
        super().__init__()
        self._source = source
        self._function = function
        self._device = device
        self._single = single

    def shares(self, number: int) -> bool:
        """
        Return whether a result has no memory of its own, but that of another one.

        That is an argument or another result, or there is one number for many elements.
        """
        if (output := self._source.outputs[number]) is None:
            return False
        return (
            output.source < len(self._source.arguments)
            or prod(output.shape) < prod(output.axes)
            or [o and o.source for o in self._source.outputs].count(output.source) > 1
        )

    def forward(self, *arguments: torch.Tensor) -> object:
        """
        Launch the kernels, and return what the part returns.

        As torch allows it, numbers and indices may be on the host: they are copied.
        """
        moved = [tensor.to(self._device) for tensor in arguments]
        pairs = zip(self._source.arguments, moved, strict=True)
        values = [layout.stored(tensor) for layout, tensor in pairs]
        if self._function is not None:
            with _without_warnings(self._device):
                found = self._function(*values)
            values += found if isinstance(found, tuple) else [cast(torch.Tensor, found)]
        outputs = [o if o is None else o.of(values) for o in self._source.outputs]
        return outputs[0] if self._single else tuple(outputs)


def _without_warnings(device: torch.device) -> AbstractContextManager[object]:
    """
    Let kernels of Triton's interpreter compute infinities and NaN without a warning.

    Its functions are numpy's, which warn where torch and GPUs do not.
    """
    return np.errstate(all="ignore") if device.type == "cpu" else nullcontext()
