"""
Functions in which `split` tries products of a long function, each with few ops.

Such a function has the products and their epilogues: what the kernels of the products
store is the same as in the long function.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.dialects.collective.spmd import sharding_attr
from comet.dialects.compound import CastOp, ContractOp, FillOp, IndexOp, MapOp
from comet.dialects.description import Description
from comet.passes.analysis.functions import compute_functions, function_of
from comet.passes.sharding.insert_collectives.local_body import restricted
from comet.passes.sharding.shardings import SHARD, sharding_of_op

CONSTANTS = FillOp | IndexOp
"""Ops whose results depend on no other value: kernels compute them themselves."""


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
    read = dict.fromkeys(value for op in ops for value in op.operands)
    constants = [op for value in read if isinstance(op := value.owner, CONSTANTS)]
    made = {*computed, *(op.result for op in constants)}
    outside = [value for value in read if value not in made]
    stored = [v for v in computed if any(u.operation not in ops for u in v.uses)]
    func = function_of("_".join(products), (*constants, *ops), outside, stored)
    _shard_arguments(func)
    copies = [op for op in func.body.block.ops if isinstance(op, ContractOp)]
    for name, copy in zip(products, copies, strict=True):
        copy.result.name_hint = name
    return func


def _shard_arguments(func: FuncOp) -> None:
    """Annotate arguments with the shardings in which ops read them, if any."""
    shardings = [
        restricted(sharding_of_op(use.operation), argument)
        for argument in func.args
        for use in list(argument.uses)[:1]
    ]
    if any(shardings):
        attributes = ({SHARD: sharding_attr(sharding)} for sharding in shardings)
        func.arg_attrs = ArrayAttr(map(DictionaryAttr, attributes))


def described(module: ModuleOp) -> Hashable:
    """Return a description that is equal for copies whose functions are equal."""
    seen = Description()
    for func in compute_functions(module):
        seen.operations(func.body.block.ops)
    return seen.so_far


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
        elif isinstance(op, CONSTANTS):
            continue  # Each kernel computes it.
        elif reads or late or found.issuperset(products):
            later.add(op)
    return [op for op in block.ops if op in found]
