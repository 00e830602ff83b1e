"""
The cycles of a unit for one tile primitive, and its energy.

Latencies follow the COMET tool: the systolic array after SCALE-Sim (arXiv 1811.02883),
the vector unit with one instruction per `width` elements. Sizes are the tile
primitive's extents, last dimension of the text first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from comet.cost.accelerator.flow import leaf_dims
from comet.cost.accelerator.hardware import Unit
from comet.cost.accelerator.mappings import Extents, Mappings
from comet.cost.accelerator.problem import Leaf
from comet.cost.estimate import CostError
from comet.cost.reals import Real, product, ratio

MATRIX_UNITS = ("SystolicArray", "GEMM", "MAC", "intmac")
VECTOR_UNITS = ("VSIMD",)
"""The kinds of units that the COMET tool models: for products, and for the rest."""

VECTOR_STEPS = {
    "exp": 3,
    "add": 1,
    "mult": 1,
    "max": 1,
    "div": 1,
    "sqrt": 1,
    "softmax": 1,
}
"""Cycles per vector instruction; row reductions take log2(width)."""

VECTOR_ENERGY = {
    "div": 0.8,
    "exp": 3.86,
    "add": 0.11,
    "mult": 0.64,
    "max": 0.0025,
    "sqrt": 2.84,
    "softmax": 1.0,
}
"""
pJ per element of a vector operation; row reductions take log2(width) of `add` or `max`.
"""

ROW_REDUCTIONS = {"rowsum": "add", "rowmax": "max"}
"""Vector reductions along a row, and the operation that they repeat."""

MAC_ENERGY = 0.2296
"""pJ per multiply-accumulate of the systolic array."""

GEMM_STEP = 512
"""Multiply-accumulates in one step of the GEMM unit."""

SHUFFLE_CYCLES = {16: 16, 8: 12, 4: 8, 2: 6}
"""Extra cycles of the GEMM unit by multiples of 256 in the reduced extent."""


def primitive_extents(leaf: Leaf) -> tuple[int, ...]:
    """The extents of a leaf's tile primitive, last dimension of the text first."""
    return tuple(size for _, size in reversed(leaf.primitive))


def row_steps(width: int) -> int:
    """Cycles of a reduction tree over `width` lanes: ceil(log2(width))."""
    return math.ceil(math.log2(width))


def systolic_cycles(unit: Unit, extents: Sequence[int], streamed: int) -> int:
    """
    Cycles of a weight-stationary array: fill, stream `streamed` rows, drain, once per
    fold of the weights.

    Source: SCALE-Sim's 2 R + C + T - 2, as the COMET tool uses it. Raises `CostError`
    if no extent equals `streamed`.
    """
    held = list(extents)
    if streamed not in held:
        raise CostError(
            f"the tile primitive {tuple(extents)} has no extent {streamed}, the "
            "array's reduction factor; make them agree"
        )
    held.remove(streamed)
    return int(_array_cycles(unit, held, streamed))


def _array_cycles(unit: Unit, held: Iterable[Real], streamed: Real) -> Real:
    """Cycles to fill, stream and drain once per fold of the extents that are held."""
    pairs = zip(held, unit.sides, strict=False)
    folds = product(np.ceil(extent / side) for extent, side in pairs)
    return folds * (_ramp_cycles(unit) + streamed)


def _ramp_cycles(unit: Unit) -> int:
    """Cycles to fill and drain a systolic array."""
    return 2 * unit.rows + unit.columns - 2


def vector_steps(unit: Unit, kind: str) -> int:
    """Cycles per vector instruction; raises `CostError` if the unit has none."""
    if kind in ROW_REDUCTIONS:
        return row_steps(unit.width)
    if (steps := VECTOR_STEPS.get(kind)) is None:
        names = ", ".join([*VECTOR_STEPS, *ROW_REDUCTIONS])
        raise CostError(f"a vector unit has no operation {kind!r}; it has {names}")
    return steps


def vector_cycles(unit: Unit, kind: str, elements: int, reduced: int) -> int:
    """
    Cycles of a vector operation on `elements`, of which every `reduced` become one
    (COMET tool, single precision).

    Raises `CostError` for an operation that the vector unit does not have.
    """
    steps = vector_steps(unit, kind)
    return int(
        steps
        * np.ceil(np.float32(elements) / (np.float32(unit.width) * np.float32(reduced)))
    )


