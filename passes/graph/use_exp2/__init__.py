"""
`use-exp2`: elementary or SPMD level -> the same, with powers of two as exponentials.

GPUs have an instruction for 2^x; e^x = 2^(x log2 e) takes one more multiplication per
element. In a softmax, a constant scales the scores anyway: log2 e becomes a part of it,
and maxima and differences are those of scaled scores. The pass finds the values that
are best computed as multiples of log2 e, by a minimum cut (`plan.py`), and keeps `exp`
if that saves nothing. Needs the hardware of a GPU. Runs after `split` and
`insert-collectives`, which merge partial results of known forms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import Rewriter

from comet.cost.from_ir.gpus import device_of
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import vector_seconds
from comet.cost.gpu.spent import Spent
from comet.dialects.blocks import after_value
from comet.dialects.compound import FillOp, MapKind, MapOp
from comet.dialects.compound.dims import element_type_of, float_type_of, tensor
from comet.dialects.compound.map import (
    MapKindAttr,
    constant_of,
    lowest_finite,
    scaled_number,
)
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.graph.use_exp2.plan import (
    FACTOR,
    Exp2Plan,
    is_exponential,
    plan_exp2,
)
from comet.passes.search import cheapest, timed

Exponential = Literal["auto", "exp", "exp2"]

LEAST = 1 - 2.0**-16
"""
The least multiple of a value, over the lowest finite number. That number itself is the
neutral element of a maximum, which canonicalization removes.
"""


@dataclass(frozen=True)
class UseExp2Pass(FunctionPass):
    """Compute exponentials as powers of two, with the scale folded in."""

    name = "use-exp2"

    LEVELS = (IRLevel.ELEMENTARY, IRLevel.SPMD)

    exp: Exponential = "auto"
    """
    What exponentials of f32 and f64 become: `exp2`, powers of two; `exp`, no change; or
    `auto`, powers of two where that saves operations.
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_gpu(self.name, module)
        plan = choose(function, device_of(system), self.exp)
        if plan is not None:
            rewrite(plan)


def choose(func: FuncOp, gpu: Device, exp: Exponential) -> Exp2Plan | None:
    """Return the plan for a function, None if it stays unchanged."""
    plan = plan_exp2(func, gpu.units.function_costs, every=exp == "exp2")
    if exp == "exp" or not plan.exps:
        return None
    if exp == "exp2":
        return plan
    before, after = plan.operations, plan.operations - plan.saved

    def time(operations: float) -> Spent:
        return Spent.on("vector lanes", vector_seconds(operations, gpu.units))

    candidates = [
        timed("exp", False, partial(time, before)),
        timed("exp2", True, partial(time, after)),
    ]
    place = f"@{func.sym_name.data}"
    return plan if cheapest("exponentials", place, candidates).result else None


def rewrite(plan: Exp2Plan) -> None:
    """Carry out a plan."""
    scaled = _Scaled()
    for use in plan.multiplied:
        scaled.replace(use, FACTOR)
    for use in plan.divided:
        scaled.replace(use, 1 / FACTOR)
    for op in plan.negations:
        factor = FillOp(-FACTOR, tensor({}, element_type_of(op.result)))
        product = MapOp(MapKind.MULT, (op.inputs[0], factor.result), op.result.type)
        product.attributes |= op.attributes
        Rewriter.replace_op(op, (factor, product))
    for op in plan.exps:
        op.kind = MapKindAttr(MapKind.EXP2)


@dataclass(frozen=True)
class _Scaled:
    """The products of values and constants with factors, each inserted once."""

    products: dict[tuple[SSAValue, float, bool], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, float, bool], SSAValue]
    )

    def replace(self, use: Use, factor: float) -> None:
        """Let a use read its value times `factor`."""
        value = use.operation.operands[use.index]
        is_finite = factor > 1 and not is_exponential(use.operation)
        key = (value, factor, is_finite)
        if key not in self.products:
            self.products[key] = _times(*key)
        use.operation.operands[use.index] = self.products[key]
        if isinstance(op := value.owner, FillOp) and not op.result.uses:
            Rewriter.erase_op(op)


def _times(value: SSAValue, factor: float, is_finite: bool) -> SSAValue:
    """
    Insert `value` times `factor` after `value`, and return the product.

    With `is_finite` the lowest finite number stays finite.
    """
    if (number := constant_of(value)) is not None:
        multiple = scaled_number(number, factor, float_type_of(value))
        ops: list[Operation] = [FillOp(multiple, value.type)]
    else:
        scalar = tensor({}, element_type_of(value))
        number = FillOp(factor, scalar)
        product = MapOp(MapKind.MULT, (value, number.result), value.type)
        ops = [number, product]
        if is_finite:
            lowest = lowest_finite(float_type_of(value))
            least = FillOp(lowest * LEAST, scalar)
            ops += [
                least,
                MapOp(MapKind.MAX, (product.result, least.result), value.type),
            ]
    Rewriter.insert_op(ops, after_value(value))
    ops[-1].results[0].name_hint = value.name_hint
    return ops[-1].results[0]
