"""
comet: a compiler for compound tensor operations with explicit collectives.

`parse` reads a program, `compile` runs passes on it, `cost` prices it, and `explore`
searches for its best mapping on an accelerator, with a proof that `verify` checks. They
raise `CometError`, with one sentence, for a mistake in an argument. Modules are
imported when they are first used.

The compiler is in `dialects`, `passes`, `cost` and `codegen`, and published to xDSL by
`universe`. Here are its users: `api`, with `batch` and `report`; the command line
`tools`; `pytorch`; what emitted modules need, `runtime`; and the `interpreter`, which
defines what ops mean. Files are read by `yaml_file` and `hardware_file`; `kinds` are
the words of COMET files; `digraph`, `frames`, `garbage`, `recent`, `registry`,
`op_table`, `text_table` are small helpers; `philox` makes random numbers, as `tl.rand`
does.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from comet.registry import imported

if TYPE_CHECKING:
    from comet.api.answer import Answer, Progress
    from comet.api.compiled import Compiled
    from comet.api.functions import (
        compile,
        cost,
        explore,
        explore_all,
        load_dialects,
        parse,
        question,
        verify,
    )
    from comet.api.pricing import Price
    from comet.api.question import Question
    from comet.api.source import Source
    from comet.pytorch.exporting import from_torch
    from comet.tools.diagnostics import CometError

    __version__: str
    """The version of the distribution `comet-compiler`."""

__all__ = [
    "Answer",
    "CometError",
    "Compiled",
    "Price",
    "Progress",
    "Question",
    "Source",
    "__version__",
    "compile",
    "cost",
    "explore",
    "explore_all",
    "from_torch",
    "load_dialects",
    "parse",
    "question",
    "verify",
]

_PLACES = {
    "Answer": "comet.api.answer:Answer",
    "CometError": "comet.tools.diagnostics:CometError",
    "Compiled": "comet.api.compiled:Compiled",
    "Price": "comet.api.pricing:Price",
    "Progress": "comet.api.answer:Progress",
    "Question": "comet.api.question:Question",
    "Source": "comet.api.source:Source",
    "compile": "comet.api.functions:compile",
    "explore": "comet.api.functions:explore",
    "explore_all": "comet.api.functions:explore_all",
    "from_torch": "comet.pytorch.exporting:from_torch",
    "load_dialects": "comet.api.functions:load_dialects",
    "parse": "comet.api.functions:parse",
    "question": "comet.api.functions:question",
    "verify": "comet.api.functions:verify",
}
"""The module and name of each definition; `cost` is a package that can be called."""

if not TYPE_CHECKING:

    def __getattr__(name):
        """Import a name of `_PLACES` when it is first used."""
        if name in _PLACES:
            found = imported(_PLACES[name])
        elif name == "cost":
            found = import_module("comet.cost")
        elif name == "__version__":
            found = imported("importlib.metadata:version")("comet-compiler")
        else:
            raise AttributeError(f"module 'comet' has no attribute '{name}'")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return __all__
