"""Which passes write an elementary program in what COMET files have."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from comet.passes.graph.expand_maps import ExpandMapsPass, needs_expansion
from comet.passes.graph.expand_vectors import ExpandVectorsPass, needs_rows


def expansions_of(module: ModuleOp) -> tuple[ModulePass, ...]:
    """Return those of `expand-maps` and `expand-vectors` that would change a module."""
    maps = (ExpandMapsPass(),) if needs_expansion(module) else ()
    vectors = (ExpandVectorsPass(),) if needs_rows(module) else ()
    return (*maps, *vectors)
