"""`nested`: runs passes in a module inside the module, such as a mapping of a chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.traits import SymbolTable
from xdsl.universe import Universe
from xdsl.utils.exceptions import PassFailedException

from comet.passes.pipeline import run_passes
from comet.registry import imported

Reading = Callable[[str, Mapping[str, object]], Sequence[ModulePass]]
"""Reads passes in the syntax of `-p`, of those that are known."""


@dataclass(frozen=True)
class NestedPass(ModulePass):
    """Run passes in a module inside the module, and in no other."""

    name = "nested"

    module: str
    """The name of the module."""

    passes: str
    """The passes, in the syntax of `-p`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the passes; raises PassFailedException if there is no such module."""
        inner = SymbolTable.lookup_symbol(op, self.module)
        if not isinstance(inner, ModuleOp):
            inside = [child for child in op.ops if isinstance(child, ModuleOp)]
            names = [child.sym_name.data for child in inside if child.sym_name]
            raise PassFailedException(
                f"{self.name}: there is no module @{self.module} inside the module; "
                f"there are {', '.join(names) or 'none, run outline-mappings first'}",
            )
        run_passes(passes_in(self.passes), ctx, inner)


def passes_in(text: str) -> Sequence[ModulePass]:
    """Return the passes that `text` names, of all that are installed."""
    # Which passes are installed is known above all passes, so it is found by name.
    installed = cast(Callable[[], Universe], imported("comet.universe:installed"))
    read = cast(Reading, imported("comet.tools.option_check:named_passes"))
    return read(text, installed().all_passes)
