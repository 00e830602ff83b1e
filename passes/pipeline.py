"""
Pipelines: passes that consist of passes.

A pipeline yields its passes one after the other. Each has run before the next one is
requested, so the choice of a pass may depend on the results of earlier ones. An
observer of a pipeline sees its passes, but none that a search runs on copies.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self, TypeAlias, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ParameterType

from comet.frames import with_room
from comet.passes.analysis.functions import about_only_function, compute_functions

AUTO = "auto"
"""The value of an option that leaves the choice to the pass."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*$")
"""A value of an option that needs no quotes."""

PassT = TypeVar("PassT", bound=ModulePass)

Around: TypeAlias = Callable[[ModulePass, ModuleOp], AbstractContextManager[None]]
"""The context that is entered before a pass runs on a module, and left after it."""


@dataclass(frozen=True)
class Pipeline(ModulePass):
    """A pass that consists of passes."""

    @abstractmethod
    def passes(self, ctx: Context, module: ModuleOp) -> Generator[ModulePass]:
        """Yield the passes; each has run on `module` when the next one is requested."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_passes([self], ctx, op)


@dataclass(frozen=True)
class ChoosingPass(ModulePass):
    """A pass that chooses the options that are `auto`."""

    NOTES: ClassVar[Mapping[str, str]] = {}
    """By option, the attribute of functions that records its choice."""

    def settled(self, module: ModuleOp) -> Self:
        """
        Return the pass that makes the same choices without a search.

        `module` is the result of the pass. An option stays `auto` if no other value
        expresses the choice, for example if two functions have different ones.
        """
        chosen = {
            option: note
            for option, name in self.NOTES.items()
            if getattr(self, option) == AUTO
            and (note := noted(module, name)) is not None
        }
        return replace(self, **chosen)


def _unobserved(_pass: ModulePass, _module: ModuleOp) -> AbstractContextManager[None]:
    return nullcontext()


def run_passes(
    passes: Iterable[ModulePass],
    ctx: Context,
    module: ModuleOp,
    around: Around = _unobserved,
) -> None:
    """
    Run passes, and those of pipelines, each inside `around`.

    An error that names no op is about the function of a module that has only one.
    """
    for pass_ in passes:
        with around(pass_, module), about_only_function(module):
            if isinstance(pass_, Pipeline):
                # Where a pass fails, the pipeline must leave what it has entered.
                with closing(pass_.passes(ctx, module)) as inner:
                    run_passes(inner, ctx, module, around)
            else:
                pass_.apply(ctx, module)


def run_settled(
    passes: Iterable[ModulePass],
    ctx: Context,
    module: ModuleOp,
    around: Around = _unobserved,
) -> tuple[ModulePass, ...]:
    """
    Run passes, and return those that ran, with the choices that they made.

    Running these on the same module gives the same result without a search.
    """
    done: list[ModulePass] = []

    @contextmanager
    def noting(pass_: ModulePass, module: ModuleOp) -> Generator[None]:
        with around(pass_, module):
            yield
        if not isinstance(pass_, Pipeline):
            done.append(
                pass_.settled(module) if isinstance(pass_, ChoosingPass) else pass_
            )

    with_room(partial(run_passes, passes, ctx, module, noting))
    return tuple(done)


def of_kind(passes: Iterable[ModulePass], kind: type[PassT]) -> list[PassT]:
    """Return those of some passes that are of a class, in their order."""
    return [pass_ for pass_ in passes if isinstance(pass_, kind)]


def noted(module: ModuleOp, name: str) -> str | None:
    """Return the text that all functions have as an attribute, None if they differ."""
    notes = {func.attributes.get(name) for func in compute_functions(module)}
    note = notes.pop() if len(notes) == 1 else None
    return note.data if isinstance(note, StringAttr) else None


def spelled(passes: Iterable[ModulePass]) -> str:
    """Return passes in the syntax of `-p`, with every option that is set."""
    return ",".join(map(_spelled_pass, passes))


def _spelled_pass(pass_: ModulePass) -> str:
    options = pass_.spec(include_default=True).parameters
    texts = [
        f"{name}={','.join(map(spelled_value, values))}"
        for name, values in options.items()
        if values
    ]
    return f"{pass_.name}{{{' '.join(texts)}}}" if texts else pass_.name


def spelled_value(value: ParameterType) -> str:
    """Return a value of an option in the syntax of `-p`."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return str(value)
    if _WORD.match(value) and value not in ("true", "false"):
        return value
    return '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'
