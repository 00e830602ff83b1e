"""
What is known of a value in an SPMD region: how it relates to the global one.

Along each mesh axis a value is *replicated* (every instance holds the same),
*sharded* (each holds its shard of one dimension), or *partial* (each holds a term of
a reduction that is still to be done). A value may also be *rooted*: only one instance
of a group holds it. A constant tensor is *uniform*: it fits a replicated as well as a
sharded dimension.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from comet.dialects.collective.roots import Roots

FOLD = "fold"
"""The reduction kind of the partials of a fold: only its own merge combines them."""


@dataclass(frozen=True)
class State:
    """What is known of one value along every mesh axis; absent axis = replicated."""

    sharded: Mapping[str, str]
    """The dimension that each axis splits; of two that split one, the major first."""
    partial: Mapping[str, str]
    """The reduction that is still to be done over each axis: add, max or fold."""
    uniform: bool = False
    rooted: Roots = field(default_factory=dict[tuple[str, ...], int])
    """The groups, by their axes, of which only one instance holds the value."""

    def splits(self, dim: str) -> tuple[str, ...]:
        """Return the axes that split `dim`, major first."""
        return tuple(axis for axis, split in self.sharded.items() if split == dim)

    def describe(self, axis: str) -> str:
        """Say how the value relates to the global one along `axis`."""
        if axis in self.partial:
            return f"partial({self.partial[axis]})"
        return (
            f"sharded({self.sharded[axis]})" if axis in self.sharded else "replicated"
        )


REPLICATED = State({}, {})
States = dict[SSAValue, State]
