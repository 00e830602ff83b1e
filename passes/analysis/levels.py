"""The IR level of a function, and checks that a pass accepts it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import auto

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.str_enum import StrEnum

from comet.dialects.collective.spmd import SpmdOp
from comet.dialects.compound.named import CompoundOp
from comet.dialects.errors import OpError
from comet.dialects.schedule import CopyOp
from comet.passes.analysis.functions import compute_functions


class IRLevel(StrEnum):
    """The levels of a function, from named ops to the target."""

    GRAPH = auto()
    ELEMENTARY = auto()
    SPMD = auto()
    SCHEDULE = auto()
    DATAFLOW = auto()
    TARGET = auto()


ORDER = tuple(IRLevel)

MADE_BY: Mapping[IRLevel, str] = {
    IRLevel.ELEMENTARY: "decompose",
    IRLevel.SPMD: "insert-collectives",
    IRLevel.SCHEDULE: "fuse",
    IRLevel.DATAFLOW: "outline-kernels",
    IRLevel.TARGET: "lower-to-triton",
}
"""The pass that lowers functions to a level."""

_BY_DIALECT: Mapping[str, IRLevel] = {
    "tl": IRLevel.TARGET,
    "dataflow": IRLevel.DATAFLOW,
    "schedule": IRLevel.SCHEDULE,
    "collective": IRLevel.SPMD,
    "compound": IRLevel.ELEMENTARY,
}


def spmd_region(func: FuncOp) -> SpmdOp | None:
    """Return the region that every rank runs, None in a function of one device."""
    ops = func.body.block.ops
    return next((op for op in ops if isinstance(op, SpmdOp)), None)


def compute_block(func: FuncOp) -> Block:
    """Return the block that one device runs: the SPMD region's, or the function's."""
    region = spmd_region(func)
    return func.body.block if region is None else region.body.block


def level_of_function(func: FuncOp) -> IRLevel | None:
    """
    Return the level of `func`, None if it computes nothing.

    Ops inside its SPMD region count.
    """
    ops = list(func.body.block.ops)
    if (region := spmd_region(func)) is not None:
        inside = list(region.body.block.ops)[:-1]
        ops = [*ops, *inside] if inside else []
    if any(isinstance(op, CompoundOp) for op in ops):
        return IRLevel.GRAPH
    dialects = {op.name.partition(".")[0] for op in ops}
    return next((lv for name, lv in _BY_DIALECT.items() if name in dialects), None)


def functions_at(
    module: ModuleOp, name: str, *accepted: IRLevel, copies: bool = False
) -> tuple[FuncOp, ...]:
    """
    Return the functions that the pass `name` works on.

    Raises PassFailedException if a function is not at one of the levels `accepted` (in
    order), if it has several blocks or no results, and if the module is lowered
    completely. A pass that does not accept `copies` also rejects functions with
    `schedule.copy`.
    """
    functions = tuple(compute_functions(module))
    if not functions and any(op.name == "comet.mapping" for op in module.ops):
        raise PassFailedException(
            f"{name}: the module is a COMET mapping already; run {name} before "
            "lower-to-comet"
        )
    for op in functions:
        _check_level(op, name, accepted)
        if not copies:
            check_transfers(op, name)
    return functions


def check_transfers(op: FuncOp, name: str) -> None:
    """Raise PassFailedException in the name of a pass if `op` has copies of tiles."""
    if any(isinstance(inner, CopyOp) for inner in op.walk()):
        raise OpError(
            op,
            f"{name}: @{op.sym_name.data} has a schedule.copy, and this pass "
            f"takes transfers from the borders of nodes; run {name} before "
            "materialize-copies",
        )


def check_blocks(op: FuncOp, name: str) -> None:
    """Raise PassFailedException in the name of a pass if `op` has several blocks."""
    if len(op.body.blocks) != 1:
        raise OpError(
            op,
            f"{name}: @{op.sym_name.data} has {len(op.body.blocks)} blocks; write it "
            "as one, without branches",
        )


def _check_level(op: FuncOp, name: str, accepted: tuple[IRLevel, ...]) -> None:
    check_blocks(op, name)
    level = level_of_function(op)
    if level is not None and not op.function_type.outputs:
        raise OpError(
            op,
            f"{name}: @{op.sym_name.data} returns nothing, so nothing of it is needed; "
            "return what it computes",
        )
    if level is not None and level not in accepted:
        raise OpError(
            op,
            f"{name}: @{op.sym_name.data} is at the {level} level and this pass takes "
            f"the {' or '.join(accepted)} level; {_way_out(name, level, accepted)}",
        )


def _way_out(name: str, level: IRLevel, accepted: tuple[IRLevel, ...]) -> str:
    """Return the remedy: the passes to run first, or the pass that must run later."""
    later = [other for other in accepted if ORDER.index(other) > ORDER.index(level)]
    if not later:
        pass_ = MADE_BY[level]
        return "it has run already" if pass_ == name else f"run {name} before {pass_}"
    steps = ORDER[ORDER.index(level) + 1 : ORDER.index(later[0]) + 1]
    needed = [MADE_BY[lv] for lv in steps if lv in (*later[:1], *_NEEDED)]
    return f"run {', '.join(needed)} first"


_NEEDED = (IRLevel.ELEMENTARY, IRLevel.SCHEDULE, IRLevel.DATAFLOW)
"""The levels that every function goes through when it is lowered."""
