"""
The compound dialect: named compound ops, and the elementary ops they decompose into.

Elementary ops need no affine maps: they use the names of their tensors' dimensions.
`contract` sums the dimensions that its result does not have, `reduce` reduces them,
`map` broadcasts by name.

To read in this order: `dims`, `elementary`, `map`, `fold`, `index`; `views`, which are
`rename`, `gather` and those in `pad`; `copied`, `literals`. `named` has the named ops.
"""

from __future__ import annotations

from typing import TypeAlias

from xdsl.ir import Dialect

from comet.dialects.compound.dims import DimsAttr
from comet.dialects.compound.elementary import (
    CastOp,
    ContractOp,
    ExtentOp,
    FillOp,
    ReduceKind,
    ReduceKindAttr,
    ReduceOp,
)
from comet.dialects.compound.fold import FoldOp, YieldOp
from comet.dialects.compound.gather import GatherOp, ScatterAddOp
from comet.dialects.compound.index import IndexOp
from comet.dialects.compound.map import MAP_ARITY, MapKind, MapKindAttr, MapOp
from comet.dialects.compound.named import named_ops
from comet.dialects.compound.pad import ConcatOp, PaddingAttr, PadOp, SliceOp
from comet.dialects.compound.rename import RenameOp
from comet.dialects.compound.views import View

Elementwise: TypeAlias = MapOp | CastOp
"""An op that computes each element of its result from one element of each operand."""

__all__ = [
    "MAP_ARITY",
    "CastOp",
    "Compound",
    "ConcatOp",
    "ContractOp",
    "Elementwise",
    "ExtentOp",
    "FillOp",
    "FoldOp",
    "GatherOp",
    "IndexOp",
    "MapKind",
    "MapOp",
    "PadOp",
    "ReduceKind",
    "ReduceKindAttr",
    "ReduceOp",
    "RenameOp",
    "ScatterAddOp",
    "SliceOp",
    "View",
    "YieldOp",
]

Compound = Dialect(
    "compound",
    [
        *named_ops(),
        ContractOp,
        ReduceOp,
        MapOp,
        CastOp,
        RenameOp,
        PadOp,
        SliceOp,
        ConcatOp,
        GatherOp,
        ScatterAddOp,
        FillOp,
        ExtentOp,
        IndexOp,
        FoldOp,
        YieldOp,
    ],
    [DimsAttr, MapKindAttr, PaddingAttr, ReduceKindAttr],
)
