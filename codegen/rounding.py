"""
The expected rounding error of a program's results.

To first order, relative errors add up in products and quotients (Higham, "Accuracy and
Stability of Numerical Algorithms", 2nd edition, SIAM 2002, lemma 3.1), and a root
halves them. Other functions keep the largest error of their operands, as inputs are
drawn so that arguments are about 1. Comparisons and random numbers are taken as exact.
Each operation adds a rounding to its element type, at most eps (one unit in the last
place; Triton's interpreter truncates bf16). A sum of n terms adds about sqrt(n) eps,
the probabilistic bound of Higham and Mary, "A new approach to probabilistic rounding
error analysis", SIAM J. Sci. Comput. 41(5), 2019.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float64Type,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from comet.dialects import compound
from comet.dialects.compound import MapKind, ReduceKind
from comet.dialects.compound.dims import element_type_of, extents_of, names_of
from comet.dialects.compound.map import COMPARISONS
from comet.dialects.schedule.attributes import NARROW

EXACT = (
    compound.ConcatOp,
    compound.ExtentOp,
    compound.GatherOp,
    compound.IndexOp,
    compound.PadOp,
    compound.RenameOp,
    compound.SliceOp,
)
"""Operations that do not round."""
CHOICES = (MapKind.MAX, MapKind.MIN, MapKind.NEG, MapKind.COPY, MapKind.SELECT)
"""Functions that return an operand, except for its sign."""
TAKEN_AS_EXACT = (*COMPARISONS, MapKind.RANDOM)
"""Functions whose operands are taken as exact, and that do not round."""
PRODUCTS = (MapKind.MULT, MapKind.DIV)
ROOTS = (MapKind.SQRT, MapKind.RSQRT)


def expected_roundings(
    function: func.FuncOp, results: Sequence[Attribute], *, narrow: bool = False
) -> list[float]:
    """
    Return the expected relative error of the results of an elementary function.

    `results` are the types that they are stored in. The error is at least one rounding
    to that element type. With `narrow` products are rounded to the type of their
    operands, in which kernels store them.
    """
    block = function.body.block
    errors = _errors(block, dict.fromkeys(block.args, 0.0), narrow=narrow)
    return [
        max(error, eps(element_type_of(stored)))
        for stored, error in zip(results, errors, strict=True)
    ]


def stores_narrow(plan: func.FuncOp) -> bool:
    """Return whether kernels of a plan store products in the type of operands."""
    names = plan.attributes.get(NARROW)
    return isinstance(names, StringAttr) and names.data != "none"


def eps(element: Attribute) -> float:
    """Return the distance from 1 to the next number of a floating-point type."""
    match element:
        case BFloat16Type():
            return 2.0**-7
        case Float16Type():
            return 2.0**-10
        case Float64Type():
            return 2.0**-52
        case _:
            return 2.0**-23


def _errors(
    block: Block, errors: Mapping[SSAValue, float], *, narrow: bool
) -> list[float]:
    """Return the errors of a block's results, given those of its arguments."""
    found = dict(errors)
    *ops, terminator = block.ops
    for op in ops:
        operands = [found[value] for value in op.operands]
        if isinstance(op, compound.FoldOp):
            inside: dict[SSAValue, float] = {}
            inside.update(zip(op.step.block.args, operands, strict=True))
            step = _errors(op.step.block, inside, narrow=narrow)
            found |= zip(op.results, step, strict=True)
        else:
            stored = _stored_narrow(op) if narrow else 0.0
            found[op.results[0]] = _passed_on(op, operands) + _local_error(op) + stored
    return [found[value] for value in terminator.operands]


def _passed_on(op: Operation, errors: Sequence[float]) -> float:
    """Return the error that follows from the errors of the operands."""
    kind = op.kind.data if isinstance(op, compound.MapOp) else None
    if kind in TAKEN_AS_EXACT:
        return 0.0
    if isinstance(op, compound.ContractOp) or kind in PRODUCTS:
        return sum(errors)
    return max(errors, default=0.0) * (0.5 if kind in ROOTS else 1.0)


def _local_error(op: Operation) -> float:
    """Return the error that an operation adds."""
    unit = eps(element_type_of(op.results[0]))
    match op:
        case compound.ContractOp():
            return math.sqrt(_extent(op.lhs, op.contracted)) * unit
        case compound.ReduceOp() if op.kind.data is ReduceKind.ADD:
            return math.sqrt(_extent(op.input, op.reduced)) * unit
        case compound.ScatterAddOp():
            return math.sqrt(_extent(op.ids, names_of(op.ids))) * unit
        case compound.CastOp():
            return unit if unit > eps(element_type_of(op.input)) else 0.0
        case compound.MapOp() if op.kind.data in (*CHOICES, *TAKEN_AS_EXACT):
            return 0.0
        case compound.ReduceOp():
            return 0.0
        case _:
            return 0.0 if isinstance(op, EXACT) else unit


def _stored_narrow(op: Operation) -> float:
    """Return the error of rounding a product to the type of its operands, else 0."""
    if not isinstance(op, compound.ContractOp):
        return 0.0
    return max(eps(element_type_of(operand)) for operand in op.operands)


def _extent(value: SSAValue, names: Sequence[str]) -> int:
    extents = extents_of(value)
    return math.prod(extents[name] for name in names)
