"""Masks by position, from elementwise ops that every step of a fold can compute."""

from __future__ import annotations

from xdsl.ir import SSAValue

from comet.dialects.compound import MapKind
from comet.dialects.compound.map import lowest_finite
from comet.passes.graph.decompose.site import Site


def position_mask(site: Site, distance: SSAValue) -> SSAValue:
    """
    Emit a mask for scores: 0 where `distance` >= 0, very negative where it is <= -1.

    `distance` is whole numbers: how far a key is before the last visible one. The mask
    is finite, so that partials of masked scores alone vanish when they are merged.
    """
    emit, element = site.emit, site.accumulator
    zero = emit.fill(0.0, element, name="zero")
    negative = emit.map(MapKind.MIN, distance, zero, name="negative")
    minus = emit.fill(-1.0, element, name="minus")
    hidden = emit.map(MapKind.MAX, negative, minus, name="hidden")
    lowest = emit.fill(lowest_finite(element) / -2, element, name="lowest")
    return emit.map(MapKind.MULT, hidden, lowest, name="mask")