def gemm_cycles(unit: Unit, extents: Sequence[int], leaf: Leaf) -> int:
    """
    Cycles of the GEMM unit: its steps, start-up and shuffles (COMET tool).
    """
    if len(extents) != 3:
        return unit.latency
    shuffles = 0
    if leaf.special and leaf.accumulates and leaf.reduction_factors:
        shuffles = SHUFFLE_CYCLES.get(leaf.reduction_factors[0] // 256, 0)
    return unit.startup + shuffles + math.prod(extents) // GEMM_STEP * unit.latency


def leaf_cycles(unit: Unit, leaf: Leaf) -> int:
    """
    Cycles of one tile primitive of `leaf` on `unit`.

    Raises `CostError` for a unit kind without a model, and as the unit's formula does.
    """
    extents = primitive_extents(leaf)
    match unit.kind:
        case "SystolicArray":
            if not leaf.reduction_factors:
                raise CostError(
                    f"operation {leaf.operation} runs on a systolic array and needs "
                    "compute_attributes with reduction_factors"
                )
            return systolic_cycles(unit, extents, leaf.reduction_factors[-1])
        case "VSIMD":
            return vector_cycles(
                unit, leaf.kind, math.prod(extents), math.prod(leaf.reduction_factors)
            )
        case "GEMM":
            return gemm_cycles(unit, extents, leaf)
        case "MAC":
            return unit.latency
        case "intmac":
            return math.prod(extents) * unit.latency
        case _:
            raise CostError(
                f"there is no model of compute tile {unit.kind!r}; use SystolicArray, "
                "VSIMD, GEMM, MAC or intmac"
            )


def vector_energy(unit: Unit, kind: str) -> float:
    """The pJ of one lane for one primitive of a vector operation."""
    if (repeated := ROW_REDUCTIONS.get(kind)) is not None:
        return VECTOR_ENERGY[repeated] * row_steps(unit.width)
    return VECTOR_ENERGY[kind]


def primitive_cycles(unit: Unit, leaf: Leaf, mappings: Mappings) -> Real:
    """
    Cycles of one tile primitive in the model `paper`, numbers or arrays.

    As `leaf_cycles`, except: the array streams its reduction *dimension*, a vector unit
    works on the elements of relevant dimensions whatever the file's reduction factor
    is, and a GEMM unit rounds its steps up. Raises `CostError` as `leaf_cycles` does.
    """
    return ratio(_unit_cycles(unit, leaf, mappings), unit.rate)


def _unit_cycles(unit: Unit, leaf: Leaf, mappings: Mappings) -> Real:
    """Cycles, at the unit's own clock, of one tile primitive."""
    extents = mappings.primitive(leaf)
    match unit.kind:
        case "SystolicArray":
            return _systolic(unit, leaf, extents)
        case "VSIMD":
            count = _relevant_elements(leaf, mappings)
            return vector_steps(unit, leaf.kind) * np.ceil(count / unit.width)
        case "GEMM":
            steps = np.ceil(product(extents.values()) / GEMM_STEP)
            return unit.startup + steps * unit.latency
        case "intmac":
            return product(extents.values()) * unit.latency
        case _:
            return float(leaf_cycles(unit, leaf))


def _relevant_elements(leaf: Leaf, mappings: Mappings) -> Real:
    """Elements of a tile primitive over the dimensions that its tensors have."""
    dims = leaf_dims(mappings.template, leaf)
    extents = mappings.primitive(leaf)
    return product(size for dim, size in extents.items() if dim in dims)


def _systolic(unit: Unit, leaf: Leaf, extents: Extents) -> Real:
    if not leaf.reduction or leaf.reduction[-1][0] not in extents:
        raise CostError(
            f"operation {leaf.operation} runs on a systolic array and needs "
            "compute_attributes with a reduction dimension of its tile primitive"
        )
    streamed = leaf.reduction[-1][0]
    held = [size for dim, size in extents.items() if dim != streamed]
    return _array_cycles(unit, held, extents[streamed])


def ideal_cycles(unit: Unit, leaf: Leaf, mappings: Mappings) -> Real:
    """
    Cycles of one tile primitive without fill, drain or start-up, numbers or arrays.

    Raises `CostError` as `leaf_cycles` does.
    """
    if unit.kind == "SystolicArray":
        cycles = _systolic(unit, leaf, mappings.primitive(leaf))
        streamed = mappings.primitive(leaf)[leaf.reduction[-1][0]]
        return ratio(cycles * streamed / (streamed + _ramp_cycles(unit)), unit.rate)
    if unit.kind == "GEMM":
        return ratio(_unit_cycles(unit, leaf, mappings) - unit.startup, unit.rate)
    return primitive_cycles(unit, leaf, mappings)


def primitive_energy(unit: Unit, leaf: Leaf, mappings: Mappings) -> Real:
    """
    The pJ of one tile primitive in the model `paper`: per element, not per lane.

    Units without a model take the file's compute_energy per primitive.
    """
    if unit.kind == "SystolicArray":
        return product(mappings.primitive(leaf).values()) * MAC_ENERGY
    if unit.kind == "VSIMD":
        return _relevant_elements(leaf, mappings) * vector_energy(unit, leaf.kind)
    return unit.energy


def peak(unit: Unit, kind: str) -> float:
    """
    The most points of the iteration space that a unit computes per cycle.

    Infinite for a unit whose cycles do not depend on the size of the primitive. Raises
    `CostError` for an operation that a vector unit does not have.
    """
    match unit.kind:
        case "SystolicArray":
            return math.prod(unit.sides) * unit.rate
        case "VSIMD":
            return _per_cycle(unit.width, vector_steps(unit, kind)) * unit.rate
        case "GEMM":
            return _per_cycle(GEMM_STEP, unit.latency) * unit.rate
        case "intmac":
            return _per_cycle(1, unit.latency) * unit.rate
        case _:
            return math.inf


def _per_cycle(count: int, cycles: int) -> float:
    return count / cycles if cycles else math.inf


def throughput(unit: Unit, leaf: Leaf) -> float:
    """
    The most points of a leaf's iteration space that a unit computes per cycle.

    Infinite for a reduction on one lane, which takes no step (log2 of the lanes).
    """
    rate = peak(unit, leaf.kind)
    if rate < math.inf:
        return rate
    return _per_cycle(math.prod(primitive_extents(leaf)), leaf_cycles(unit, leaf))
