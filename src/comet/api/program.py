"""Reads and prints programs, with every dialect that is installed."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from comet.api.plugins import known_dialects
from comet.api.source import PathOrText, Source, is_text, read_all
from comet.codegen.comet.chain import PLAN, mapping_folders
from comet.codegen.comet.reader import FILES, read_files
from comet.tools.checks import verify_definitions, verify_module
from comet.tools.diagnostics import UsageError
from comet.tools.located_parser import LocatedParser

Program: TypeAlias = ModuleOp | PathOrText
"""A module, or what `parse` takes."""


def installed_context() -> Context:
    """Return a context with every dialect that is installed, or in a loaded file."""
    context = Context()
    for name, factory in known_dialects().items():
        context.register_dialect(name, factory)
    return context


def parsed(text: str, name: str, context: Context) -> ModuleOp:
    """
    Return the verified module in `text`; its locations are in the file `name`.

    Raises ParseError or VerifyException.
    """
    module = LocatedParser(context, text, name).parse_module()
    verify_definitions(module)
    verify_module(module)
    return module


def parsed_files(files: Mapping[str, Source]) -> ModuleOp:
    """
    Return the module in COMET files, at the level `comet`.

    Raises FileFormatError, with file and line, or VerifyException.
    """
    module = read_files(
        {name: file.text for name, file in files.items()},
        {name: file.name for name, file in files.items()},
    )
    verify_module(module)
    return module


def module_of(program: Program, context: Context) -> ModuleOp:
    """Return a clone of a module, or the module in a path or text."""
    if isinstance(program, ModuleOp):
        return program.clone()
    _check_kind(program)
    if mappings_in(program):
        raise UsageError(
            f"{program} has {PLAN}, a chain of mappings; name the folder of one of "
            f"them, such as {program}/1"
        )
    if not is_text(program) and Path(program).is_dir():
        return parsed_files(read_all({name: Path(program) / name for name in FILES}))
    source = Source.of(program)
    return parsed(source.text, source.name, context)


def mappings_in(program: Program) -> tuple[Path, ...]:
    """Return the folders of the mappings of a chain, in order; none of others."""
    if not isinstance(program, str | PathLike) or is_text(program):
        return ()
    if not (plan := Path(program) / PLAN).exists():
        return ()
    folders = mapping_folders(Source.read(plan).text, str(plan))
    return tuple(plan.parent / folder for folder in folders)


def source_of(program: Program) -> Source:
    """Return the text of a program."""
    if isinstance(program, ModuleOp):
        return Source(printed(program), "<module>")
    _check_kind(program)
    return Source.of(program)


def _check_kind(program: object) -> None:
    """Raise UsageError if a program is neither a path nor a text."""
    if not isinstance(program, str | PathLike):
        has_module = isinstance(getattr(program, "module", None), ModuleOp)
        raise UsageError(
            f"a program is a module, a path or a text, not {type(program).__name__}; "
            + (
                "give its .module"
                if has_module
                else "comet.from_torch makes one of a model of PyTorch"
            )
        )


def printed(module: ModuleOp) -> str:
    """Return the text of a module, with a line break at its end."""
    text = StringIO()
    Printer(stream=text).print_op(module)
    return f"{text.getvalue()}\n"
