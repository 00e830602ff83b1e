"""The tiles that shared memory holds at the same time, for software pipelines."""

from __future__ import annotations

from xdsl.ir import SSAValue

from comet.cost.from_ir.bodies import Body
from comet.cost.from_ir.products import tile_bytes
from comet.cost.gpu.terms import Term
from comet.cost.gpu.triton_rules import CopyRules
from comet.dialects.arch.gpu_levels import GpuLevels
from comet.dialects.compound import ContractOp, Elementwise
from comet.dialects.compound.dims import level_of, names_of
from comet.dialects.schedule import TemporalOp


def staged_groups(
    tree: Body, levels: GpuLevels, rules: CopyRules
) -> tuple[tuple[Term, ...], ...]:
    """
    Return the groups of tiles that shared memory holds at the same time, bytes.

    Each body has one; a loop also one with the tiles of the loops in it, since it loads
    these itself where they have one trip.
    """
    groups: list[tuple[Term, ...]] = []

    def read(body: Body, outer: tuple[SSAValue, ...]) -> tuple[Term, ...]:
        """Add the groups of a body; return what it and those in it load."""
        node, loops = body.node, body.loops
        own = tuple(tile for tile in node.tiles if _is_staged(tile, levels, rules))
        held = (*outer, *own)
        inner = [term for each in body.inner.values() for term in read(each, held)]
        filled = tuple(tile_bytes(tile, loops) for tile in held)
        groups.append(filled)
        if isinstance(node, TemporalOp) and inner:
            groups.append((*filled, *inner))
        loaded = (*(tile_bytes(tile, loops) for tile in own), *inner)
        dims = tuple(node.factors)
        return tuple(term._replace(inner=(*dims, *term.inner)) for term in loaded)

    read(tree, ())
    return tuple(groups)


def _is_staged(tile: SSAValue, levels: GpuLevels, rules: CopyRules) -> bool:
    """Return whether the software pipeline loads a tile to shared memory."""
    if level_of(tile) == levels.shared:
        return True
    in_registers = level_of(tile) == levels.registers
    return rules.stages_converted and in_registers and _feeds_product(tile)


def _feeds_product(value: SSAValue) -> bool:
    """Whether a contraction reads a value, directly or through elementwise ops."""
    users = [use.operation for use in value.uses]
    return any(
        isinstance(user, ContractOp)
        or (
            isinstance(user, Elementwise)
            and names_of(user.result) == names_of(value)
            and _feeds_product(user.result)
        )
        for user in users
    )
