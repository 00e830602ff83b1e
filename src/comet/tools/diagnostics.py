"""Turns an error into one sentence: the location, the reason, the way out."""

import os
import re
import sys
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, TypeVar

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpecConvertible
from xdsl.utils.exceptions import (
    ArgSpecParseError,
    DiagnosticException,
    ParseError,
)

from comet.cost.estimate import CostError
from comet.dialects.errors import op_of
from comet.tools.located_parser import parsed_at
from comet.tools.renamed import new_name, similar_op

Running = TypeVar("Running")


class UsageError(Exception):
    """A mistake in how a tool was called; the message is the sentence to print."""


class CometError(Exception):
    """
    A mistake in what a function of `comet` was given, in one sentence.

    The sentence says where, if that is known, then why, then the way out.
    """

    def __init__(self, sentence: str):
        super().__init__(sentence.removeprefix("error: "))
        self.sentence = sentence
        """What a tool prints."""


def location_of_op(op: Operation) -> str:
    """
    Name an operation: `file:line:column` if it is in the input, else by function.

    An operation that a pass made reads `in.mlir:2:1: in @main, 'compound.contract' op
    %c4`, with the location of its function. One of a model in Python has a line without
    a column, and reads `model.py:12: in @main, ..`.
    """
    location = op.location
    if isinstance(location, FileLineColLoc) and location.column.data:
        return _location_text(location)
    names = [f"%{r.name_hint}" for r in op.results if r.name_hint is not None]
    name = " ".join([f"'{op.name}' op", *names[:1]])
    outer = op
    for ancestor in _up_from(op):
        symbol = ancestor.get_attr_or_prop("sym_name")
        if isinstance(symbol, StringAttr):
            outer, name = ancestor, f"in @{symbol.data}, {name}"
            break
    if isinstance(location, FileLineColLoc):
        return f"{_location_text(location)}: {name}"
    return _location_within(outer, name)


def _up_from(op: Operation) -> Iterator[Operation]:
    outer: Operation | None = op
    while outer is not None:
        yield outer
        outer = outer.parent_op()


def _location_within(op: Operation, name: str) -> str:
    """
    Put a location before a name: that of `op`, or of the innermost op around it.

    A module that holds all of a file says no more than the file's name.
    """
    for outer in _up_from(op):
        is_whole = isinstance(outer, ModuleOp) and outer.parent is None
        if isinstance(outer.location, FileLineColLoc) and not is_whole:
            return f"{_location_text(outer.location)}: {name}"
    return name


LONGEST = 780
"""The longest sentence in characters, without the name of the tool before it."""

QUOTED = 120
"""The longest map, dictionary or region in characters that a sentence quotes."""


def sentence(error: BaseException) -> str | None:
    """
    Describe a mistake of the user in one line; None if it is a bug in comet.

    The line is short, however long the error is: see `brief`.
    """
    return None if (text := _described(error)) is None else brief(text)


def brief(text: str) -> str:
    """
    Return `text` in one line of `LONGEST` characters at most, without dumps.

    Long text in braces, such as modules and dictionaries, is left out.
    """
    text = "".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in _one_line(text))
    text = _without_dumps(text)
    if len(text) <= LONGEST:
        return text
    # A message starts with the location and ends with the way out.
    head = LONGEST * 2 // 3
    return f"{text[:head]} .. {text[head + 4 - LONGEST :]}"


def _without_dumps(text: str) -> str:
    shortened, opened = "", list[int]()
    for character in text:
        shortened += character
        if character == "{":
            opened.append(len(shortened))
        elif character == "}" and opened:
            start = opened.pop()
            if len(shortened) - start > QUOTED:
                shortened = f"{shortened[:start]}..}}"
    return shortened


def _described(error: BaseException) -> str | None:
    match error:
        case CometError():
            return error.sentence
        case ParseError():
            message = f"{_clear(error.msg)}{_number_hint(error)}"
            return f"{error.span.get_location()}: error: {message}"
        case DiagnosticException():
            return _at_op(error)
        case ArgSpecParseError():
            return f"error: {_pipeline_mistake(error)}"
        case UsageError():
            return f"error: {_one_line(str(error))}"
        case CostError():
            return f"error: {_with_pass(error)}"
        case OSError(filename=str(name), strerror=str(reason)):
            return f"error: {name}: {reason}"
        case RecursionError():
            return (
                f"{_location(error)}error: this is nested too deep; nest it less, or "
                "set COMET_TRACEBACK=1 to see the traceback"
            )
        case _:
            return None


def _unregistered(found: re.Match[str]) -> str:
    name, similar = found[1], similar_op(found[1])
    if similar is None:
        hint = (
            "correct its name, or load its dialect by --load-dialect-plugin, in Python "
            "by comet.load_dialects"
        )
    else:
        hint = f"did you mean '{similar}'?"
    return f"there is no operation {name}{new_name(name) or f'; {hint}'}"


CLEARER = (
    (r"Operation (\S+) is not registered", _unregistered),
    (r"values used but not defined: \[(.*)\]", r"\1 is used but never defined"),
    (
        r"\nUnderlying verification failure: Expected attribute \S+ but got (\S+)$",
        r", got \1",
    ),
    (r"^in block definition$", "the block is not closed; add a '}'"),
    (r"^Could not parse entire input!$", "expected an operation; write one here"),
    (
        r"^(.*) should be of base attribute (\S+)$",
        r"\1 is not a \2 attribute; write one",
    ),
    (
        r"Operation using value defined out of its IsolatedFromAbove parent: .*",
        "an op inside uses a value from outside; hand it in as an operand",
    ),
)
"""Messages of xDSL that do not say what to do, or dump an op, and clearer ones."""


