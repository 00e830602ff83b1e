"""
Replays calls of Triton's language in its interpreter, to save time.

For `x + 1` the language examines types, promotes, broadcasts, and calls a builder. As
in any compiler, these calls depend on types and constants alone, not on data. So the
first call with given types and constants records the builder's operations; later calls
only execute them, which is several times as fast.
"""

# Triton has no type stubs, and its interpreter no types.
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

LIMIT = 1 << 14
"""How many calls are recorded."""

FOLDED = (
    "create_broadcast",
    "create_expand_dims",
    "create_int_cast",
    "create_make_range",
    "create_reshape",
    "create_splat",
)
"""Operations that are executed once if all operands are constants."""


class _UnknownError(Exception):
    """A call has an argument of a kind that is not handled here."""


@dataclass(frozen=True)
class _Plan:
    """The recorded operations of a call."""

    values: tuple[Any, ...]
    """The arguments' slots, then constants, then slots of results."""
    operations: tuple[tuple[str, int, tuple[int, ...]], ...]
    """Methods of the builder, the slots of their results and of their arguments."""
    result: Any
    """The result, if it is constant."""
    slot: int | None
    """Otherwise the slot of the result."""
    fields: Mapping[str, Any]
    """The other fields of the result's tensor."""

    def run(self, handles: list[Any]) -> Any:
        """Execute the operations; return the result."""
        values = [*handles, *self.values[len(handles) :]]
        builder = interpreter.interpreter_builder
        for name, target, slots in self.operations:
            values[target] = getattr(builder, name)(*[values[at] for at in slots])
        if self.slot is None:
            return self.result
        tensor = object.__new__(tl.tensor)
        tensor.__dict__.update(self.fields)
        tensor.handle = values[self.slot]
        return tensor


