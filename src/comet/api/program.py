"""Reads and prints programs, with every dialect that is installed."""

from __future__ import annotations

from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer
from xdsl.universe import Universe

from comet.tools.checks import verify_definitions
from comet.tools.located_parser import LocatedParser


def installed_context() -> Context:
    """Return a context with every dialect that is installed."""
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context


def parsed(text: str, name: str, context: Context) -> ModuleOp:
    """
    Return the verified module in `text`; its locations are in the file `name`.

    Raises ParseError or VerifyException.
    """
    module = LocatedParser(context, text, name).parse_module()
    verify_definitions(module)
    module.verify()
    return module


def printed(module: ModuleOp) -> str:
    """Return the text of a module, with a line break at its end."""
    text = StringIO()
    Printer(stream=text).print_op(module)
    return f"{text.getvalue()}\n"
