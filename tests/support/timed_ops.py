"""The ops that GPUs are timed with, at sizes that divide by nothing."""

from collections.abc import Mapping

from named_ops import NAMED_OPS, NamedOp

from comet.runtime import Tensor

OPS = {op.title: op for op in NAMED_OPS}
MANY_RANKS = {"gemm_all_reduce": "gemm", "gemm_reduce_scatter": "gemm"}
"""Timed ops that are another one on several ranks."""


def op_of(kind: str) -> NamedOp:
    """Return the named op after a timed one."""
    return OPS[MANY_RANKS.get(kind, kind)]


def operands(kind: str, dtype: str = "float32", **extents: int) -> tuple[Tensor, ...]:
    """Return the operands of a timed op at its odd sizes, but for these extents."""
    op = op_of(kind)
    sizes: Mapping[str, int] = {**op.odd, **extents}
    lengths = op.kind.LENGTHS
    shapes = [tuple(sizes[dim] for dim in dims) for dims in op.operands]
    return tuple(
        Tensor(shape, "int32", at_most=sizes[lengths[index]])
        if index in lengths
        else Tensor(shape, dtype, terms=7)
        for index, shape in enumerate(shapes)
    )
