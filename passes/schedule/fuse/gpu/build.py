"""
Builds the tile tree of one GPU kernel from its plan.

Kernel inputs live in device memory. They pass down the tree as handles and are loaded
at the border of the innermost node that splits them: into shared memory for a
contraction, into registers for anything else. What ops make stays in registers; tiles
that a loop lays side by side are stored to device memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, Region, SSAValue

from comet.dialects.arch.gpu_levels import GpuLevels
from comet.dialects.compound import ContractOp, FillOp, FoldOp
from comet.dialects.compound.dims import level_of, names_of, with_level
from comet.dialects.schedule import SpatialOp, TemporalOp, YieldOp
from comet.dialects.schedule.attributes import Combiner, LoopAttr
from comet.passes.analysis.reduction_loops import (
    Sweep,
    combiner_of,
    iteration_dims,
    plan_sweeps,
    reduced_dims,
    without_constants,
)


@dataclass(frozen=True)
class KernelPlan:
    """What one kernel computes, and which loops it has."""

    ops: tuple[Operation, ...]
    """Elementary ops in order, the constants that they use not among them."""
    outs: tuple[SSAValue, ...]
    """The results that are needed outside the kernel."""
    grid: tuple[str, ...]
    """Dimensions that programs split among them."""
    loops: tuple[str, ...]
    """Dimensions that each program loops over, outermost first."""
    spilled: frozenset[SSAValue] = frozenset()
    """Tiles that a sweep writes to device memory for a later one."""


@dataclass
class _Scope:
    """Where ops are being inserted, and what stands for each value there."""

    block: Block
    levels: GpuLevels
    spilled: frozenset[SSAValue]
    values: dict[tuple[SSAValue, str], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, str], SSAValue]
    )
    """What stands for a value, by the level at which it stands."""
    carries: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """What a fold's results were after the previous tile, in the body of its loop."""

    def inner(self, block: Block) -> _Scope:
        return _Scope(block, self.levels, self.spilled)

    def add(self, value: SSAValue, stands: SSAValue) -> None:
        level = level_of(stands)
        assert level is not None
        self.values[value, level] = stands
        stands.name_hint = stands.name_hint or value.name_hint

    def at(self, value: SSAValue, level: str) -> SSAValue:
        """Return what stands for `value`, at `level` if it is there."""
        registers, memory = self.levels.registers, self.levels.memory
        if isinstance(value.owner, FillOp) and (value, registers) not in self.values:
            _insert(value.owner, self, {})
        for candidate in (level, registers, memory):
            if (found := self.values.get((value, candidate))) is not None:
                return found
        return self.values[value, self.levels.shared]


@dataclass(frozen=True)
class _Entry:
    """One value that enters the body of a node."""

    value: SSAValue
    outer: SSAValue
    level: str
    """Where it lives in the body."""


def build_kernel(
    plan: KernelPlan, levels: GpuLevels, inputs: Mapping[SSAValue, SSAValue]
) -> SpatialOp:
    """
    Return the grid node of a kernel; `inputs` gives what stands for its inputs.

    All rows have factor 1; `tile` chooses.
    """
    needs = _needs(plan.ops, plan.loops, levels)
    body = Block(arg_types=[with_level(v.type, level) for v, level in needs])
    scope = _Scope(body, levels, plan.spilled)
    for (value, _), argument in zip(needs, body.args, strict=True):
        scope.add(value, argument)
    _emit(plan.ops, plan.loops, set(plan.outs), scope)
    body.add_op(YieldOp(*(scope.at(v, levels.memory) for v in plan.outs)))
    node = SpatialOp(
        None,
        [LoopAttr(dim, 1, f"g{index}") for index, dim in enumerate(plan.grid)],
        [inputs[value] for value, _ in needs],
        [with_level(value.type, levels.memory) for value in plan.outs],
        [_program_combiner(value, plan.grid) for value in plan.outs],
        Region(body),
    )
    for value, result in zip(plan.outs, node.outs, strict=True):
        result.name_hint = value.name_hint
    return node


def _program_combiner(value: SSAValue, grid: Sequence[str]) -> Combiner:
    """Return how programs' tiles become a result: a number is the same in all."""
    split = set(grid) <= set(names_of(value))
    return Combiner.NONE if split else Combiner.SAME


def _operands(op: Operation) -> Iterator[tuple[SSAValue, bool]]:
    """Yield the operands of an op, and whether a contraction reads each."""
    if not isinstance(op, FoldOp):
        for value in op.operands:
            yield value, isinstance(op, ContractOp)
        return
    for value, chunk in zip(op.ins, op.step.block.args, strict=False):
        uses = [use.operation for use in chunk.uses]
        yield value, bool(uses) and all(isinstance(use, ContractOp) for use in uses)
    for value in op.init:
        yield value, False


def _needs(
    ops: Sequence[Operation], loops: Sequence[str], levels: GpuLevels
) -> tuple[tuple[SSAValue, str], ...]:
    """
    Return what a body that computes `ops` reads from outside, and at which level.

    `loops` are those that will stand inside the body.
    """
    made = {result for op in ops for result in op.results}
    needs: dict[tuple[SSAValue, str], None] = {}
    for op in ops:
        inside = set(loops) & set(iteration_dims(op))
        for value, contracted in _operands(op):
            if value in made or isinstance(value.owner, FillOp):
                continue
            loaded = levels.shared if contracted else levels.registers
            later = bool(inside & set(names_of(value)))
            needs[value, levels.memory if later else loaded] = None
    return tuple(needs)


