"""
`order-operands`: swap the operands of a product whose accumulator would be transposed.

The rows of a `tl.dot` come from its left operand. If the accumulator of a loop has the
columns first, as often in the gradient of a weight, each iteration would transpose its
product, and hold it in registers beside the accumulator. With swapped operands nothing
is transposed. Takes functions at the schedule or the dataflow level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from comet.dialects.compound import ContractOp
from comet.dialects.schedule.accumulators import is_accumulated, is_transposed
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass


@dataclass(frozen=True)
class OrderOperandsPass(FunctionPass):
    """Swap the operands of products whose accumulators would be transposed."""

    name = "order-operands"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        for product in tuple(transposed_products(function)):
            swapped = ContractOp(product.rhs, product.lhs, product.result.type)
            swapped.attributes |= product.attributes
            Rewriter.replace_op(product, swapped)


def transposed_products(function: FuncOp) -> Iterator[ContractOp]:
    """Yield the accumulated products whose columns come before their rows."""
    for op in function.walk():
        if isinstance(op, ContractOp) and is_accumulated(op) and is_transposed(op):
            yield op
