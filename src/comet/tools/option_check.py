"""Checks the passes and options of a command line before any work."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from inspect import isabstract
from typing import TypeVar, get_args, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import (
    ArgSpec,
    ArgSpecConvertible,
    ParameterListType,
    parse_pipeline,
)
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.hints import isa

from comet.tools.diagnostics import UsageError
from comet.tools.option_types import TEXT, type_in_words
from comet.tools.renamed import new_name

MadeT = TypeVar("MadeT", bound=ArgSpecConvertible)


def named_passes(
    text: str, known: Mapping[str, Callable[[], type[ModulePass]]]
) -> tuple[ModulePass, ...]:
    """
    Return the passes that `text` names, in the syntax of `-p`.

    Raises UsageError if one is not known or does not take its options, and
    ArgSpecParseError for another syntax.
    """
    return tuple(_pass(spec, known) for spec in parse_pipeline(text))


def _pass(
    spec: ArgSpec, known: Mapping[str, Callable[[], type[ModulePass]]]
) -> ModulePass:
    if spec.name not in known:
        raise UsageError(unknown_name("pass", spec.name, known))
    return checked("pass", spec, known[spec.name]())


def checked(kind: str, spec: ArgSpec, class_: type[MadeT]) -> MadeT:
    """
    Return the pass or target that `spec` names; a list may be quoted.

    Raises UsageError if it does not take the options of `spec`, or if its class lacks
    what a pass needs.
    """
    if isabstract(class_):
        lacking = ", ".join(sorted(class_.__abstractmethods__))
        raise UsageError(
            f"{kind} '{spec.name}': its class {class_.__name__} lacks {lacking}; "
            "define it there"
        )
    spec = with_lists(spec, class_)
    options = spec.normalize_parameter_names().parameters
    names = [field.name for field in fields(class_) if field.init]
    for option in options:
        if option not in names:
            close = get_close_matches(option, names, n=1)
            there = f"it has {', '.join(names)}" if names else "it has none"
            there = f"did you mean '{close[0]}'?" if close else there
            if option in vars(class_).get("__annotations__", {}):
                there = f"write @dataclass(frozen=True) above class {class_.__name__}"
            raise UsageError(f"{kind} '{spec.name}' has no option '{option}'; {there}")
    types = get_type_hints(class_)
    for option, values in options.items():
        if any(map(_is_truth, values)) and bool not in _alternatives(types[option]):
            wrong = f"the option '{option}' is {_expected(types[option], values)}"
            raise UsageError(f"{kind} '{spec.name}': {wrong}")
    try:
        return class_.from_spec(spec)
    except ValueError as error:
        raise UsageError(
            f"{kind} '{spec.name}': {_readable(error, options, class_)}"
        ) from error
    except PassFailedException as error:  # a pass checks the text of its options
        reason = str(error).removeprefix(f"{spec.name}: ")
        raise UsageError(f"{kind} '{spec.name}': {reason}") from error


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)  # It is an int for Python.


def _alternatives(kind: object) -> tuple[object, ...]:
    return kind, *get_args(kind)


def with_lists(spec: ArgSpec, class_: type[ArgSpecConvertible]) -> ArgSpec:
    """Return `spec` with quoted lists, such as axes="cx,cy", as several values."""
    types = get_type_hints(class_)
    names = [field.name for field in fields(class_) if field.init]
    lists = {name for name in names if isa(("a", "list"), types[name])}
    options = {
        option: _split(values) if option.replace("-", "_") in lists else values
        for option, values in spec.parameters.items()
    }
    return ArgSpec(spec.name, options)


def _split(values: ParameterListType) -> ParameterListType:
    return tuple(
        part.strip() if isinstance(part, str) else part
        for value in values
        for part in (value.split(",") if isinstance(value, str) else (value,))
    )


def _readable(
    error: ValueError,
    given: Mapping[str, ParameterListType],
    class_: type[ArgSpecConvertible],
) -> str:
    """Name the option that has a value of the wrong type, and the right type."""
    message, types = str(error), get_type_hints(class_)
    for option, values in given.items():
        kind = types[option]
        if not values and message in (EMPTY, _incompatible(values, kind)):
            return f"the option '{option}' has no value; it is {type_in_words(kind)}"
        if message == _incompatible(values, kind):
            return f"the option '{option}' is {_expected(kind, values)}"
    if (missing := re.search(r"requires argument \"(\w+)\"", message)) is not None:
        return f"the option '{missing[1]}' is missing; write {missing[1]}=.."
    return message


EMPTY = "Argument must contain a value"
"""What xDSL says of a choice of types, as `_incompatible` of other types."""


def _incompatible(values: ParameterListType, kind: object) -> str:
    return f"Incompatible types: given {values}, expected {kind}"


def _expected(kind: object, values: ParameterListType) -> str:
    """Return the end of a sentence: a type, the values it is not, and a way out."""
    written = ",".join(map(_spelled, values))
    words = type_in_words(kind)
    way_out = "; put it in quotes" if words == TEXT else new_name(written)
    if words != TEXT and values == (written,) and _UNQUOTED.fullmatch(written):
        return f'{words}, not "{written}"; leave out the quotes'
    return f"{words}, not {written}{way_out}"


_UNQUOTED = re.compile(r"true|false|-?[0-9.]+")
"""What is no text unless it is in quotes."""


def _spelled(value: object) -> str:
    return str(value).lower() if _is_truth(value) else str(value)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that there is no pass of that name, and suggest a similar one."""
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "'comet-opt --help' lists them"
    return f"there is no {kind} named '{name}'{new_name(name) or f'; {hint}'}"