def _emit(
    ops: Sequence[Operation],
    loops: Sequence[str],
    wanted: set[SSAValue],
    scope: _Scope,
) -> None:
    """Insert `ops` into the scope, inside `loops` as far as they have these."""
    if not loops:
        for op in ops:
            _emit_op(op, scope)
        return
    plan = plan_sweeps(ops, loops[0], wanted, scope.spilled)
    for index, segment in enumerate(plan.between):
        _emit(segment, loops[1:], wanted | _used_outside(segment, ops), scope)
        if index < len(plan.sweeps):
            _emit_sweep(plan.sweeps[index], loops, scope)


def _used_outside(
    segment: Sequence[Operation], ops: Sequence[Operation]
) -> set[SSAValue]:
    """Return what the ops that are not in `segment` use."""
    inside = set(segment)
    return {value for op in ops if op not in inside for value in op.operands}


def _emit_op(op: Operation, scope: _Scope) -> None:
    if isinstance(op, FoldOp):
        results = _inline_step(op, scope)
        for value, result in zip(op.outs, results, strict=True):
            scope.add(value, result)
        return
    levels = scope.levels
    level = levels.shared if isinstance(op, ContractOp) else levels.registers
    _insert(op, scope, {value: scope.at(value, level) for value in op.operands})


def _insert(
    op: Operation, scope: _Scope, operands: Mapping[SSAValue, SSAValue]
) -> None:
    """Insert a copy of `op`, its results in registers."""
    registers = scope.levels.registers
    made = op.create(
        operands=[operands[value] for value in op.operands],
        result_types=[with_level(r.type, registers) for r in op.results],
        properties=dict(op.properties),
    )
    scope.block.add_op(made)
    for value, result in zip(op.results, made.results, strict=True):
        scope.add(value, result)


def _inline_step(op: FoldOp, scope: _Scope) -> tuple[SSAValue, ...]:
    """Insert the step of a fold on the chunk at hand; return the next carries."""
    levels = scope.levels
    step = scope.inner(scope.block)
    for argument, (value, contracted) in zip(
        op.step.block.args[: len(op.ins)], _operands(op), strict=False
    ):
        level = levels.shared if contracted else levels.registers
        step.add(argument, scope.at(value, level))
    for argument, init, result in zip(
        op.step.block.args[len(op.ins) :], op.init, op.outs, strict=True
    ):
        carried = scope.carries.get(result)
        step.add(argument, carried or scope.at(init, levels.registers))
    *ops, terminator = op.step.block.ops
    for inner in without_constants(ops):
        _emit_op(inner, step)
    return tuple(step.at(value, levels.registers) for value in terminator.operands)


def _emit_sweep(sweep: Sweep, loops: Sequence[str], scope: _Scope) -> None:
    """Insert the temporal node of one sweep over the outermost of `loops`."""
    folds = [op for op in sweep.ops if isinstance(op, FoldOp)]
    folds = [op for op in folds if op.dim.data == loops[0]]
    inits = [scope.at(v, scope.levels.registers) for op in folds for v in op.init]
    entries = _entries(sweep.ops, folds, loops, scope)
    body = Block(
        arg_types=[
            *(with_level(entry.value.type, entry.level) for entry in entries),
            *(value.type for value in inits),
        ]
    )
    inner = scope.inner(body)
    for entry, argument in zip(entries, body.args, strict=False):
        inner.add(entry.value, argument)
    results = [result for op in folds for result in op.outs]
    for result, carry in zip(results, body.args[len(entries) :], strict=True):
        carry.name_hint = result.name_hint
        inner.carries[result] = carry
    _emit(sweep.ops, loops[1:], set(sweep.outputs), inner)
    ins = [entry.outer for entry in entries]
    _close_sweep(sweep, loops[0], ins, inits, scope, inner)


def _entries(
    ops: Sequence[Operation],
    folds: Sequence[FoldOp],
    loops: Sequence[str],
    scope: _Scope,
) -> tuple[_Entry, ...]:
    """Return what enters the body of a sweep; carries of `folds` come in otherwise."""
    levels = scope.levels
    carried = {value for op in folds for value in op.init}
    carried -= {value for op in ops if op not in folds for value in op.operands}
    entries: dict[tuple[SSAValue, str], _Entry] = {}
    for value, wanted in _needs(ops, loops[1:], levels):
        if value in carried:
            continue
        outer = scope.at(value, wanted)
        level = wanted if level_of(outer) == levels.memory else level_of(outer)
        assert level is not None
        entries[value, level] = _Entry(value, outer, level)
    return tuple(entries.values())


def _close_sweep(
    sweep: Sweep,
    dim: str,
    ins: Sequence[SSAValue],
    inits: Sequence[SSAValue],
    scope: _Scope,
    inner: _Scope,
) -> None:
    """End the body of a sweep and insert its node; its results join the scope."""
    levels = scope.levels
    yielded = [inner.at(value, levels.registers) for value in sweep.outputs]
    inner.block.add_op(YieldOp(*yielded))
    kept = [dim in names_of(value) for value in sweep.outputs]
    node = TemporalOp(
        [LoopAttr(dim, 1)],
        ins,
        inits,
        [
            with_level(tile.type, levels.memory if keeps else levels.registers)
            for tile, keeps in zip(yielded, kept, strict=True)
        ],
        [
            Combiner.NONE if keeps else _loop_combiner(value, dim)
            for value, keeps in zip(sweep.outputs, kept, strict=True)
        ],
        Region(inner.block),
    )
    scope.block.add_op(node)
    for value, result in zip(sweep.outputs, node.outs, strict=True):
        scope.add(value, result)


def _loop_combiner(value: SSAValue, dim: str) -> Combiner:
    """Return how a loop over `dim` combines a result that has no such dimension."""
    op = _producer(value)
    return combiner_of(op) if dim in reduced_dims(op) else Combiner.SAME


def _producer(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner
