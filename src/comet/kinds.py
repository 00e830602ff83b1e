"""The words of COMET files, and how operations index their tensors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import auto

from xdsl.utils.str_enum import StrEnum

ROOT_MEMORY = "DRAM"
"""The level whose capacity has no limit: the COMET tool knows it by this name."""


class TileKind(StrEnum):
    """How the iterations of a data-movement node follow each other."""

    TEMPORAL = auto()
    SPATIAL = auto()


class BindingKind(StrEnum):
    """How a node runs relative to its next sibling."""

    SEQUENTIAL = auto()
    PIPELINE = auto()
    PARALLEL = auto()
    SHARING = auto()


class OperationKind(StrEnum):
    """The operation types that a compute unit of the COMET tool can price."""

    GEMM = auto()
    SOFTMAX = auto()
    MAX = auto()
    EXP = auto()
    DIV = auto()
    ADD = auto()
    MULT = auto()
    SQRT = auto()
    ROWSUM = auto()
    ROWMAX = auto()
    CONVOLUTION = auto()


class CollectiveKind(StrEnum):
    """The collectives of the COMET tool."""

    BROADCAST = auto()
    REDUCTION = auto()
    ALL_GATHER = "allgather"
    ALL_REDUCE = "allreduce"
    SCATTER = auto()
    GATHER = auto()


class ReductionKind(StrEnum):
    """How a reducing collective combines two values; the tool treats sub as add."""

    MAX = auto()
    ADD = auto()
    SUB = auto()
    MULT = auto()


@dataclass(frozen=True)
class Access:
    """How an operation indexes one of its tensors."""

    tensor: str
    projection: tuple[tuple[str, ...], ...]
    """For each axis, the dimensions whose indices are added."""
    read_write: bool = False
    """True for the tensor that the operation writes."""
