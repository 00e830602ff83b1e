"""Which values are resident: they stay in the cores between two nodes of a nest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import ContractOp, FoldOp
from comet.dialects.compound.dims import names_of
from comet.dialects.schedule.attributes import LoopAttr
from comet.passes.schedule.fuse.accelerator.folds import readers_across_steps
from comet.passes.schedule.fuse.instance_ops import InstanceOps
from comet.passes.schedule.tile_tree import (
    Aliases,
    Spatial,
    Temporal,
    Tree,
    children_of,
    folds_of,
    ops_of,
)


def resident_values(
    trees: Sequence[Temporal],
    core: str,
    aliases: Aliases,
    instance: InstanceOps,
    completed: frozenset[SSAValue],
    *,
    spills: bool,
) -> Iterator[SSAValue]:
    """
    Yield the values that stay in the cores between two nodes of one nest.

    Both nodes must shard them equally, and there must be no other uses. `completed`
    values are only complete after the border of a node, so they do not stay; with
    `spills`, products do not stay either.
    """
    for tree in trees:
        homes = dict(_homes(tree, core))
        for op, home in homes.items():
            if spills and isinstance(op, ContractOp):
                continue
            for value in op.results:
                if (
                    value not in completed
                    and value not in instance.outputs
                    and all(
                        _reads_in_core(value, user, home, homes.get(user))
                        for user in readers_across_steps(value, aliases)
                    )
                ):
                    yield value


@dataclass(frozen=True)
class _Home:
    """Where an op runs: the spatial loops around it, and the fold around it."""

    loops: tuple[LoopAttr, ...]
    """The loops of the nodes over clusters and cores around it."""
    fold: FoldOp | None = None

    def within(self, tree: Tree) -> _Home:
        """Return the home of the children of `tree`."""
        loops = (*self.loops, *(tree.loops if isinstance(tree, Spatial) else ()))
        return _Home(loops, next(iter(folds_of(tree)), self.fold))


def _homes(
    tree: Tree, core: str, around: _Home = _Home(())
) -> Iterator[tuple[Operation, _Home]]:
    """Yield the home of each op of a nest; `core` is the level of the cores."""
    here = around.within(tree)
    if isinstance(tree, Spatial) and tree.level == core:
        yield from ((op, here) for op in ops_of(tree))
        return
    for child in children_of(tree):
        yield from _homes(child, core, here)


def _reads_in_core(
    value: SSAValue, user: Operation, home: _Home, reader: _Home | None
) -> bool:
    """
    Return whether `user` reads `value` in the core that computed it.

    A fold loads chunks that it does not compute from the shared buffer: the COMET files
    count the steps of a loop by the tensors that it loads.
    """
    if reader is None or isinstance(user, ContractOp):
        return False
    fold = reader.fold
    chunked = fold is not None and fold.dim.data in names_of(value)
    same_loop = fold is home.fold
    return reader.loops == home.loops and (same_loop or not chunked)
