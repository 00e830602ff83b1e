"""How a program waits for a flag under Triton's interpreter."""

# Triton's tensors have no type stubs.
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from comet.runtime.flags import flag_value

Poll = Callable[[int, int, int], None]
"""
Takes the address of a flag, its width in bytes, and a value; returns when the flag
has reached the value.
"""


def spin(address: int, width: int, value: int) -> None:
    """Let other processes run until one of them sets the flag."""
    while flag_value(address, width) < value:
        time.sleep(0)


class _Hook:
    """The function that waits; a back end replaces it."""

    call: Poll = staticmethod(spin)


@contextmanager
def polled_by(poll: Poll) -> Iterator[None]:
    """Make waits call this function inside the `with` block."""
    before = _Hook.call
    _Hook.call = staticmethod(poll)
    try:
        yield
    finally:
        _Hook.call = staticmethod(before)


def poll(flag: Any, value: Any) -> None:
    """Let the back end wait until a flag reaches a value; the shim calls this."""
    address = int(flag.handle.data.item())
    width = flag.dtype.element_ty.primitive_bitwidth // 8
    _Hook.call(address, width, _as_int(value))


def _as_int(value: Any) -> int:
    if hasattr(value, "handle"):
        return int(value.handle.data.item())
    return int(getattr(value, "value", value))


# Compiled kernels name it in a branch that is never taken. Even there Triton accepts
# only functions that are marked as its own.
poll.__triton_builtin__ = True
