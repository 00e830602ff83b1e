"""
Chains of mappings: what an accelerator computes one mapping after the other.

The op is of the dialect `dataflow`. The other ops of that dialect are about GPUs, so
passes for accelerators import this module alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import FlatSymbolRefAttr, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure, SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from comet.dialects.blocks import yielded_by
from comet.dialects.compound.dims import element_type_of, extents_of


class MappingModule(SymbolUserOpInterface):
    """A mapping of a chain names a module next to its function."""

    def verify(self, op: Operation) -> None:
        """Check that there is such a module, and that its function fits."""
        assert isinstance(op, MappingOp)
        func = op.function()
        if func is None:
            return
        block = func.body.block
        for what, inside, outside in (
            ("takes", block.args, op.ins),
            ("returns", yielded_by(block), op.outs),
        ):
            if [_shape(v) for v in inside] != [_shape(v) for v in outside]:
                actual, wanted = (
                    ", ".join(str(v.type) for v in values)
                    for values in (outside, inside)
                )
                raise VerifyException(
                    f"'{op.name}' op has ({actual}), and @{op.symbol} {what} ({wanted})"
                )


@irdl_op_definition
class MappingOp(IRDLOperation):
    """
    Run one mapping of a chain, from tensors in the root memory to tensors there.

    The mapping is that of a module beside the function, which has one function with the
    name of the module, at any level; when it is lowered, COMET files. Nothing stays on
    chip from one mapping to the next.

    ```mlir
    %h = dataflow.mapping @block_1 ins(%x, %g : tensor<..>, tensor<..>) -> tensor<..>
    ```
    """

    name = "dataflow.mapping"
    callee = prop_def(FlatSymbolRefAttr)
    ins = var_operand_def()
    outs = var_result_def()
    traits = traits_def(Pure(), MappingModule())
    assembly_format = (
        "$callee `ins` `(` $ins `:` type($ins) `)` attr-dict `->` type($outs)"
    )

    def __init__(
        self, callee: str, ins: Sequence[SSAValue], result_types: Sequence[Attribute]
    ):
        super().__init__(
            operands=[ins],
            result_types=[result_types],
            properties={"callee": SymbolRefAttr(callee)},
        )

    @property
    def symbol(self) -> str:
        """The name of the module, and of its function."""
        return self.callee.string_value()

    def module(self) -> ModuleOp:
        """Return the module of the mapping; raises `VerifyException` without one."""
        around = self.parent_op()
        found = around and SymbolTable.lookup_symbol(around, self.callee)
        if not isinstance(found, ModuleOp):
            raise VerifyException(
                f"'{self.name}' op there is no module @{self.symbol} beside the "
                "function; outline-mappings makes both"
            )
        return found

    def function(self) -> FuncOp | None:
        """Return the function of the module, None if it is lowered to COMET files."""
        found = SymbolTable.lookup_symbol(self.module(), self.symbol)
        return found if isinstance(found, FuncOp) else None


def chained_mappings(func: FuncOp) -> Iterator[MappingOp]:
    """Yield the mappings of a chain, in order; none if the function is no chain."""
    for op in func.body.block.ops:
        if isinstance(op, MappingOp):
            yield op


def _shape(value: SSAValue) -> tuple[tuple[tuple[str, int], ...], Attribute]:
    """Return the dimensions and the element type, which are the same at all levels."""
    return tuple(extents_of(value).items()), element_type_of(value)
