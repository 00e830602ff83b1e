"""Sums of products, which have one accumulator."""

from collections.abc import Iterator

import pytest
from semantics import parse_module
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from comet.dialects.compound import ContractOp, MapOp
from comet.dialects.schedule.accumulators import sum_with, summands

A = "tensor<4x8xf32, #compound.dims<M, K>>"
B = "tensor<8x4xf32, #compound.dims<K, N>>"
C = "tensor<4x4xf32, #compound.dims<M, N>>"
PRODUCT = f"compound.contract %a, %b : {A}, {B} -> {C}"
ADD = f"{C}, {C} -> {C}"
SUM = f"""
func.func @sum(%a: {A}, %b: {B}) -> {C} {{
  %x = {PRODUCT}
  %y = {PRODUCT}
  %z = {PRODUCT}
  %zy = compound.map add %z, %y : {ADD}
  %all = compound.map add %zy, %x : {ADD}
  %e = compound.map exp %all : {C} -> {C}
  func.return %e : {C}
}}
"""


@pytest.fixture
def module() -> ModuleOp:
    """Three products, of which the last is added first."""
    return parse_module(SUM)


def of_kind(module: ModuleOp, kind: type[Operation]) -> Iterator[Operation]:
    return (op for op in module.walk() if isinstance(op, kind))


def test_summands_are_in_the_order_of_the_block(module: ModuleOp) -> None:
    products = tuple(op.results[0] for op in of_kind(module, ContractOp))
    first, whole, other = (op.results[0] for op in of_kind(module, MapOp))
    assert summands(whole) == products
    assert summands(first) == products[1:]
    assert summands(other) == ()
    assert {sum_with(product) for product in products} == {whole}


def test_a_sum_is_found_without_a_walk_of_its_block(
    module: ModuleOp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphs of models have blocks of a thousand ops, with hundreds of products."""
    products = [op.results[0] for op in of_kind(module, ContractOp)]
    monkeypatch.delattr(Block, "ops")
    assert all(summands(total) for each in products if (total := sum_with(each)))
    monkeypatch.delattr(Operation, "prev_op")
    assert None not in map(sum_with, products)
