"""
Functions in which `split` tries products of a long function, each with few ops.

Such a function has the products, and the elementwise ops that follow them: what the
kernels of the products store is the same as in the long function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, Region, SSAValue

from comet.dialects.blocks import block_taking
from comet.dialects.compound import CastOp, ContractOp, FillOp, IndexOp, MapOp
from comet.passes.analysis.functions import compute_functions


def products_alone(module: ModuleOp, products: Mapping[str, ContractOp]) -> ModuleOp:
    """
    Return a copy of a module with one function: of products, and what follows them.

    `products` are of one function of the module; their results have the given names.
    """
    copy = module.clone()
    for func in compute_functions(copy):
        func.detach()
        func.erase()
    copy.body.block.add_op(_function(products))
    return copy


def _function(products: Mapping[str, ContractOp]) -> FuncOp:
    """Return a function that computes products and what follows them."""
    ops = _with_followers(list(products.values()))
    computed = [result for op in ops for result in op.results]
    inside = set(computed)
    read = dict.fromkeys(value for op in ops for value in op.operands)
    constants = [value.owner for value in read if _is_constant(value)]
    outside = [v for v in read if v not in inside and not _is_constant(v)]
    block = block_taking(outside)
    values: dict[SSAValue, SSAValue] = dict(zip(outside, block.args, strict=True))
    for op in chain(constants, ops):
        assert isinstance(op, Operation)
        block.add_op(op.clone(value_mapper=values))
    for name, op in products.items():
        values[op.result].name_hint = name
    stored = [v for v in computed if any(u.operation not in ops for u in v.uses)]
    block.add_op(ReturnOp(*(values[value] for value in stored)))
    types = [value.type for value in outside], [value.type for value in stored]
    return FuncOp("_".join(products), types, Region(block))


def _is_constant(value: SSAValue) -> bool:
    """Return whether a value depends on no other: kernels compute it themselves."""
    return isinstance(value.owner, FillOp | IndexOp)


def _with_followers(products: Sequence[ContractOp]) -> list[Operation]:
    """Return products of a block and the elementwise ops that read them, in order."""
    found: set[Operation] = set(products)
    block = products[0].parent
    assert block is not None
    for op in block.ops:
        owners = {value.owner for value in op.operands}
        if isinstance(op, CastOp | MapOp) and not found.isdisjoint(owners):
            found.add(op)
    return [op for op in block.ops if op in found]
