"""
Functions in which `split` tries products of a long function, each with few ops.

Such a function has the products and their epilogues: what the kernels of the products
store is the same as in the long function.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, Region, SSAValue

from comet.dialects.blocks import block_taking
from comet.dialects.compound import CastOp, ContractOp, FillOp, IndexOp, MapOp
from comet.dialects.description import Description
from comet.passes.analysis.functions import compute_functions


def products_alone(module: ModuleOp, products: Mapping[str, ContractOp]) -> ModuleOp:
    """
    Return a copy of a module with one function: of products, and their epilogues.

    `products` are of one function of the module; their results have the given names.
    """
    others = [op.clone() for op in module.ops if not isinstance(op, FuncOp)]
    return ModuleOp([*others, _function(products)], dict(module.attributes))


def _function(products: Mapping[str, ContractOp]) -> FuncOp:
    """Return a function that computes products and their epilogues."""
    ops = _with_epilogues(list(products.values()))
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


def described(module: ModuleOp) -> Hashable:
    """Return a description that is equal for copies whose functions are equal."""
    seen = Description()
    for func in compute_functions(module):
        seen.operations(func.body.block.ops)
    return seen.so_far


def _is_constant(value: SSAValue) -> bool:
    """Return whether a value depends on no other: kernels compute it themselves."""
    return isinstance(value.owner, FillOp | IndexOp)


def _with_epilogues(products: Sequence[ContractOp]) -> list[Operation]:
    """
    Return products of a block, and the elementwise ops of their epilogues, in order.

    These read the products, and else only what is there before the last of them: not
    the results of later products, such as those that are added to the same residual.
    """
    block = products[0].parent
    assert block is not None
    found, later = set[Operation](), set[Operation]()
    for op in block.ops:
        owners = {value.owner for value in op.operands}
        reads, late = not found.isdisjoint(owners), not later.isdisjoint(owners)
        if op in products or (reads and not late and isinstance(op, CastOp | MapOp)):
            found.add(op)
        elif isinstance(op, FillOp | IndexOp):
            continue  # Each kernel computes it.
        elif reads or late or found.issuperset(products):
            later.add(op)
    return [op for op in block.ops if op in found]
