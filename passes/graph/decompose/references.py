"""The reference of a function: a private copy that says what it should compute."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import PassFailedException

from comet.passes.analysis.functions import REFERENCE, is_reference, reference_name
from comet.passes.sharding.boundary import drop_boundary
from comet.passes.sharding.shardings import SHARD


def keep_reference(module: ModuleOp, func: FuncOp) -> None:
    """
    Add a private copy of `func` that no later pass rewrites, unless it has one.

    Raises PassFailedException if its symbol is taken by something else.
    """
    name = reference_name(func.sym_name.data)
    taken = SymbolTable.lookup_symbol(module, name)
    if isinstance(taken, FuncOp) and is_reference(taken):
        return
    if taken is not None:
        raise PassFailedException(
            f"decompose: the name @{name} is taken; the reference of "
            f"@{func.sym_name.data} needs it"
        )
    copy = func.clone()
    copy.properties["sym_name"] = StringAttr(name)
    copy.properties["sym_visibility"] = StringAttr("private")
    copy.attributes[REFERENCE] = UnitAttr()
    drop_boundary(copy)
    for op in copy.walk():
        op.attributes.pop(SHARD, None)
    Rewriter.insert_op(copy, InsertPoint.after(func))
