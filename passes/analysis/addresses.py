"""What COMET files cannot say: addresses by position or by data, random numbers."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from comet.dialects.compound import IndexOp, MapKind, MapOp, gather
from comet.dialects.errors import OpError


def check_addresses(func: FuncOp) -> None:
    """Raise PassFailedException for an op of positions, ids or random numbers."""
    for op in func.walk():
        if isinstance(op, MapOp) and op.kind.data is MapKind.RANDOM:
            raise OpError(
                op,
                f"fuse: @{func.sym_name.data} has random numbers, and no unit of an "
                "accelerator makes them; make them an argument of the function, or "
                "compile for a GPU",
            )
        if isinstance(op, IndexOp):
            raise OpError(
                op,
                f"fuse: @{func.sym_name.data} has 'compound.index', and accelerators "
                "do not compute the position of an element; causal masks and scans "
                "need a GPU",
            )
        if isinstance(op, gather.GatherOp | gather.ScatterAddOp):
            rows = "gathered" if isinstance(op, gather.GatherOp) else "summed"
            raise OpError(
                op,
                f"fuse: @{func.sym_name.data} has '{op.name}', and addresses in the "
                f"COMET files do not depend on data; make the {rows} rows an argument "
                "of the function, or compile for a GPU",
            )
