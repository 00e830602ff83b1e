"""
The ranks of a traced graph, of which each has its own values of some tensors.

Such a tensor has one dimension more than its axes, over the ranks, and of that a rank
has one element. So what all ranks have together is one tensor, and every rule that is
right for the axes of a tensor is right for each rank's. Only collectives use this
dimension: they reduce or gather it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from comet.pytorch.dims import Axis, Dim, leaves
from comet.pytorch.emitter import Tensor


@dataclass
class Ranks:
    """The ranks of a graph; it has none before a collective says how many."""

    dim: Dim = field(default_factory=lambda: Dim(1))
    """The dimension over ranks; its extent is that of one rank."""
    members: tuple[int, ...] = ()
    """The numbers of the ranks among all processes."""
    gathered: dict[Tensor, tuple[Tensor, Dim]] = field(
        default_factory=dict[Tensor, tuple[Tensor, Dim]]
    )
    """Tensors of which all ranks have the values of all, and their dimension for it."""

    @property
    def count(self) -> int:
        """The number of ranks."""
        return max(len(self.members), 1)

    def differ_in(self, *tensors: Tensor) -> bool:
        """Return whether ranks have different values of one of the tensors."""
        return any(self.dim in leaves(tensor.dims) for tensor in tensors)

    def among(self, dims: Axis, *tensors: Tensor) -> Axis:
        """
        Return the dimensions of what is computed from tensors, with ranks if these
        differ: beside the same dimension as in the first of them that does.
        """
        for tensor in filter(self.differ_in, tensors):
            stored = leaves(tensor.dims)
            at = stored.index(self.dim)
            behind = [dims.index(dim) for dim in stored[at:] if dim in dims]
            before = [dims.index(dim) for dim in stored[:at] if dim in dims]
            place = behind[0] if behind else max(before, default=-1) + 1
            return (*dims[:place], self.dim, *dims[place:])
        return dims
