"""Masks by position, from elementwise ops that every step of a fold can compute."""

from __future__ import annotations

from xdsl.ir import SSAValue

from comet.dialects.compound import MapKind
from comet.dialects.compound.map import lowest_finite
from comet.passes.graph.decompose.site import Site


def position_mask(site: Site, ahead: SSAValue) -> SSAValue:
    """
    Emit a mask for scores: 0 where `ahead` >= 0, a very negative number where <= -1.

    `ahead` is whole numbers: how far a key is before the last visible one. The mask is
    finite, so that partials of masked scores alone vanish when they are merged.
    """
    emit, element = site.emit, site.accumulator
    none = emit.fill(0.0, element, name="none")
    behind = emit.map(MapKind.MIN, ahead, none, name="behind")
    minus = emit.fill(-1.0, element, name="minus")
    hidden = emit.map(MapKind.MAX, behind, minus, name="hidden")
    far = emit.fill(lowest_finite(element) / -2, element, name="far")
    return emit.map(MapKind.MULT, hidden, far, name="mask")
