"""
The decomposition of each named compound op: the module that has the op's name.

Its function `decompose` is the op's `Decomposition`. The class of an op that another
package defines has it as a method.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from xdsl.ir import SSAValue

from comet.dialects.compound.named import CompoundOp
from comet.passes.graph.decompose.site import Decomposable, Decomposition, Site

DECOMPOSED = frozenset(f"compound.{module.name}" for module in iter_modules(__path__))
"""The names of the ops that have a module here."""


def has_decomposition(op: CompoundOp) -> bool:
    """Return whether `decompose` knows how to write an op."""
    return op.name in DECOMPOSED or isinstance(op, Decomposable)


def emit_decomposition(op: CompoundOp, site: Site) -> SSAValue | None:
    """
    Emit what an op that has a decomposition is, and return the result.

    A mistaken decomposition of a plug-in may return None.
    """
    if isinstance(op, Decomposable):
        return op.decompose(site)
    module = import_module(f"{__name__}.{op.name.removeprefix('compound.')}")
    return cast(Decomposition, module.decompose)(op, site)
