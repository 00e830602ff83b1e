"""
Which scales go behind products, by the estimated time of kernels.

If a scale stays, a kernel stores the scaled value, and products load it. If it moves
behind the products, each product computes the scale in its own loop, once for each tile
of columns. Both forms are priced as kernels of the products alone, without later ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from comet.dialects.arch import SystemOp
from comet.dialects.blocks import yielded_by
from comet.dialects.compound import CastOp, ContractOp
from comet.dialects.compound.dims import with_element_type
from comet.passes.analysis.levels import compute_block
from comet.passes.analysis.op_groups import defining_ops
from comet.passes.analysis.reduction_loops import without_constants
from comet.passes.analysis.row_statistics import (
    elementwise_ops,
    elementwise_sources,
    needed_by,
    statistic_ops,
)
from comet.passes.graph.sink_scales.plan import ScalePlan, Sinking, plan_scales
from comet.passes.graph.sink_scales.rewrite import rewrite
from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.groups import Kernel
from comet.passes.schedule.fuse.gpu.narrow import narrow_type
from comet.passes.schedule.fuse.gpu.trial import Trials
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.search import cheapest, timed

STRATEGIES = (Strategy("full", full_rows=True), Strategy("partial"))
"""The forms of the kernels that are priced."""


def chosen(func: FuncOp, plan: ScalePlan, system: SystemOp) -> ScalePlan:
    """Return the sinkings of a plan that make a function faster on one GPU."""
    forms, faster = Forms(Trials(system), STRATEGIES), dict[str, bool]()
    sunk: list[Sinking] = []
    for sinking in plan:
        if (ops := _ops_of(sinking)) is None:
            continue
        extract = _extract(func, sinking, ops)
        if (text := str(extract.clone(clone_name_hints=False))) not in faster:
            faster[text] = _is_faster(extract, sinking.operand.name_hint, forms)
        if faster[text]:
            sunk.append(sinking)
    return tuple(sunk)


def _ops_of(sinking: Sinking) -> frozenset[Operation] | None:
    """
    Return the products of a sinking, and the ops that only they need.

    None if other ops read the scaled value, too: then it is stored anyway.
    """
    products = frozenset[Operation](sinking.products)
    found = set(elementwise_ops([sinking.operand]))
    for product in sinking.products:
        sources = elementwise_sources(product.operands)
        for factor in sinking.factors:
            found |= statistic_ops(factor.value, product.contracted, sources)
    needed = needed_by(found, products)
    if sinking.operand.owner not in needed:
        return None
    read = {value.owner for op in needed for value in op.operands}
    casts = {op for op in read if isinstance(op, CastOp) and op.added_bits > 0}
    return needed | casts | products


def _extract(func: FuncOp, sinking: Sinking, ops: frozenset[Operation]) -> FuncOp:
    """Return a function with only `ops`, which returns the products of a sinking."""
    block, copies = Block(), dict[SSAValue, SSAValue]()
    inside = [op for op in compute_block(func).ops if op in ops]
    for op in inside:
        for value in op.operands:
            if value not in copies:
                copies[value] = _read(value, block)
        clone = op.clone(copies)
        block.add_op(clone)
    results = [copies[product.result] for product in sinking.products]
    block.add_op(ReturnOp(*results))
    types = block.arg_types, [value.type for value in results]
    return FuncOp("alone", types, Region(block))


def _read(value: SSAValue, block: Block) -> SSAValue:
    """
    Return a clone of a constant, and an argument for any other value.

    For a product that `fuse` may store narrow, it is a cast of a narrow argument.
    """
    if isinstance(op := value.owner, Operation) and not op.operands:
        block.add_op(clone := op.clone())
        return clone.results[0]
    narrow = narrow_type(value)
    type_ = value.type if narrow is None else with_element_type(value.type, narrow)
    argument = block.insert_arg(type_, len(block.args))
    argument.name_hint = value.name_hint
    if narrow is None:
        return argument
    block.add_op(wide := CastOp(argument, value.type))
    return wide.result


def _is_faster(func: FuncOp, name: str | None, forms: Forms) -> bool:
    """Return whether the products of a function are faster with their scales sunk."""

    def seconds(kernels_of: Callable[[FuncOp], Iterator[Kernel]]) -> float:
        return sum(forms.seconds(*kernel) for kernel in kernels_of(func.clone()))

    candidates = [
        timed("kept", False, partial(seconds, _not_sunk)),
        timed("sunk", True, partial(seconds, _sunk)),
    ]
    return cheapest("scales", f"%{name}", candidates).result


def _not_sunk(func: FuncOp) -> Iterator[Kernel]:
    """Yield the kernel that computes the operands of products, then the products."""
    ops = _ops(func)
    products = [op for op in ops if isinstance(op, ContractOp)]
    before = tuple(op for op in ops if not isinstance(op, ContractOp))
    read = {value for product in products for value in product.operands}
    yield before, tuple(v for op in before for v in op.results if v in read)
    for outs in _by_type(op.result for op in products):
        yield tuple(op for op in products if op.result in outs), outs


def _sunk(func: FuncOp) -> Iterator[Kernel]:
    """Yield the kernels of scaled products."""
    rewrite(plan_scales(func, every=False))
    ops = _ops(func)
    for outs in _by_type(yielded_by(compute_block(func))):
        needed = defining_ops(outs, set(ops))
        yield tuple(op for op in ops if op in needed), outs


def _ops(func: FuncOp) -> tuple[Operation, ...]:
    *ops, _ = compute_block(func).ops
    return without_constants(ops)


def _by_type(values: Iterable[SSAValue]) -> Iterator[tuple[SSAValue, ...]]:
    """Yield groups of values of one type, as gate and up: a kernel computes each."""
    found: dict[Attribute, list[SSAValue]] = {}
    for value in values:
        found.setdefault(value.type, []).append(value)
    yield from map(tuple, found.values())
