"""
Names of dimensions: those of the layers of a model are the same.

A name can stand for several dimensions, one after the other. So equal layers have equal
kernels, which are tried and compiled once, and one name shards all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from xdsl.ir import Block, Operation

from comet.dialects.compound.dims import names_of
from comet.dialects.compound.elementary import ContractOp
from comet.pytorch.dims import Dim
from comet.pytorch.emitter import RANK

PRODUCTS_BETWEEN = 2
"""
How many products are computed after a dimension and before another one of its name: no
kernel should have both, as it would have one loop for them.
"""


@dataclass(frozen=True)
class _Range:
    """The ops of a block that have a name, as numbers of products before them."""

    first: int
    """How many products come before the first op."""
    last: int
    """How many products there are up to the last op, which may be one."""


def with_reused_names(block: Block, names: Mapping[Dim, str]) -> dict[Dim, str]:
    """
    Return names of dimensions, of which later ones have those of earlier ones.

    In the ops of `block` all `names` are different. A dimension gets the name that came
    first of those that no op needs any more, and that had its extent. That of ranks
    keeps its own.
    """
    dims = {name: dim for dim, name in names.items() if name != RANK}
    last: dict[str, int] = {}  # of each name that is used, in order
    new = dict(names)
    for name, found in _ranges_of(block).items():
        if (dim := dims.get(name)) is None:
            continue  # It is one between two ops.
        free = (
            old
            for old, end in last.items()
            if dims[old].extent == dim.extent and found.first - end >= PRODUCTS_BETWEEN
        )
        new[dim] = next(free, name)
        last[new[dim]] = found.last
    return new


def _ranges_of(block: Block) -> dict[str, _Range]:
    """Return where the names of a block are used, in the order of the first op."""
    found: dict[str, _Range] = {}
    ops = list(block.ops)
    products = list(accumulate((isinstance(op, ContractOp) for op in ops), initial=0))
    for number, op in enumerate(ops):
        for name in _names_in(op):
            first = found[name].first if name in found else products[number]
            found[name] = _Range(first, products[number + 1])
    return found


def _names_in(op: Operation) -> Iterable[str]:
    """Return the names of dimensions that an op reads or computes, each once."""
    values = (*op.operands, *op.results)
    return dict.fromkeys(name for value in values for name in names_of(value))
