"""
`order-operands`: products whose accumulators are not transposed.

`tl.dot` takes the rows of a result from its left operand. Where a loop adds up products
whose result has the dimension of the right operand first, as the gradient of a weight
often has, the operands change places. Otherwise each iteration would transpose its
product, and hold it in registers beside the accumulator. Takes functions at the
schedule or the dataflow level.
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
    """Let the left operand of an accumulated product be the one with its first rows."""

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
