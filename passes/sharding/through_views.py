"""How a sharding passes through a view, from its operands to its result and back."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.spmd import Sharding
from comet.dialects.compound import ConcatOp, GatherOp, RenameOp, SliceOp, View
from comet.dialects.compound.dims import extents_of, names_of
from comet.dialects.compound.pad import resized_dims


def shown_sharding(
    view: View, of: Callable[[SSAValue], Sharding], mesh: MeshOp
) -> Sharding:
    """
    Return the sharding of what `view` shows, if nothing is moved.

    `of` gives that of each operand. A dimension whose shards are no views of shards is
    whole. Gathered rows have the sharding of the ids, and on other axes that of the
    table.
    """
    match view:
        case RenameOp():
            inner = of(view.input).items()
            hidden = view.merged[1:]
            seen = {view.renaming[d]: axes for d, axes in inner if d not in hidden}
        case SliceOp() | ConcatOp():
            seen = of(view.operands[0])
        case GatherOp():
            ids, names = of(view.ids), names_of(view.result)
            used = {axis for axes in ids.values() for axis in axes}
            table = {d: axes for d, axes in of(view.table).items() if d in names}
            seen = ids | {d: a for d, a in table.items() if used.isdisjoint(a)}
    return local_sharding(view, seen, mesh)


def local_sharding(view: View, wanted: Sharding, mesh: MeshOp) -> Sharding:
    """Return the part of `wanted` whose shards are views of shards of the operands."""
    match view:
        case RenameOp():
            return {d: a for d, a in wanted.items() if _keeps_shards(view, d, a, mesh)}
        case SliceOp() | ConcatOp():
            resized = resized_dims(view)
            return {d: axes for d, axes in wanted.items() if d not in resized}
        case GatherOp():
            return wanted


def operand_sharding(view: View, wanted: Sharding) -> Sharding:
    """Return the sharding of the operands whose shards `view` shows as `wanted`."""
    if isinstance(view, RenameOp):
        return {view.origin[dim]: axes for dim, axes in wanted.items()}
    return wanted


def _keeps_shards(
    rename: RenameOp, dim: str, axes: tuple[str, ...], mesh: MeshOp
) -> bool:
    before, after = extents_of(rename.input), extents_of(rename.result)
    if (old := rename.origin.get(dim)) is None:
        return False
    parts = before[old] if rename.merged else after[dim]
    return old not in rename.reshaped or parts % mesh.size(axes) == 0