def _clear(text: str) -> str:
    text = text.strip()
    for theirs, ours in CLEARER:
        text = re.sub(theirs, ours, text, flags=re.DOTALL)
    return _one_line(text)


def _number_hint(error: ParseError) -> str:
    """Say how MLIR writes a number such as 1e-05, if an error is at its exponent."""
    text, at = error.span.input.content, error.span.start
    if isinstance(text, bytes):
        return ""
    number = re.search(r"\b(\d+)$", text[max(0, at - 20) : at])
    exponent = re.match(r"[eE][-+]?\d+", text[at:])
    if number is None or exponent is None:
        return ""
    found, meant = (f"{number[1]}{dot}{exponent[0]}" for dot in ("", ".0"))
    return f"; a number has a point before its exponent: write {found} as {meant}"


def _one_line(text: str) -> str:
    text = text.replace("\nUnderlying verification failure: ", "; ")
    return " ".join(text.split())


def _at_op(error: DiagnosticException) -> str:
    return f"{_location(error)}error: {_with_pass(error)}"


STARTS = re.compile(r"(target )?[a-z0-9]+(-[a-z0-9]+)*: |\S+:\d+: ")
"""How a message starts that names its pass, its target, or the line of a file."""


def _with_pass(error: BaseException) -> str:
    """Return the message of an error, after the pass or target that raised it."""
    text, ran = _clear(str(error)), _running(error, ArgSpecConvertible)
    if ran is None or STARTS.match(text):
        return text
    kind = "" if isinstance(ran, ModulePass) else "target "
    return f"{kind}{ran.name}: {text}"


def _location(error: BaseException) -> str:
    """Return the location of what an error is about, to put before `error: `."""
    if (op := op_of(error)) is not None:
        return f"{location_of_op(op)}: "
    if (location := parsed_at(error)) is not None:
        return f"{_location_text(location)}: "
    return ""


def _location_text(location: FileLineColLoc) -> str:
    column = f":{column}" if (column := location.column.data) else ""
    return f"{location.filename.data}:{location.line.data}{column}"


def _pipeline_mistake(error: ArgSpecParseError) -> str:
    """Return column and reason of xDSL's multi-line error."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    column = lines[1].rpartition(":")[2]
    reason = lines[-1].lstrip(" ^")
    return (
        f"column {column} of the pass or target specification: {_one_line(reason)}; "
        "write 'pass{option=value other=\"a string\"},next-pass'"
    )


def _bug(error: BaseException) -> str:
    """Describe an unexpected exception, with the pass or target that raised it."""
    for ran in (_running(error, ArgSpecConvertible), _running(error, Operation)):
        if ran is not None and (location := _location_in_plugin(type(ran), error)):
            return brief(_plugin_mistake(ran, location, error))
    return brief(
        f"error: a bug in comet, please report it: {_named(error)} "
        f"({_innermost(error)}); "
        "set COMET_TRACEBACK=1 to see the traceback"
    )


def _named(error: BaseException) -> str:
    """Return the class and the text of an exception; an assertion may have no text."""
    text = _one_line(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _innermost(error: BaseException) -> str:
    """Return the last executed line of comet; if there is none, of any file."""
    frames = list(traceback.walk_tb(error.__traceback__))
    ours = [frame for frame in frames if _package(frame[0]) == "comet"]
    frame, line = (ours or frames)[-1]
    return f"{frame.f_code.co_filename}:{line}"


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _running(error: BaseException, kind: type[Running]) -> Running | None:
    """Return the innermost object of a kind whose method ran when an error arose."""
    held = (f.f_locals.get("self") for f, _ in traceback.walk_tb(error.__traceback__))
    found = [running for running in held if isinstance(running, kind)]
    return found[-1] if found else None


def _location_in_plugin(class_: type, error: BaseException) -> str | None:
    """
    Return the last executed line of a plug-in's file; None for comet's classes.

    If none was executed, it is the file: its class lacks what a base class needs.
    """
    if class_.__module__.partition(".")[0] in ("comet", "xdsl"):
        return None
    file = sys.modules[class_.__module__].__file__
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return f"{file}:{lines[-1]}" if lines else file


def _plugin_mistake(
    ran: ArgSpecConvertible | Operation, location: str, error: BaseException
) -> str:
    kind = "pass" if isinstance(ran, ModulePass) else "target"
    kind = "op" if isinstance(ran, Operation) else kind
    return (
        f"error: the {kind} '{ran.name}' of a plug-in fails at {location}: "
        f"{_named(error)}; set COMET_TRACEBACK=1 to see the traceback"
    )


def fail(tool: str, error: BaseException) -> NoReturn:
    """Print one sentence on stderr and exit with code 1."""
    if os.environ.get("COMET_TRACEBACK"):
        traceback.print_exception(error)
    text = sentence(error) or _bug(error)
    print(f"{tool}: {text}" if text.startswith("error: ") else text, file=sys.stderr)
    sys.exit(1)


@contextmanager
def one_sentence_errors(tool: str) -> Generator[None]:
    """
    Run the body; any exception ends the program through `fail`.

    Ctrl-C ends it with the code 130, and with the text of the exception if it has one.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        if text := str(error):
            print(f"{tool}: {text}", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of the pipe is gone; keep Python from complaining when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (Exception, ArgSpecParseError) as error:
        fail(tool, error)


@contextmanager
def errors_as_sentences() -> Generator[None]:
    """Run the body; raise a mistake of the user as CometError, and a bug as it is."""
    try:
        yield
    except CometError:
        raise
    except (Exception, ArgSpecParseError) as error:
        if (text := sentence(error)) is None:
            raise
        raise CometError(text) from error
