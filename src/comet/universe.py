"""Publishes comet's dialects, passes and targets to every xDSL tool."""

from functools import cache

from xdsl.universe import Universe

from comet.codegen import get_all_targets
from comet.dialects import get_all_dialects
from comet.passes import get_all_passes

COMET_UNIVERSE = Universe(
    all_dialects=get_all_dialects(),
    all_passes=get_all_passes(),
    all_targets=get_all_targets(),
)


@cache
def installed() -> Universe:
    """
    Return the dialects, passes and targets of comet and of every installed package.

    They are cached: the search takes as long as the compilation of a small program.
    """
    return Universe.get_multiverse()
