"""Mutants of programs with lowered channels: each differs in one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import (
    ArrayAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation

from comet.dialects.dataflow import (
    ArriveOp,
    BarrierOp,
    FlagsOp,
    KernelOp,
    ProgramOp,
    PullOp,
    PushOp,
    ReadOp,
    ReceiveBufferOp,
    SignalOp,
    StageOp,
    WaitOp,
)
from comet.dialects.dataflow.flags import (
    FlagScope,
    ScopeAttr,
    Semantics,
    SemanticsAttr,
)
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.node import NodeOp

Edit: TypeAlias = tuple[str, Callable[[Operation], None]]
"""What is changed, and how."""


def mutants(module: ModuleOp) -> Iterator[tuple[str, ModuleOp]]:
    """Yield copies of a module with one change each, and what was changed."""
    for index, op in enumerate(module.walk()):
        kernel = op.parent_op()
        where = f" in @{kernel.sym_name.data}" if isinstance(kernel, KernelOp) else ""
        for name, change in _edits(op):
            copy = module.clone()
            change(list(copy.walk())[index])
            yield f"{op.name}{where}: {name}", copy


def _edits(op: Operation) -> Iterator[Edit]:
    """Yield the changes that make sense for an operation."""
    if isinstance(op, BarrierOp | SignalOp | WaitOp | PushOp | StageOp):
        if not isinstance(op, PushOp | StageOp) or op.stored is None:
            yield "removed", _remove
        yield "doubled", _double
    if isinstance(op, ArriveOp):
        yield "removed", _remove
    if isinstance(op, BarrierOp):
        yield "of the other kind", _flip
    if isinstance(op, KernelOp) and not any(result.uses for result in op.results):
        yield "removed", _remove
    if isinstance(op.parent_op(), ProgramOp | KernelOp) and _can_move(op):
        yield "moved after the next", _move
    yield from _numbers(op)
    yield from _orders(op)
    if isinstance(op, KernelOp):
        yield from _names(op)
    if isinstance(op, SpatialOp):
        yield from _rows(op)
        if op.is_grid:
            yield "one program for all tiles", _persist


def _remove(op: Operation) -> None:
    if isinstance(op, WaitOp):
        for view, value in zip(op.views, op.awaited, strict=True):
            value.replace_all_uses_with(view)
    if isinstance(op, ArriveOp):
        for view, value in zip(op.partials, op.complete, strict=True):
            value.replace_all_uses_with(view)
    op.detach()
    op.erase()


def _persist(op: Operation) -> None:
    assert isinstance(op, SpatialOp)
    op.launch = (op.launch or LaunchAttr()).replaced(persistent=1)


def _double(op: Operation) -> None:
    block = op.parent
    assert block is not None
    block.insert_op_after(op.clone(), op)


def _flip(op: Operation) -> None:
    assert isinstance(op, BarrierOp)
    op.local = UnitAttr() if op.local is None else None


def _can_move(op: Operation) -> bool:
    """Whether an operation may come after the next one."""
    later = op.next_op
    moving = (
        BarrierOp | KernelOp | PushOp | StageOp | SignalOp | WaitOp | ReadOp | PullOp
    )
    return (
        isinstance(op, moving)
        and later is not None
        and later.next_op is not None
        and not any(value in op.results for value in later.operands)
    )


def _move(op: Operation) -> None:
    block, later = op.parent, op.next_op
    assert block is not None
    assert later is not None
    op.detach()
    block.insert_op_after(op, later)


def _set(name: str, value: Attribute | None) -> Callable[[Operation], None]:
    def change(op: Operation) -> None:
        op.properties.pop(name)
        if value is not None:
            op.properties[name] = value

    return change


def _numbers(op: Operation) -> Iterator[Edit]:
    """Yield other slots, writers and arrivals."""
    name, number = "", None
    match op:
        case ReceiveBufferOp():
            name, number = "slots", op.slots
        case FlagsOp():
            name, number = "writers", op.writers
        case WaitOp() | ArriveOp():
            name, number = "arrivals", op.arrivals
        case _:
            pass
    if number is not None:
        for other in (number.value.data - 1, number.value.data + 1):
            yield f"{name} = {other}", _set(name, IntegerAttr(other, i64))


def _orders(op: Operation) -> Iterator[Edit]:
    """Yield weaker semantics and scopes, and no fence."""
    if isinstance(op, SignalOp | WaitOp | ArriveOp):
        yield "relaxed", _set("semantics", SemanticsAttr(Semantics.RELAXED))
        yield "gpu", _set("scope", ScopeAttr(FlagScope.GPU))
    if isinstance(op, ArriveOp):
        for semantics in (Semantics.ACQUIRE, Semantics.RELEASE):
            yield str(semantics), _set("semantics", SemanticsAttr(semantics))
    if isinstance(op, SignalOp | ArriveOp):
        yield "no fence", _set("fence", None)


def _names(op: KernelOp) -> Iterator[Edit]:
    """Yield fewer and more dimensions that loop over ranks."""
    nodes = [inner for inner in op.walk() if isinstance(inner, NodeOp)]
    dims = dict.fromkeys(row.dim for node in nodes for row in node.loops)
    for which, named in (("sources", op.sources), ("destinations", op.destinations)):
        listed = [] if named is None else [name.data for name in named]
        for dim in dims:
            others = [name for name in listed if name != dim]
            names = [*listed, dim] if others == listed else others
            yield f"{which} {names}", _name(which, names)


def _name(which: str, names: Sequence[str]) -> Callable[[Operation], None]:
    def change(op: Operation) -> None:
        op.properties[which] = ArrayAttr(StringAttr(name) for name in names)

    return change


def _rows(op: SpatialOp) -> Iterator[Edit]:
    """Yield neighbouring rows of the launch grid in the other order."""
    rows = list(op.loops)
    for index in range(len(rows) - 1):
        order = [*rows[:index], rows[index + 1], rows[index], *rows[index + 2 :]]
        loops = [LoopAttr(row.dim, row.factor, f"g{i}") for i, row in enumerate(order)]
        yield f"rows {index} and {index + 1} swapped", _set("loops", ArrayAttr(loops))