class _Recorder:
    """Wraps the builder for one call, and records its operations."""

    def __init__(self, handles: Iterable[Any]):
        self._values = list(handles)
        self._fixed = [False] * len(self._values)
        self._operations: list[tuple[str, int, tuple[int, ...]]] = []
        self._lost = False
        """Whether an operation cannot be recorded."""

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the builder; its methods also record their calls."""
        member = getattr(interpreter.interpreter_builder, name)
        if not name.startswith(("create_", "get_")):
            return member

        def recorded(*arguments: Any, **keywords: Any) -> Any:
            result = member(*arguments, **keywords)
            if name.startswith("create_") or isinstance(result, TensorHandle):
                self._note(name, arguments, result)
                self._lost |= bool(keywords)
            return result

        return recorded

    def plan(self, result: Any) -> _Plan | None:
        """Return the recorded operations, if all could be recorded."""
        slot, fields = None, {}
        if type(result) is tl.tensor:
            slot = self._slot(result.handle)
            fields = {k: v for k, v in vars(result).items() if k != "handle"}
        elif not isinstance(result, int | str | None):
            self._lost = True
        if self._lost:
            return None
        values = zip(self._values, self._fixed, strict=True)
        constants = tuple(value if fixed else None for value, fixed in values)
        return _Plan(constants, tuple(self._operations), result, slot, fields)

    def _note(self, name: str, arguments: tuple[Any, ...], result: Any) -> None:
        slots = tuple(map(self._slot, arguments))
        folded = name.startswith("get_") or name in FOLDED
        fixed = folded and all(self._fixed[slot] for slot in slots)
        target = self._add(result, fixed)
        if not fixed:
            self._operations.append((name, target, slots))
        elif isinstance(result, TensorHandle):
            result.data.flags.writeable = False
        self._lost |= not isinstance(result, TensorHandle | None)

    def _slot(self, value: Any) -> int:
        """Return the slot of a value; what is not a tensor is a new constant."""
        if isinstance(value, TensorHandle):
            for slot, recorded in enumerate(self._values):
                if recorded is value:
                    return slot
            self._lost = True
        if isinstance(value, list | tuple):
            self._lost |= any(isinstance(entry, TensorHandle) for entry in value)
        return self._add(value, fixed=True)

    def _add(self, value: Any, fixed: bool) -> int:
        self._values.append(value)
        self._fixed.append(fixed)
        return len(self._values) - 1


def _key(value: Any, handles: list[Any]) -> Any:
    """
    Return a key for the decisions that depend on an argument; collect its tensors.

    Raises `_UnknownError` for a kind of argument that is not handled here.
    """
    kind = type(value)
    if kind is tl.tensor:
        handles.append(value.handle)
        dtype: Any = value.type
        return dtype.name
    if kind is int or value is None:
        return value
    if kind in (bool, float, str):
        return kind, repr(value)
    if kind is tl.constexpr:
        return kind, _key(value.value, handles)
    if isinstance(value, tl.dtype):
        return kind, str(value)
    if kind is slice:
        parts = (value.start, value.stop, value.step)
        return kind, *[_key(part, handles) for part in parts]
    if kind in (list, tuple, tl.tuple):
        return kind, *[_key(entry, handles) for entry in value]
    raise _UnknownError


_plans: dict[Any, _Plan | None] = {}
"""The recorded calls, for the life of the process; None: calls made every time."""


def _call_key(
    member: Any, arguments: Any, keywords: Mapping[str, Any], handles: list[Any]
) -> tuple[Any, ...]:
    """Return all that the decisions of a call depend on; collect its tensors."""
    parts: list[Any] = [member]
    for value in arguments:
        if type(value) is tl.tensor:  # as in `_key`, for speed
            handles.append(value.handle)
            kind: Any = value.type
            parts.append(kind.name)
        else:
            parts.append(_key(value, handles))
    for name, value in keywords.items():
        parts.append((name, _key(value, handles)))
    if len(handles) > 1:
        identities = [*map(id, handles)]
        if len({*identities}) < len(identities):  # plans do not distinguish them
            parts.append(("same", *map(identities.index, identities)))
    return tuple(parts)


def _called(member: Any, arguments: Any, keywords: Mapping[str, Any]) -> Any:
    """Call a function of the language, or replay its recorded operations."""
    handles: list[Any] = []
    try:
        key = _call_key(member, arguments, keywords, handles)
    except _UnknownError:
        plan = None
    else:
        if key not in _plans:
            return _recorded(key, member, arguments, keywords, handles)
        plan = _plans[key]
    if plan is None:
        semantic = interpreter.interpreter_semantic
        return member(*arguments, **keywords, _semantic=semantic)
    return plan.run(handles)


def _recorded(
    key: Any,
    member: Any,
    arguments: Any,
    keywords: Mapping[str, Any],
    handles: list[Any],
) -> Any:
    """Call a function of the language and record its operations."""
    recorder = _Recorder(handles)
    semantic = type(interpreter.interpreter_semantic)(recorder)
    result = member(*arguments, **keywords, _semantic=semantic)
    if len(_plans) >= LIMIT:
        _plans.clear()
    _plans[key] = recorder.plan(result)
    return result


def _patch_attr(obj: Any, name: str, member: Any, builder: Any, scope: Any) -> None:
    """Do what Triton's function of this name does, with calls that are replayed."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        semantic = keywords.pop("_semantic", None)
        if semantic is not None and isinstance(semantic.builder, _Recorder):
            return member(*arguments, **keywords, _semantic=semantic)
        return _called(member, arguments, keywords)

    scope.set_attr(obj, name, call)


def _remembering(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Cache numpy types: the interpreter makes a table for each look-up."""
    cache: dict[str, Any] = {}

    def numpy_type(dtype: Any) -> Any:
        if dtype.name not in cache:
            cache[dtype.name] = original(dtype)
        return cache[dtype.name]

    return numpy_type


@contextmanager
def replayed() -> Iterator[None]:
    """Let the interpreter replay recorded calls."""
    with ExitStack() as stack:
        for name, value in (
            ("_patch_attr", _patch_attr),
            ("_get_np_dtype", _remembering(interpreter._get_np_dtype)),
        ):
            stack.callback(setattr, interpreter, name, getattr(interpreter, name))
            setattr(interpreter, name, value)
        yield
