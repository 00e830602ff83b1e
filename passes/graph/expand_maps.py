"""
`expand-maps`: elementary level -> elementary level, with functions of COMET files.

The vector unit of the COMET tool has add, sub, mult, div, max, exp and sqrt. This pass
writes other functions with these: `neg`, `rsqrt`, `min`, `exp2`, `copy` and `tanh`
exactly, `erf` by an approximation with an error of at most 1.5e-7. A known extent
becomes a number. Logarithms, `sin`, `cos`, comparisons and `select` stay, and
`lower-to-comet` rejects them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import log

from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.comet.kinds import operation_kind
from comet.dialects.compound import ExtentOp, FillOp, MapKind, MapOp, PadOp
from comet.dialects.compound.dims import element_type_of, extents_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.graph.emitter import Emitter

ERF_SLOPE = 0.3275911
ERF_FACTORS = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""
erf(x) = 1 - (a1 t + .. + a5 t^5) exp(-x^2) for x >= 0, with t = 1 / (1 + p x): formula
7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions.
"""

TINY = 1e-6
"""|x| is at least this, as divisor; below it erf(x) < 1.2e-6. f16 can represent it."""


@dataclass(frozen=True)
class ExpandMapsPass(FunctionPass):
    """Write functions that COMET files do not have with those that they have."""

    name = "expand-maps"

    LEVELS = (IRLevel.ELEMENTARY, IRLevel.SPMD)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        for op in tuple(expandable_ops(function)):
            if isinstance(op, ExtentOp):
                number = extents_of(op.input)[op.dim.data]
                Rewriter.replace_op(op, FillOp(number, op.result.type))
            else:
                expand(op)


def is_expandable(op: MapOp) -> bool:
    """Return whether COMET files lack the function of `op`, and an expansion has it."""
    floats = isinstance(element_type_of(op.result), AnyFloat)
    return operation_kind(op) is None and op.kind.data in EXPANSIONS and floats


def expandable_ops(func: FuncOp) -> Iterator[MapOp | ExtentOp]:
    """
    Yield the ops that `expand-maps` rewrites.

    Extents inside of regions are those of shards or of chunks, and padded tensors have
    fewer elements than positions, so that neither is known.
    """
    pads = any(isinstance(op, PadOp) for op in func.walk())
    for op in func.walk():
        if isinstance(op, ExtentOp) and op.parent_op() is func and not pads:
            yield op
        elif isinstance(op, MapOp) and is_expandable(op):
            yield op


def needs_expansion(module: ModuleOp) -> bool:
    """Return whether `expand-maps` would change a module."""
    return any(True for func in compute_functions(module) for _ in expandable_ops(func))


def expand(op: MapOp) -> None:
    """Replace `op` by ops that COMET files have, with the same sharding."""
    emit = Maps(op)
    result = EXPANSIONS[op.kind.data](emit, *op.inputs)
    if result.type != op.result.type:  # The last map has the dimensions in its order.
        result = Rewriter.replace_value_with_new_type(result, op.result.type)
    result.name_hint = op.result.name_hint
    Rewriter.replace_op(op, (), (result,))


class Maps:
    """Emits maps before an op, with its element type and its attributes."""

    def __init__(self, op: MapOp):
        self._emit = Emitter(op)
        self._element = element_type_of(op.result)
        self._attributes = op.attributes

    def __call__(self, kind: MapKind, *inputs: SSAValue | float) -> SSAValue:
        """Emit a map of values and numbers, and return its result."""
        values = [
            value
            if isinstance(value, SSAValue)
            else self._emit.fill(value, self._element, name="number")
            for value in inputs
        ]
        result = self._emit.map(kind, *values, name=str(kind))
        assert isinstance(result.owner, MapOp)
        result.owner.attributes.update(self._attributes)
        return result


def _negated(emit: Maps, x: SSAValue) -> SSAValue:
    return emit(MapKind.MULT, x, -1.0)


def _copied(emit: Maps, x: SSAValue) -> SSAValue:
    return emit(MapKind.MULT, x, 1.0)


def _exp2(emit: Maps, x: SSAValue) -> SSAValue:
    return emit(MapKind.EXP, emit(MapKind.MULT, x, log(2)))


def _rsqrt(emit: Maps, x: SSAValue) -> SSAValue:
    return emit(MapKind.DIV, 1.0, emit(MapKind.SQRT, x))


def _minimum(emit: Maps, x: SSAValue, y: SSAValue) -> SSAValue:
    return _negated(emit, emit(MapKind.MAX, _negated(emit, x), _negated(emit, y)))


def _tanh(emit: Maps, x: SSAValue) -> SSAValue:
    """Emit 1 - 2 / (1 + exp(2 x)), which is right where the exponential overflows."""
    grown = emit(MapKind.EXP, emit(MapKind.MULT, x, 2.0))
    return emit(MapKind.SUB, 1.0, emit(MapKind.DIV, 2.0, emit(MapKind.ADD, grown, 1.0)))


def _erf(emit: Maps, x: SSAValue) -> SSAValue:
    """Emit x / |x| erf(|x|)."""
    size = emit(MapKind.MAX, emit(MapKind.MAX, x, _negated(emit, x)), TINY)
    sloped = emit(MapKind.ADD, emit(MapKind.MULT, size, ERF_SLOPE), 1.0)
    t = emit(MapKind.DIV, 1.0, sloped)
    *lower, highest = ERF_FACTORS
    scaled = emit(MapKind.MULT, t, highest)
    for factor in reversed(lower):
        scaled = emit(MapKind.MULT, emit(MapKind.ADD, scaled, factor), t)
    falling = emit(MapKind.EXP, _negated(emit, emit(MapKind.MULT, size, size)))
    tail = emit(MapKind.MULT, scaled, falling)
    sign = emit(MapKind.DIV, x, size)
    return emit(MapKind.MULT, sign, emit(MapKind.SUB, 1.0, tail))


EXPANSIONS: Mapping[MapKind, Callable[..., SSAValue]] = {
    MapKind.NEG: _negated,
    MapKind.COPY: _copied,
    MapKind.EXP2: _exp2,
    MapKind.RSQRT: _rsqrt,
    MapKind.MIN: _minimum,
    MapKind.TANH: _tanh,
    MapKind.ERF: _erf,
}
"""The functions that emit each kind of map."""
