"""Publishes the pass; its file is imported only when somebody asks for the pass."""

from xdsl.passes import ModulePass
from xdsl.universe import Universe


def _get_annotate_flops() -> type[ModulePass]:
    from annotate_flops.annotate_flops import AnnotateFlopsPass

    return AnnotateFlopsPass


UNIVERSE = Universe(all_passes={"annotate-flops": _get_annotate_flops})
