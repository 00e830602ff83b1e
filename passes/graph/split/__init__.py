"""
`split`: elementary level -> elementary level, with one dimension split into parts.

A reduction or a fold over the dimension becomes one that computes a partial result for
each part, and one that merges these in a separate kernel. So the first kernel can have
more programs than there are results (split-K). Ops, shardings and arguments get two
dimensions in place of the split one, such as S_part and S_in. If `products` are given,
only these are split: they read views of their operands in parts, and other ops keep the
dimension. Rejects a dimension that no function has, that is returned, or that is
renamed, and a number of parts that does not divide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.blocks import defined_in
from comet.dialects.compound import (
    ContractOp,
    ExtentOp,
    FoldOp,
    GatherOp,
    ReduceOp,
    RenameOp,
    ScatterAddOp,
)
from comet.dialects.compound.dims import joined_extents, names_of, unused
from comet.dialects.compound.pad import resized_dims
from comet.dialects.errors import OpError
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.graph.split.ops import Split, is_merged_from, split_ops
from comet.passes.graph.split.products import products_over, with_operands


@dataclass(frozen=True)
class SplitPass(ModulePass):
    """Split one dimension into parts, and merge the partial results of the parts."""

    name = "split"

    dim: str
    """The dimension to split."""
    parts: int
    """The number of parts, over all ranks; a divisor of the dimension's extent."""
    products: str | None = None
    """The products to split, by the names of their results; without, all ops are."""

    @property
    def label(self) -> str:
        """The split as the pipeline's option takes it, such as S=64 or D=4: q k."""
        products = f": {self.products}" if self.products else ""
        return f"{self.dim}={self.parts}{products}"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function of the module that has the dimension."""
        functions = functions_at(op, self.name, IRLevel.ELEMENTARY)
        having = [func for func in functions if self.dim in _extents(func)]
        if not having:
            dims = sorted({dim for func in functions for dim in _extents(func)})
            raise PassFailedException(
                f"split: no value has the dimension {self.dim}; the dimensions of the "
                f"module are {', '.join(dims) or 'not named, run decompose first'}",
            )
        self._check_products(having)
        for func in having:
            if ops := self._ops(func):
                split_ops(func, plan_split(func, self.dim, self.parts, ops), ops)

    def _ops(self, func: FuncOp) -> list[Operation]:
        """Return the ops of a function that are split."""
        if not self.products:
            return ops_with(func, self.dim)
        names, found = self.products.split(), products_over(func, self.dim)
        products = [op for name, op in found.items() if name in names]
        return with_operands(func, products, self.dim)

    def _check_products(self, functions: Sequence[FuncOp]) -> None:
        """Raise PassFailedException for a name that no product over `dim` has."""
        known = [name for f in functions for name in products_over(f, self.dim)]
        for name in (self.products or "").split():
            if name not in known:
                raise PassFailedException(
                    f"split: no product over {self.dim} is called %{name}; there are "
                    f"{', '.join(f'%{each}' for each in known) or 'none'}",
                )


def _extents(func: FuncOp) -> dict[str, int]:
    """Return the extent of every dimension of the values of a function."""
    return joined_extents(defined_in(func.body.block))


def ops_with(func: FuncOp, dim: str) -> list[Operation]:
    """Return all ops of a function that have a dimension, in order."""
    return [
        op
        for op in func.body.block.ops
        if any(dim in names_of(value) for value in (*op.operands, *op.results))
    ]


def plan_split(func: FuncOp, dim: str, parts: int, ops: Sequence[Operation]) -> Split:
    """
    Choose the names of the new dimensions.

    Raises PassFailedException if `dim` of `ops` cannot be split into `parts`.
    """
    extents, name = _extents(func), func.sym_name.data
    if parts < 1 or extents[dim] % parts:
        even = [n for n in range(1, extents[dim] + 1) if extents[dim] % n == 0]
        raise OpError(
            func,
            f"split: {dim} = {extents[dim]} of @{name} has no {parts} parts of one "
            f"extent; parts may be {', '.join(map(str, even))}",
        )
    for op in ops:
        _check_op(op, dim, parts, name)
    part, inner, merged = (
        unused(f"{dim}_{suffix}", extents) for suffix in ("part", "in", "parts")
    )
    return Split(dim, part, inner, merged, parts, extents[dim] // parts)


def _check_op(op: Operation, dim: str, parts: int, function: str) -> None:
    """Raise PassFailedException if `op` cannot have `dim` as two dimensions."""
    if isinstance(op, ReturnOp):
        raise OpError(
            op,
            f"split: @{function} returns a value with {dim}; split a dimension that is "
            "reduced",
        )
    replaced = isinstance(op, RenameOp) and not op.keeps(dim)
    replaced &= not is_merged_from(op, dim, parts)
    replaced |= isinstance(op, GatherOp) and op.along == dim
    if isinstance(op, FoldOp) and op.dim.data != dim:
        replaced |= any(_sums(each, dim) for each in op.walk())
    if isinstance(op, ScatterAddOp):
        replaced |= dim in (op.into, *names_of(op.ids))
    if replaced or isinstance(op, ExtentOp) or dim in resized_dims(op):
        raise OpError(
            op,
            f"split: '{op.name}' of @{function} reads {dim} as one dimension; split "
            "another one",
        )


def _sums(op: Operation, dim: str) -> bool:
    """Whether an op in a fold reduces a dimension."""
    if not isinstance(op, ContractOp | ReduceOp):
        return False
    return dim in names_of(op.operands[0]) and dim not in names_of(op.result)
