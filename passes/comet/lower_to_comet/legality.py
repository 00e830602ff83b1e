"""
The rules for a lowered mapping that the COMET tool prices correctly.

The cost package has the rules of every model and the tool's capacity sums; here are
the rules of the tool alone, most of which it does not check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, prod

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from comet.cost.accelerator.hardware import Unit
from comet.cost.accelerator.legality import LIMIT, check_tool
from comet.cost.accelerator.model import price
from comet.cost.estimate import CostError
from comet.cost.from_ir.hardware import hardware_of
from comet.cost.from_ir.mapping import node_op, problem_of
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.comet import (
    UNPRICED,
    BindingOp,
    CollectiveOp,
    MappingOp,
    OperationOp,
    TileOp,
)
from comet.dialects.errors import OpError
from comet.kinds import BindingKind, CollectiveKind, OperationKind


def check_legality(module: ModuleOp) -> None:
    """Raise PassFailedException for the first rule that the mapping breaks."""
    system = attached_system(module)
    for op in module.walk():
        check_unpriced(op)
        _check_op(op, system)
    mapping = next(op for op in module.ops if isinstance(op, MappingOp))
    try:
        problem, hardware = problem_of(module), hardware_of(system)
        check_tool(problem, hardware)
        _check_latency(price(problem, hardware, "ideal").latency, mapping)
    except CostError as error:
        op = mapping if error.node is None else node_op(module, error.node)
        raise OpError(op, f"lower-to-comet: {error}") from error


def check_unpriced(op: Operation) -> None:
    """Raise PassFailedException for a mapping whose nodes could not be merged."""
    if isinstance(reason := op.attributes.get(UNPRICED), StringAttr):
        raise OpError(op, reason.data)


def _check_op(op: Operation, system: SystemOp) -> None:
    if isinstance(op, TileOp):
        _check_binding(op)
    elif isinstance(op, CollectiveOp):
        _check_group(op, system)
    elif isinstance(op, OperationOp) and op.kind.data is OperationKind.GEMM:
        _check_product(op)
        _check_array(op, system)


def _check_latency(cycles: float, mapping: MappingOp) -> None:
    if cycles >= LIMIT:
        raise OpError(
            mapping,
            f"lower-to-comet: the mapping takes at least {cycles:.0f} cycles, which "
            "overflows the 32 bits in which the COMET tool counts them; make the "
            "problem smaller",
        )


def _check_binding(op: TileOp) -> None:
    kinds = {b.kind.data for b in op.body.block.ops if isinstance(b, BindingOp)}
    if BindingKind.PARALLEL in kinds:
        raise OpError(
            op,
            "lower-to-comet: the COMET tool drops nodes that are bound parallel, or "
            "never ends; bind them sequential or pipeline",
        )
    exchanges = any(isinstance(child, CollectiveOp) for child in op.children)
    if BindingKind.PIPELINE in kinds and exchanges:
        raise OpError(
            op,
            "lower-to-comet: the COMET tool orders the stages of a pipeline with "
            "collectives by chance; bind them sequential",
        )


def _check_group(op: CollectiveOp, system: SystemOp) -> None:
    level = system.level(op.target.data)
    reduces = level.link_field("reduction_support")
    if (
        op.kind.data is CollectiveKind.ALL_REDUCE
        and reduces
        and not level.link_field("broadcast_support")
    ):
        raise OpError(
            op,
            f"lower-to-comet: the network of {level.level_name} reduces but does not "
            "broadcast, and the COMET tool takes an all-reduce on it for free; give "
            "the link broadcast_support, or take a gather",
        )


def _check_product(op: OperationOp) -> None:
    """Check that a tile is a product of two matrices, up to extents of 1."""
    for dim, size in op.primitive.data[:-3]:
        if size > 1:
            raise OpError(
                op,
                f"lower-to-comet: the tile of {op.operation.data} has {dim} = {size} "
                "besides the dimensions of a product of two matrices, and the COMET "
                f"tool would not count them; loop over {dim} with tiles of 1",
            )


def _check_array(op: OperationOp, system: SystemOp) -> None:
    """
    Check that the tool's systolic array distinguishes the dimensions of a tile.

    It takes the first extent, from the right, that *equals* the streamed one; the next
    two are along its rows and its columns. If it takes another dimension, the price
    must not depend on that.
    """
    if op.compute is None:
        return
    streamed, size = op.compute.data.reduction[-1]
    reversed_tile = list(reversed(op.primitive.data))
    wanted = [extent for dim, extent in reversed_tile if dim != streamed]
    found = [extent for _, extent in reversed_tile]
    found.remove(size)
    for unit in _arrays(op, system):
        if _passes(found, unit.sides) != _passes(wanted, unit.sides):
            raise OpError(
                op,
                f"lower-to-comet: the tile of {op.operation.data} has {size} along "
                f"{streamed} and along another dimension, and the COMET tool confuses "
                "equal extents; choose different factors",
            )


def _arrays(op: OperationOp, system: SystemOp) -> Iterator[Unit]:
    """Yield the systolic arrays that run `op`."""
    leaf = op.parent_op()
    names = {e.child for e in leaf.entries} if isinstance(leaf, TileOp) else set[str]()
    for level in hardware_of(system).levels:
        if level.name in names and level.is_unit:
            if level.unit.kind == "SystolicArray":
                yield level.unit


def _passes(extents: Sequence[int], shape: tuple[int, int]) -> int:
    return prod(ceil(size / edge) for size, edge in zip(extents, shape, strict=False))
