"""
Runs single programs of kernels in Triton's interpreter, and reports their accesses.

Only this module uses the inside of the interpreter; Triton 3.6 to 3.9 agree in all
that is used here.
"""

# Triton has no type stubs, and its interpreter no types.
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

import inspect
import itertools
import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import triton.language as tl
from triton.language import core
from triton.runtime import interpreter
from triton.runtime.interpreter import GridExecutor, InterpretedFunction, TensorHandle

from comet.runtime.flags import INTEGERS, flag_value
from comet.runtime.memory import Access, Kind, SyncScope
from comet.runtime.polling import polled_by
from comet.runtime.progress import Progress
from comet.runtime.ranks import KernelCall
from comet.runtime.replay import replayed

SCOPES = {"CTA": SyncScope.CTA, "GPU": SyncScope.GPU, "SYSTEM": SyncScope.SYSTEM}
ACQUIRE = ("ACQUIRE", "ACQUIRE_RELEASE")
RELEASE = ("RELEASE", "ACQUIRE_RELEASE")


class Observer(Protocol):
    """Observes the memory operations of the program that runs."""

    def before(self, access: Access) -> None:
        """Handle an access to come; an atomic may turn out to write nothing."""
        ...

    def after(self, access: Access) -> None:
        """Handle an access after it was made."""
        ...

    def fence(self) -> None:
        """Handle a barrier of the threads inside the program."""
        ...

    def poll(self, address: int, width: int, value: int) -> None:
        """Return when the flag of `width` bytes may have reached the value."""
        ...


class Kernel:
    """A kernel with its arguments, ready to run any program of its grid."""

    def __init__(self, launch: KernelCall):
        """Raise `ValueError` if the launch cannot be interpreted."""
        function = launch.kernel
        if not isinstance(function, InterpretedFunction):
            raise ValueError(
                f"{function} is no kernel of Triton's interpreter; "
                "set TRITON_INTERPRET=1 before triton is imported"
            )
        self._function = function.rewrite()
        self.name: str = function.fn.__name__
        self.file = Path(function.fn.__code__.co_filename).name
        self.grid = tuple(launch.grid) + (1,) * (3 - len(launch.grid))
        names = inspect.signature(self._function).parameters
        keywords = {n: v for n, v in launch.keywords.items() if n in names}
        self._arguments: Mapping[str, Any] = inspect.getcallargs(
            self._function, *launch.arguments, **keywords
        )
        executor = GridExecutor(self._function, function.arg_names, self.grid)
        self._constexprs = executor.constexprs

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """
        Yield the tensors among the arguments, and the names of their parameters.

        Raises `ValueError` for a tensor that is not on the CPU.
        """
        for name, value in self._arguments.items():
            tensor = getattr(value, "base", value)  # of a tensor descriptor
            if isinstance(tensor, torch.Tensor):
                if tensor.device.type != "cpu":
                    raise ValueError(f"{name} of {self.name} is on {tensor.device}")
                yield name, tensor

    def indices(self) -> Iterator[tuple[int, int, int]]:
        """Yield the programs of the grid in the order in which a GPU starts them."""
        for z, y, x in itertools.product(*map(range, reversed(self.grid))):
            yield x, y, z

    def run(self) -> None:
        """Run the entered program; as on a GPU, inf and nan raise nothing."""
        with np.errstate(all="ignore"):  # padding may overflow; masks discard it
            self._function(**self._converted)

    @cached_property
    def _converted(self) -> Mapping[str, Any]:
        """The arguments in the interpreter's form, the same for all programs."""
        return {
            name: value
            if name in self._constexprs
            else interpreter._implicit_cvt(value)
            for name, value in self._arguments.items()
        }

    def enter(self, index: tuple[int, int, int]) -> None:
        """Set the index that `tl.program_id` returns."""
        interpreter.interpreter_builder.set_grid_dim(*self.grid)
        interpreter.interpreter_builder.set_grid_idx(*index)

    def location(self) -> str:
        """Return file and line of the kernel that the calling thread executes."""
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code is self._function.__code__:
                return f"{self.file}:{frame.f_lineno}"
            frame = frame.f_back
        return self.file

    def location_of(self, error: BaseException) -> str:
        """Return file and line of the kernel that raised an error."""
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code is self._function.__code__:
                return f"{self.file}:{line}"
        return self.file


def _active(pointers: Any, mask: Any) -> tuple[np.ndarray, int]:
    """Return the addresses that a mask admits, and the bytes of an element."""
    addresses, admitted = pointers.data, mask.data
    width = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
    if admitted.all():
        return addresses.reshape(-1), width
    return addresses[np.broadcast_to(admitted, addresses.shape)], width


def _watched(kind: Kind, mask: int) -> Callable[[Callable[..., Any], Observer], Any]:
    """Watch loads or stores, whose mask is the argument of that number."""

    def watch(original: Callable[..., Any], observer: Observer) -> Any:
        def access(*arguments: Any, **keywords: Any) -> Any:
            seen = Access(kind, *_active(arguments[0], arguments[mask]))
            observer.before(seen)
            result = original(*arguments, **keywords)
            observer.after(seen)
            return result

        return access

    return watch


def _atomic(addresses: np.ndarray, width: int, writes: bool, order: Any, scope: Any):
    kind = Kind.ATOMIC_WRITE if writes else Kind.ATOMIC_READ
    acquire, release = order.name in ACQUIRE, order.name in RELEASE
    return Access(kind, addresses, width, acquire, release, SCOPES[scope.name])


