"""Lower bounds of the cost of all mappings of a program, before it is fused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from comet.cost.accelerator.bounds import crossing_bound
from comet.cost.accelerator.compute import MATRIX_UNITS, VECTOR_UNITS, peak
from comet.cost.accelerator.hardware import Hardware
from comet.cost.estimate import ModelName
from comet.cost.from_ir.collective import CollectivePrice, price_of, pricer_for
from comet.cost.from_ir.hardware import hardware_of
from comet.dialects.arch import SystemOp
from comet.dialects.blocks import yielded_by
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.spmd import SpmdOp
from comet.dialects.comet.kinds import operation_kind
from comet.dialects.compound import ContractOp, FoldOp
from comet.dialects.compound.copied import ComputeOp
from comet.dialects.compound.dims import bytes_of, merged_extents
from comet.dialects.compound.pad import PadOp
from comet.dialects.parents import enclosing

OPERATIONS, COLLECTIVES = "operations", "collectives"
"""Names of the work that a bound counts, if it is not bytes."""

Counted: TypeAlias = tuple[float, str]
"""A lower bound, and the name of the work that it counts."""


class FunctionBound(NamedTuple):
    """Lower bounds for the mappings of a program, and the work that they count."""

    latency: float
    """Cycles."""
    energy: float
    """pJ."""
    latency_by: str
    energy_by: str


@dataclass(frozen=True)
class FunctionWork:
    """The least work of all mappings, besides transfers of the root memory."""

    hardware: Hardware
    model: ModelName
    latency: Counted
    """Cycles of operations and collectives, which transfers may hide."""
    energy: float
    """pJ of collectives."""

    def with_crossing(self, read: float, written: float) -> FunctionBound:
        """Return the bounds for mappings that move these bytes at the root memory."""
        crossing, energy = crossing_bound(read, written, self.hardware, self.model)
        moved = f"bytes across {self.hardware.levels[0].name}"
        latency, latency_by = max((crossing, moved), self.latency, key=itemgetter(0))
        energy_by = moved if energy >= self.energy else COLLECTIVES
        return FunctionBound(latency, energy + self.energy, latency_by, energy_by)


def function_bound(
    func: FuncOp,
    system: SystemOp,
    model: ModelName,
    *,
    sharded: bool = False,
    sequential: bool = False,
) -> FunctionBound:
    """
    Return lower bounds of latency (cycles) and energy (pJ) for the mappings of `func`.

    The arguments and results cross the port of the root memory; the rest is that of
    `function_work`.
    """
    work = function_work(func, system, model, sharded=sharded, sequential=sequential)
    return work.with_crossing(*_argument_and_result_bytes(func))


def function_work(
    func: FuncOp,
    system: SystemOp,
    model: ModelName,
    *,
    sharded: bool,
    sequential: bool = False,
) -> FunctionWork:
    """
    Return the least work of all mappings of `func`; 0 under `tool`.

    The bounds follow from these facts:

    * A placed collective takes at least the time and energy of one that moves the whole
      value at once, as loops around it only cut the value.
    * Units of one kind compute their ops one after the other.
    * Under `ideal` all ops run one after the other. Each takes at least the time of its
      work, and of the transfer of arguments and results that only this op has.
    * In `sequential` mappings the children of each node run one after the other, so the
      times of ops and collectives add up.

    If `func` is `sharded` and has no SPMD region, it is the function of one instance.
    It must have no dead code.
    """
    hardware = hardware_of(system)
    if model == "tool":
        return FunctionWork(hardware, model, (0.0, OPERATIONS), 0.0)
    instances = prod(system.axes.values())
    cycles = {
        op: op_cycles(op, instances, hardware, sharded=sharded)
        for op in work_of(func.walk())
    }
    prices = tuple(placed_prices(func.walk(), model))
    times = tuple(price.time for price in prices)
    if model == "ideal":
        work = [(_one_by_one(func, cycles, hardware), "operations in turn")]
    else:
        work = [*_work_bounds(cycles, times, sequential=sequential)]
    latency = max(work, key=itemgetter(0))
    energy = sum(price.energy for price in prices)
    return FunctionWork(hardware, model, latency, energy)


def _work_bounds(
    cycles: Mapping[ComputeOp, float], times: Sequence[float], *, sequential: bool
) -> Iterator[Counted]:
    """Yield bounds of the latency by ops and by the `times` of collectives, cycles."""
    if sequential:
        work = f"operations and {COLLECTIVES}" if times else OPERATIONS
        yield sum(times) + sum(cycles.values()), work
        return
    yield from ((time, COLLECTIVES) for time in times)
    yield from ((time, OPERATIONS) for time in _by_unit(cycles))


def placed_prices(
    ops: Iterable[Operation], model: ModelName
) -> Iterator[CollectivePrice]:
    """Yield the price of each placed collective, executed once on the whole value."""
    for op in ops:
        if isinstance(op, CollectiveOp) and op.is_explicit and op.to_level is not None:
            yield price_of(op, pricer_for(op, None, model))


def _argument_and_result_bytes(func: FuncOp) -> tuple[float, float]:
    """Return the bytes of the arguments that `func` reads, and of its results."""
    read = sum(bytes_of(value) for value in func.body.block.args if _is_read(value))
    return read, sum(map(bytes_of, set(yielded_by(func.body.block))))


def _one_by_one(
    func: FuncOp, cycles: Mapping[ComputeOp, float], hardware: Hardware
) -> float:
    """
    Return the cycles of all ops, one after the other.

    An op takes at least as long as the transfer of the arguments that only it reads,
    and of the results that it computes.
    """
    read, written = Counter[Operation](), Counter[Operation | None]()
    for value in func.body.block.args:
        if len(readers := {*_readers(value)}) == 1:
            read[readers.pop()] += bytes_of(value)
    for value in {*yielded_by(func.body.block)}:
        written[_defining_op(value)] += bytes_of(value)
    return sum(
        max(work, crossing_bound(read[op], written[op], hardware, "ideal")[0])
        for op, work in cycles.items()
    )


def _by_unit(cycles: Mapping[ComputeOp, float]) -> tuple[float, float]:
    """Return the cycles of the matrix units, and of the vector units."""
    matrix = sum(work for op, work in cycles.items() if isinstance(op, ContractOp))
    return matrix, sum(cycles.values()) - matrix


def work_of(ops: Iterable[Operation]) -> Iterator[ComputeOp]:
    """Yield the ops that run at least once: all but the merges of folds."""
    for op in ops:
        above = op.parent_op()
        merges = isinstance(above, FoldOp) and op.parent is above.merge.block
        if isinstance(op, ComputeOp) and not merges:
            yield op


def op_cycles(
    op: ComputeOp, instances: int, hardware: Hardware, *, sharded: bool
) -> float:
    """
    Return the least cycles of an op, on all units that can compute it.

    In an SPMD region, each instance computes with an equal share of the units. In a
    `sharded` function without a region, one instance computes, with such a share. An op
    that no model prices takes 0 cycles.
    """
    if (kind := operation_kind(op)) is None:
        return 0.0
    kinds = MATRIX_UNITS if isinstance(op, ContractOp) else VECTOR_UNITS
    units = [
        level for level in hardware.levels if level.is_unit and level.unit.kind in kinds
    ]
    rate = sum(peak(level.unit, kind) * level.total_instances for level in units)
    in_region = enclosing(op, SpmdOp) is not None
    shares = instances if sharded or in_region else 1
    points = prod(merged_extents((*op.operands, *op.results), op.name).values())
    return points * shares / rate if rate else 0.0


def _is_read(argument: SSAValue) -> bool:
    """Whether an op reads `argument`, also inside the SPMD region."""
    return any(True for _ in _readers(argument))


def _readers(value: SSAValue) -> Iterator[Operation]:
    """Yield the ops that read `value`, also inside regions that it enters."""
    for use in value.uses:
        match use.operation:
            case SpmdOp() as op:
                yield from _readers(op.body.block.args[use.index])
            case FoldOp() as op if use.index < len(op.ins):
                yield from _readers(op.step.block.args[use.index])
            case PadOp() as op:
                yield from _readers(op.results[0])
            case op:
                yield op


def _defining_op(value: SSAValue) -> Operation | None:
    """Return the op that computes `value`, inside the SPMD region if there is one."""
    owner = value.owner
    if isinstance(owner, SpmdOp):
        return _defining_op(owner.yielded[owner.results.index(value)])
    return owner if isinstance(owner, Operation) else None
