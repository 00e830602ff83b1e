"""
The decomposition of each named compound op: the module that has the op's name.

Its function `decompose` is the op's `Decomposition`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from comet.dialects.compound.named import CompoundOp
from comet.passes.graph.decompose.site import Decomposition

DECOMPOSED = frozenset(f"compound.{module.name}" for module in iter_modules(__path__))
"""The names of the ops that have a module here."""


def decomposition_of(op: CompoundOp) -> Decomposition:
    """Return the function of one of the ops `DECOMPOSED`."""
    module = import_module(f"{__name__}.{op.name.removeprefix('compound.')}")
    return cast(Decomposition, module.decompose)
