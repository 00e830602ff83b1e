"""
Collectives by memory level: one over axes of several levels becomes one per level.

What passes from a level to the one above, or back, is no exchange but the border of a
spatial node: `fuse` makes it a combiner, a concatenation of tiles, or slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective import AllGatherOp, AllReduceOp, ScatterOp
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.compound.dims import extents_of, with_extents

GPU_LEVEL = "HBM"
"""The level of the operands of collectives on a mesh without levels."""


@dataclass(frozen=True)
class LevelStep:
    """One collective over axes of one level."""

    axes: tuple[str, ...]
    from_level: str
    to_level: str

    @property
    def is_explicit(self) -> bool:
        """Whether the collective stays one, instead of becoming a border."""
        return self.from_level == self.to_level


def explicit_level(mesh: MeshOp, at: str | None) -> str:
    """
    Return the level of the explicit collectives, the outermost if `at` is None.

    Raises PassFailedException if no axis of the mesh is there.
    """
    levels = list(dict.fromkeys(mesh.axis_levels.values())) or [GPU_LEVEL]
    if at is not None and at not in levels:
        raise PassFailedException(
            f"place-collectives: no axis of mesh @{mesh.sym_name.data} is at level "
            f"{at}; its axes are at {', '.join(levels)}, so name one of these"
        )
    return levels[0] if at is None else at


def steps_by_level(
    axes: Sequence[str], mesh: MeshOp, at: str | None
) -> tuple[LevelStep, ...]:
    """
    Split a reduction over `axes` into one per memory level, innermost first.

    Raises PassFailedException if no axis of the mesh is at the level `at`.
    """
    explicit = explicit_level(mesh, at)
    level_of = mesh.axis_levels or dict.fromkeys(mesh.axis_extents, GPU_LEVEL)
    levels = list(dict.fromkeys(level_of.values()))
    steps: list[LevelStep] = []
    for depth, level in reversed(list(enumerate(levels))):
        if level_axes := tuple(axis for axis in axes if level_of[axis] == level):
            below = depth > levels.index(explicit)
            between = (level, levels[depth - 1]) if below else (explicit, explicit)
            steps.append(LevelStep(level_axes, *between))
    return tuple(steps)


def plan_steps(
    op: CollectiveOp, mesh: MeshOp, at: str | None, *, hierarchical: bool
) -> tuple[LevelStep, ...]:
    """
    Return the steps of a collective in order: one, at `at`, if it is not split.

    A gather or scatter is split if its extent divides by the group and the axes of
    outer levels are major. With `hierarchical` the explicit steps of a reduction stay
    one. Raises PassFailedException if no axis of the mesh is at the level `at`.
    """
    level, axes = explicit_level(mesh, at), op.axis_names
    steps = steps_by_level(axes, mesh, at)
    if isinstance(op, AllReduceOp):
        return _merged(steps, axes) if hierarchical else steps
    if isinstance(op, AllGatherOp | ScatterOp) and _can_split(op, steps):
        if isinstance(op, AllGatherOp):
            return steps
        return tuple(
            LevelStep(s.axes, s.to_level, s.from_level) for s in reversed(steps)
        )
    return (LevelStep(axes, level, level),)


def _merged(steps: Sequence[LevelStep], axes: Sequence[str]) -> tuple[LevelStep, ...]:
    """Return the steps with the explicit ones as one, over axes of several levels."""
    places = [step for step in steps if step.is_explicit]
    merged_axes = tuple(axis for axis in axes if any(axis in s.axes for s in places))
    merged = [LevelStep(merged_axes, s.from_level, s.to_level) for s in places[:1]]
    return (*(step for step in steps if not step.is_explicit), *merged)


def _can_split(op: AllGatherOp | ScatterOp, steps: Sequence[LevelStep]) -> bool:
    """Whether steps by level give each instance what a gather or scatter does."""
    dim, nested = op.dim.data, [axis for s in reversed(steps) for axis in s.axes]
    shards, extents = extents_of(op.input), extents_of(op.result)
    if isinstance(op, ScatterOp):
        if op.root.value.data != 0:
            return False
        shards, extents = extents, shards
    even = dim in shards and shards[dim] * op.group_size == extents[dim]
    return even and tuple(nested) == op.axis_names


def split_by_level(
    op: CollectiveOp, steps: Sequence[LevelStep], mesh: MeshOp
) -> list[CollectiveOp]:
    """Replace a collective by one per step, each at its level, and return these."""
    if len(steps) == 1:
        _set_place(op, steps[0])
        return [op]
    value, collectives = op.input, list[CollectiveOp]()
    for step in steps:
        collective = _at_step(op, value, step, mesh)
        collective.results[0].name_hint = op.results[0].name_hint
        Rewriter.insert_op(collective, InsertPoint.before(op))
        _set_place(collective, step)
        collectives.append(collective)
        value = collective.results[0]
    Rewriter.replace_op(op, (), (value,))
    return collectives


def _at_step(
    op: CollectiveOp, value: SSAValue, step: LevelStep, mesh: MeshOp
) -> CollectiveOp:
    """Return the collective of `value` over the axes of one step of `op`."""
    symbol, size = op.mesh.string_value(), mesh.size(step.axes)
    if isinstance(op, AllReduceOp):
        return AllReduceOp(value, symbol, step.axes, kind=op.kind.data)
    assert isinstance(op, AllGatherOp | ScatterOp)
    dim, extent = op.dim.data, extents_of(value)[op.dim.data]
    if isinstance(op, AllGatherOp):
        type_ = with_extents(value.type, {dim: extent * size})
        return AllGatherOp(value, symbol, step.axes, type_, dim=dim)
    type_ = with_extents(value.type, {dim: extent // size})
    return ScatterOp(value, symbol, step.axes, type_, dim=dim, root=0)


def _set_place(op: CollectiveOp, step: LevelStep) -> None:
    op.from_level = StringAttr(step.from_level)
    op.to_level = StringAttr(step.to_level)
