"""
Calls Triton's language under its interpreter without deciding the same things anew.

For `x + 1` the language looks at types, promotes, broadcasts, and asks a builder for
operations. As in any compiler, what it asks for depends on types and constants alone,
not on data. So a call is noted when it is first made with such arguments; afterwards
only the operations are done, which is several times as fast.
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
"""So many calls are remembered."""

FOLDED = (
    "create_broadcast",
    "create_expand_dims",
    "create_int_cast",
    "create_make_range",
    "create_reshape",
    "create_splat",
)
"""Operations on constants that are done once, beside those that make a constant."""


class _UnknownError(Exception):
    """A call has arguments of which it is not known what they mean."""


@dataclass(frozen=True)
class _Plan:
    """What a call comes down to."""

    values: tuple[Any, ...]
    """First room for the arguments, then constants, and room for what is made."""
    operations: tuple[tuple[str, int, tuple[int, ...]], ...]
    """Methods of the builder, where their results go, and where their arguments are."""
    result: Any
    """What is returned, if it is always the same."""
    place: int | None
    """Else where it is among the values."""
    fields: Mapping[str, Any]
    """And what else the tensor around it says."""

    def run(self, handles: list[Any]) -> Any:
        """Do the operations; return the result."""
        values = [*handles, *self.values[len(handles) :]]
        builder = interpreter.interpreter_builder
        for name, target, places in self.operations:
            values[target] = getattr(builder, name)(*[values[at] for at in places])
        if self.place is None:
            return self.result
        made = object.__new__(tl.tensor)
        made.__dict__.update(self.fields)
        made.handle = values[self.place]
        return made


class _Recorder:
    """Is the builder for one call, and notes what it is asked for."""

    def __init__(self, handles: Iterable[Any]):
        self._values = list(handles)
        self._fixed = [False] * len(self._values)
        self._operations: list[tuple[str, int, tuple[int, ...]]] = []
        self._lost = False
        """Whether something was asked for that cannot be noted."""

    def __getattr__(self, name: str) -> Any:
        """Return what the builder has; its methods also note that they were called."""
        member = getattr(interpreter.interpreter_builder, name)
        if not name.startswith(("create_", "get_")):
            return member

        def noted(*arguments: Any, **keywords: Any) -> Any:
            result = member(*arguments, **keywords)
            if name.startswith("create_") or isinstance(result, TensorHandle):
                self._note(name, arguments, result)
                self._lost |= bool(keywords)
            return result

        return noted

    def plan(self, result: Any) -> _Plan | None:
        """Return what was asked for, if all of it could be noted."""
        place, fields = None, {}
        if type(result) is tl.tensor:
            place = self._place(result.handle)
            fields = {k: v for k, v in vars(result).items() if k != "handle"}
        elif not isinstance(result, int | str | None):
            self._lost = True
        if self._lost:
            return None
        values = zip(self._values, self._fixed, strict=True)
        kept = tuple(value if fixed else None for value, fixed in values)
        return _Plan(kept, tuple(self._operations), result, place, fields)

    def _note(self, name: str, arguments: tuple[Any, ...], result: Any) -> None:
        places = tuple(map(self._place, arguments))
        folded = name.startswith("get_") or name in FOLDED
        fixed = folded and all(self._fixed[place] for place in places)
        target = self._add(result, fixed)
        if not fixed:
            self._operations.append((name, target, places))
        elif isinstance(result, TensorHandle):
            result.data.flags.writeable = False
        self._lost |= not isinstance(result, TensorHandle | None)

    def _place(self, value: Any) -> int:
        """Return where a value is; what is no tensor is a new constant."""
        if isinstance(value, TensorHandle):
            for place, known in enumerate(self._values):
                if known is value:
                    return place
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
    Return that of an argument on which decisions depend; collect the tensors in it.

    Raises `_UnknownError` where that is not known.
    """
    kind = type(value)
    if kind is tl.tensor:
        handles.append(value.handle)
        whole: Any = value.type
        return whole.name
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
"""What calls came down to, for the life of the process; None: they are made anew."""


def _call_key(
    member: Any, arguments: Any, keywords: Mapping[str, Any], handles: list[Any]
) -> tuple[Any, ...]:
    """Return all on which the decisions of a call depend; collect its tensors."""
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
    """Call a function of the language, or do again what that came down to."""
    handles: list[Any] = []
    try:
        key = _call_key(member, arguments, keywords, handles)
    except _UnknownError:
        plan = None
    else:
        if key not in _plans:
            return _noted(key, member, arguments, keywords, handles)
        plan = _plans[key]
    if plan is None:
        semantic = interpreter.interpreter_semantic
        return member(*arguments, **keywords, _semantic=semantic)
    return plan.run(handles)


def _noted(
    key: Any,
    member: Any,
    arguments: Any,
    keywords: Mapping[str, Any],
    handles: list[Any],
) -> Any:
    """Call a function of the language and keep what that comes down to."""
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
    """Look up the types of numpy once: the interpreter makes a table for each."""
    known: dict[str, Any] = {}

    def numpy_type(dtype: Any) -> Any:
        if dtype.name not in known:
            known[dtype.name] = original(dtype)
        return known[dtype.name]

    return numpy_type


@contextmanager
def replayed() -> Iterator[None]:
    """Let the interpreter replay what it has been asked for before."""
    with ExitStack() as stack:
        for name, value in (
            ("_patch_attr", _patch_attr),
            ("_get_np_dtype", _remembering(interpreter._get_np_dtype)),
        ):
            stack.callback(setattr, interpreter, name, getattr(interpreter, name))
            setattr(interpreter, name, value)
        yield
