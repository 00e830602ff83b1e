"""Reads the epilogue of a GPU kernel that subtiles can divide."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from comet.cost.from_ir.products import tile_bytes
from comet.cost.gpu.device import Device
from comet.cost.gpu.terms import DividedEpilogue
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.epilogue import epilogue_of


def divided_epilogue(
    node: SpatialOp, gpu: Device
) -> Mapping[Operation, DividedEpilogue]:
    """
    Return the epilogue of a kernel by its ops, none if subtiles cannot divide it.

    The terminator is one of them: in subtiles, results have been stored before it.
    """
    if gpu.triton.stores.epilogue_subtiles <= 1:
        return {}
    if (epilogue := epilogue_of(node)) is None:
        return {}
    accumulators = tuple(map(tile_bytes, epilogue.accumulators))
    divided = DividedEpilogue(accumulators, bool(epilogue.loaded))
    return dict.fromkeys(epilogue.region, divided)