def _done(access: Access) -> Iterator[Access]:
    """Yield a completed access; a release flag by flag, with the value it stored."""
    if not access.release or access.width not in INTEGERS:
        yield access
        return
    for address in access.addresses:
        left = flag_value(int(address), access.width)
        yield replace(access, addresses=np.array([address]), left=left)


def _watched_rmw(original: Callable[..., Any], observer: Observer) -> Any:
    def rmw(op: Any, pointers: Any, value: Any, mask: Any, order: Any, scope: Any):
        neutral = op.name in NEUTRAL_ZERO and not np.any(value.data)
        access = _atomic(*_active(pointers, mask), not neutral, order, scope)
        observer.before(access)
        old = original(op, pointers, value, mask, order, scope)
        for part in _done(access):
            observer.after(part)
        return old

    return rmw


def _watched_cas(original: Callable[..., Any], observer: Observer) -> Any:
    def cas(pointers: Any, compare: Any, value: Any, order: Any, scope: Any) -> Any:
        always = type(pointers)(np.ones_like(pointers.data, dtype=bool), tl.int1)
        where = _active(pointers, always)
        observer.before(_atomic(*where, True, order, scope))
        old = original(pointers, compare, value, order, scope)
        writes = (old.data == compare.data) & (value.data != compare.data)
        observer.after(_atomic(*where, bool(np.any(writes)), order, scope))
        return old

    return cas


def _watched_barrier(original: Callable[..., Any], observer: Observer) -> Any:
    def barrier() -> Any:
        observer.fence()
        return original()

    return barrier


def _mended_splat(original: Callable[..., Any], observer: Observer) -> Any:
    """Broadcast a comparison as a mask: the interpreter gives it a wrong type."""

    def splat(type: Any, value: Any) -> Any:
        if value.data.dtype == bool:
            value = TensorHandle(value.data, tl.int1)
        return original(type, value)

    return splat


@contextmanager
def launched_by(launch: Callable[..., object]) -> Iterator[None]:
    """Make `kernel[grid](...)` call `launch(kernel, grid, ...)`, as `Rank.launch`."""

    def run(kernel: Any, *arguments: Any, grid: Any, warmup: bool, **keywords: Any):
        launch(kernel, grid, *arguments, **keywords)

    original = InterpretedFunction.run
    setattr(InterpretedFunction, "run", run)
    try:
        yield
    finally:
        setattr(InterpretedFunction, "run", original)


def _show_language() -> Any:
    """Serves as a function that uses the modules which the interpreter patches."""
    return tl, core


NEUTRAL_ZERO = ("ADD", "FADD", "OR", "XOR")
"""The atomics that write nothing if the value is zero, as a poll does."""

WATCHED = {
    "create_masked_load": _watched(Kind.READ, 1),
    "create_masked_store": _watched(Kind.WRITE, 2),
    "create_atomic_rmw": _watched_rmw,
    "create_atomic_cas": _watched_cas,
    "create_barrier": _watched_barrier,
    "create_splat": _mended_splat,
}
"""
The interpreter's methods for all memory operations, and one that has a bug.
"""


@contextmanager
def sums_unchecked() -> Iterator[None]:
    """Leave out checks of integers for overflow, whose answer only debug mode uses."""
    builder = interpreter.interpreter_builder
    options = builder.options
    builder.options = replace(options, sanitize_overflow=options.debug)
    try:
        yield
    finally:
        builder.options = options


@contextmanager
def patched_once() -> Iterator[None]:
    """
    Let `tl` and `core` be the interpreter's in all threads while the body runs.

    The interpreter would patch them anew for each call of a device function, which is a
    third of the time of small kernels.
    """
    patch = interpreter._patch_lang
    scope = patch(_show_language)
    interpreter._patch_lang = lambda function: interpreter._LangPatchScope()
    try:
        yield
    finally:
        interpreter._patch_lang = patch
        scope.restore()


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Let kernels run in this process, and report their accesses to the observer."""
    builder = interpreter.interpreter_builder
    with ExitStack() as stack:
        stack.enter_context(replayed())
        stack.enter_context(patched_once())
        stack.enter_context(sums_unchecked())
        for name, watched in WATCHED.items():
            setattr(builder, name, watched(getattr(builder, name), observer))
            stack.callback(delattr, builder, name)
        stack.enter_context(polled_by(observer.poll))
        yield


@contextmanager
def counted(progress: Progress) -> Iterator[None]:
    """
    Count the programs of kernels that Triton launches itself, one by one.

    As on a GPU, inf and nan raise nothing. Saves what `patched_once` and
    `sums_unchecked` save.
    """
    builder = interpreter.interpreter_builder
    set_grid, set_index = builder.set_grid_dim, builder.set_grid_idx

    stage = progress.stage

    def launched(*grid: int) -> None:
        nonlocal stage
        stage = progress.launch(math.prod(grid))
        set_grid(*grid)

    def entered(*index: int) -> None:
        if any(index):  # the program before it has ended
            stage.end()
        set_index(*index)

    with ExitStack() as stack:
        stack.enter_context(patched_once())
        stack.enter_context(sums_unchecked())
        stack.enter_context(np.errstate(all="ignore"))
        for name, method in (("set_grid_dim", launched), ("set_grid_idx", entered)):
            setattr(builder, name, method)
            stack.callback(delattr, builder, name)
        yield
