"""
The state of a value in an SPMD region: how it relates to the global one.

Along each mesh axis a value is *replicated* (every instance has the same),
*sharded* (each has its shard of one dimension), or *partial* (each has a term of a
reduction that is still to be completed). A value may also be *rooted*: only one
instance of a group has it. A constant tensor is *uniform*: it can be used as
replicated and as sharded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from comet.dialects.collective.roots import Roots

FOLD = "fold"
"""The reduction kind of the partials of a fold: only its own merge combines them."""


@dataclass(frozen=True)
class State:
    """The state of one value along every mesh axis; absent axis = replicated."""

    sharded: Mapping[str, str]
    """The dimension that each axis splits; of two that split one, the major first."""
    partial: Mapping[str, str]
    """The reduction that is to be completed over each axis: add, max or fold."""
    uniform: bool = False
    rooted: Roots = field(default_factory=dict[tuple[str, ...], int])
    """The groups, by their axes, of which only one instance has the value."""

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


def without_axes(state: State, axes: Collection[str]) -> State:
    """Return `state` without `axes`, outside of the node that loops over them."""
    if not axes:
        return state
    return State(
        {axis: dim for axis, dim in state.sharded.items() if axis not in axes},
        {axis: kind for axis, kind in state.partial.items() if axis not in axes},
        state.uniform,
        {group: n for group, n in state.rooted.items() if not set(group) & set(axes)},
    )
