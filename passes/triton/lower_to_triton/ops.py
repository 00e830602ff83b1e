"""How `lower-to-triton` writes each elementary operation on blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    AnyFloat,
    Float32Type,
    StringAttr,
    f32,
    i1,
)
from xdsl.ir import Operation, SSAValue

from comet.dialects import tl
from comet.dialects.blocks import yielded_by
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    ExtentOp,
    FillOp,
    FoldOp,
    MapKind,
    MapOp,
    ReduceKind,
    ReduceOp,
    RenameOp,
)
from comet.dialects.compound.dims import (
    Element,
    element_type_of,
    extents_of,
    names_of,
)
from comet.dialects.compound.elementary import neutral_of, truncated
from comet.dialects.compound.map import fold_map
from comet.dialects.errors import OpError
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.accumulators import is_fused
from comet.dialects.schedule.attributes import BlocksAttr
from comet.dialects.tl.math import MIN_DOT_EXTENT
from comet.dialects.tl.types import (
    BinaryKind,
    CompareKind,
    Precision,
    UnaryKind,
    element_of,
)
from comet.dialects.tl.types import ReduceKind as BlockReduceKind
from comet.passes.triton.lower_to_triton.buffers import Buffer
from comet.passes.triton.lower_to_triton.sums import (
    added_to_earlier,
    is_last_term,
    start_of,
    sum_of_products,
)
from comet.passes.triton.lower_to_triton.table import lower_ops, lowers
from comet.passes.triton.lower_to_triton.values import (
    Scope,
    Tile,
    aligned,
    check_size,
    converted,
    literal,
    masked,
)
from comet.passes.triton.lower_to_triton.workarounds import (
    before_cast,
    breaks_thread_locality,
    compared,
    dot_operand,
    in_f32,
    typed_start,
    with_a_block,
)

BINARY_MAPS: Mapping[MapKind, BinaryKind] = {
    MapKind.ADD: BinaryKind.ADD,
    MapKind.SUB: BinaryKind.SUB,
    MapKind.MULT: BinaryKind.MUL,
    MapKind.DIV: BinaryKind.DIV,
    MapKind.MAX: BinaryKind.MAX,
    MapKind.MIN: BinaryKind.MIN,
}
UNARY_MAPS: Mapping[MapKind, UnaryKind] = {
    MapKind.EXP: UnaryKind.EXP,
    MapKind.EXP2: UnaryKind.EXP2,
    MapKind.LOG: UnaryKind.LOG,
    MapKind.SQRT: UnaryKind.SQRT,
    MapKind.RSQRT: UnaryKind.RSQRT,
    MapKind.NEG: UnaryKind.NEG,
    MapKind.ERF: UnaryKind.ERF,
    MapKind.SIN: UnaryKind.SIN,
    MapKind.COS: UnaryKind.COS,
}
COMPARE_MAPS: Mapping[MapKind, CompareKind] = {
    MapKind.GE: CompareKind.GE,
    MapKind.GT: CompareKind.GT,
    MapKind.EQ: CompareKind.EQ,
}
OTHER_MAPS = frozenset({MapKind.COPY, MapKind.TANH, MapKind.SELECT, MapKind.RANDOM})
"""Kinds that `triton.language` lacks, or has with other operands."""

REDUCTIONS: Mapping[ReduceKind, BlockReduceKind] = {
    ReduceKind.ADD: BlockReduceKind.SUM,
    ReduceKind.MAX: BlockReduceKind.MAX,
}
COMBINE: Mapping[ReduceKind, BinaryKind] = {
    ReduceKind.ADD: BinaryKind.ADD,
    ReduceKind.MAX: BinaryKind.MAX,
}


def narrowed(
    scope: Scope, value: SSAValue, like: SSAValue, hint: str | None, comment: str
) -> SSAValue:
    """Name `value`, converted to the element type of the compound value `like`."""
    element = element_type_of(like)
    if element_of(value.type) != element:
        return converted(scope, value, element, hint, comment)
    if isinstance(value.owner, Operation):
        value.name_hint = hint
        value.owner.attributes[tl.COMMENT] = StringAttr(comment)
    return value


@dataclass(frozen=True)
class DotForm:
    """A contraction of two matrices: rows x summed, summed x columns."""

    rows: str
    columns: str
    summed: str


def dot_form(op: ContractOp, blocks: BlocksAttr) -> DotForm | None:
    """
    Return the dimensions of a contraction that is a `tl.dot`, None for any other one.
    """
    lhs, rhs, out = (
        {dim for dim, tile in extents_of(value).items() if blocks.size(dim, tile) > 1}
        for value in (op.lhs, op.rhs, op.result)
    )
    rows, columns, summed = lhs - rhs, rhs - lhs, lhs & rhs
    is_product = len(rows) == len(columns) == len(summed) == 1 and not summed & out
    tiles = (extents_of(op.lhs) | extents_of(op.rhs)).items()
    sizes = [blocks.size(dim, tile) for dim, tile in tiles if dim in lhs | rhs]
    if not is_product or min(sizes) < MIN_DOT_EXTENT:
        return None
    return DotForm(rows.pop(), columns.pop(), summed.pop())


@lowers(ContractOp)
def lower_contract(op: ContractOp, scope: Scope) -> Tile | None:
    """Write a contraction, unless the loop around it adds it to its accumulator."""
    if is_fused(op):
        return None
    start = start_of(op.result, scope)
    product = contraction(op, scope, None if start is None else start.value)
    if not is_last_term(op.result):
        product.value.name_hint = op.result.name_hint
    return added_to_earlier(op.result, product, scope)


def contraction(op: ContractOp, scope: Scope, acc: SSAValue | None) -> Tile:
    """
    Write a contraction; where given, `acc` is added to it.

    A product of matrices becomes a dot, any other one a sum of products.
    """
    check_size(names_of(op.result), scope)
    comment = f"compound.contract over {', '.join(op.contracted) or 'nothing'}"
    form = dot_form(op, scope.constexprs.blocks)
    axes = scope.axes(names_of(op.result))
    fused = None
    if form is None:
        value = _sum_of_products(op, scope)
    else:
        dims = (form.rows, form.columns)
        if acc is not None and axes == dims and element_of(acc.type) == f32:
            fused = acc
        value = _dot(op, form, scope, fused)
        value = aligned(scope, Tile(value, dims), axes)
    # A fused sum ends its iteration: the loop variable names it.
    hint = None if fused is not None else op.result.name_hint
    result = narrowed(scope, value, op.result, hint, comment)
    if acc is not None and fused is None:
        result = accumulated(scope, ReduceKind.ADD, acc, result)
    return Tile(result, axes, _contract_padding(op, scope))


def accumulated(
    scope: Scope, kind: ReduceKind, accumulator: SSAValue, value: SSAValue
) -> SSAValue:
    """Add a value to an accumulator, or take the larger one, as maps are computed."""
    wide = [computed_as(scope, operand) for operand in (accumulator, value)]
    result = scope.insert(tl.BinaryOp(COMBINE[kind], *with_a_block(scope, wide)))
    return converted(scope, result, element_of(accumulator.type))


def accumulator_of(scope: Scope, number: float, like: SSAValue) -> Tile:
    """Write the start of an accumulator, of the type of the compound value `like`."""
    dims = _in_order_of_terms(like, scope.constexprs.blocks)
    return started(
        scope, filled(scope, number, dims, element_type_of(like), None), like
    )


def started(scope: Scope, tile: Tile, like: SSAValue) -> Tile:
    """Return the start of an accumulator; a number gets the type of `like`."""
    return tile if tile.dims else Tile(typed_start(scope, tile.value, like), ())


def _in_order_of_terms(value: SSAValue, blocks: BlocksAttr) -> tuple[str, ...]:
    """
    Return the dimensions of a value in the order that its block has.

    A sum over dimensions of one element has the order of what is summed.
    """
    match op := value.owner:
        case ReduceOp() if all(
            blocks.size(dim, extents_of(op.input)[dim]) == 1 for dim in op.reduced
        ):
            terms = op.input
        case TemporalOp():
            terms = op.yielded[op.outs.index(value)]
        case _:
            return names_of(value)
    order = _in_order_of_terms(terms, blocks)
    return tuple(dim for dim in order if dim in names_of(value))


def _contract_padding(op: ContractOp, scope: Scope) -> dict[str, float]:
    """A row of zeros in one operand is a row of zeros in the product."""
    zero: dict[str, float] = {}
    for operand in (op.lhs, op.rhs):
        padding = scope.tile(operand).padding
        zero |= {dim: 0.0 for dim, value in padding.items() if value == 0}
    return {dim: 0.0 for dim in zero if dim in names_of(op.result)}


def _dot(op: ContractOp, form: DotForm, scope: Scope, acc: SSAValue | None) -> SSAValue:
    operands: list[SSAValue] = []
    for value, dims in (
        (op.lhs, (form.rows, form.summed)),
        (op.rhs, (form.summed, form.columns)),
    ):
        tile = masked(scope, scope.tile(value), form.summed, 0.0)
        operands.append(dot_operand(scope, aligned(scope, tile, dims)))
    is_single = isinstance(element_type_of(op.lhs), Float32Type)
    # The default rounds f32 operands to tf32, which has the mantissa of f16.
    precision = Precision.IEEE if is_single else None
    lhs, rhs = operands
    return scope.insert(tl.DotOp(lhs, rhs, acc, f32, precision))


def _sum_of_products(op: ContractOp, scope: Scope) -> SSAValue:
    names = dict.fromkeys((*names_of(op.lhs), *names_of(op.rhs)))
    check_size(tuple(names), scope)
    summed = scope.axes(op.contracted)
    axes = (*scope.axes(names_of(op.result)), *summed)
    operands: list[SSAValue] = []
    for value in (op.lhs, op.rhs):
        tile = scope.tile(value)
        for dim in op.contracted:
            tile = masked(scope, tile, dim, 0.0)
        operands.append(in_f32(scope, aligned(scope, tile, axes)))
    product = scope.insert(tl.BinaryOp(BinaryKind.MUL, *with_a_block(scope, operands)))
    for axis in reversed(range(len(axes) - len(summed), len(axes))):
        product = scope.insert(tl.ReduceOp(BlockReduceKind.SUM, product, axis))
    return product


@lowers(ReduceOp)
def lower_reduce(op: ReduceOp, scope: Scope) -> Tile:
    """Write a reduction, axis by axis; padding gets the neutral element."""
    kind, tile = op.kind.data, scope.tile(op.input)
    neutral = neutral_of(kind, element_type_of(op.input))
    for dim in op.reduced:
        tile = masked(scope, tile, dim, neutral, breaks_thread_locality(op))
    value, dims = computed_as(scope, tile.value), list(tile.dims)
    for dim in reversed(scope.axes(op.reduced)):
        axis = dims.index(dim)
        value = scope.insert(tl.ReduceOp(REDUCTIONS[kind], value, axis))
        dims.pop(axis)
    if value is tile.value:
        return tile
    comment = f"compound.reduce {kind} over {', '.join(op.reduced)}"
    value = narrowed(scope, value, op.result, op.result.name_hint, comment)
    axes = scope.axes(names_of(op.result))
    return Tile(aligned(scope, Tile(value, tuple(dims)), axes), axes)


@lowers(MapOp)
def lower_map(op: MapOp, scope: Scope) -> Tile:
    """
    Write an elementwise function; the function of constants is folded.

    Floats are computed in f32, integers and conditions in their own type.
    """
    check_size(names_of(op.result), scope)
    if (total := sum_of_products(op.result, scope)) is not None:
        return total
    kind, axes = op.kind.data, scope.axes(names_of(op.result))
    if op.result in scope.true:
        return Tile(scope.constant(1.0, i1), ())
    if kind is MapKind.SELECT and op.inputs[0] in scope.true:
        return scope.tile(op.inputs[1])
    operands = [_operand(scope, value, axes) for value in op.inputs]
    if (folded := _folded(kind, operands)) is not None:
        return Tile(scope.constant(folded, element_type_of(op.result)), ())
    value = _mapped(kind, with_a_block(scope, operands), scope)
    hint, comment = op.result.name_hint, f"compound.map {kind}"
    return Tile(narrowed(scope, value, op.result, hint or "x", comment), axes)


def _operand(scope: Scope, value: SSAValue, axes: Sequence[str]) -> SSAValue:
    return computed_as(scope, aligned(scope, scope.tile(value), axes))


def computed_as(scope: Scope, value: SSAValue) -> SSAValue:
    """Return an operand in the type that it is computed with: f32 of floats."""
    is_float = isinstance(element_of(value.type), AnyFloat)
    return in_f32(scope, value) if is_float else value


def _folded(kind: MapKind, operands: Sequence[SSAValue]) -> float | None:
    """Return the function's value of constants, None where it has no finite one."""
    numbers = [number for value in operands if (number := literal(value)) is not None]
    return fold_map(kind, numbers) if len(numbers) == len(operands) else None


def _mapped(kind: MapKind, operands: Sequence[SSAValue], scope: Scope) -> SSAValue:
    if kind in BINARY_MAPS:
        lhs, rhs = operands
        return scope.binary(BINARY_MAPS[kind], lhs, rhs)
    if kind in UNARY_MAPS:
        return scope.insert(tl.UnaryOp(UNARY_MAPS[kind], operands[0]))
    if kind in COMPARE_MAPS:
        lhs, rhs = operands
        return compared(scope, COMPARE_MAPS[kind], lhs, rhs)
    if kind is MapKind.SELECT:
        return scope.insert(tl.WhereOp(*operands))
    if kind is MapKind.RANDOM:
        seed, position = operands
        return scope.insert(tl.RandOp(seed, *with_a_block(scope, [position])))
    return operands[0] if kind is MapKind.COPY else _tanh(scope, operands[0])


def _tanh(scope: Scope, value: SSAValue) -> SSAValue:
    """
    tanh(x) = 2 sigmoid(2 x) - 1; near 0, where that loses digits, a Taylor series.

    tanh(x) = x - x^3 / 3 + 2 x^5 / 15 - 17 x^7 / 315 + .. (Abramowitz and Stegun,
    Handbook of Mathematical Functions, 4.5.64): relative errors are below 4e-7.
    """

    def binary(kind: BinaryKind, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        right = rhs if isinstance(rhs, SSAValue) else scope.constant(rhs, f32)
        return scope.binary(kind, lhs, right)

    add, mul = BinaryKind.ADD, BinaryKind.MUL
    sigmoid = scope.insert(tl.UnaryOp(UnaryKind.SIGMOID, binary(mul, value, 2.0)))
    far = binary(BinaryKind.SUB, binary(mul, sigmoid, 2.0), 1.0)
    square = scope.binary(mul, value, value, "square")
    series = binary(mul, square, -17 / 315)
    for coefficient in (2 / 15, -1 / 3):
        series = binary(mul, binary(add, series, coefficient), square)
    near = binary(add, binary(mul, series, value), value)
    limit = scope.constant(1 / 32, f32)
    is_near = scope.compare(CompareKind.LT, square, limit)
    return scope.insert(tl.WhereOp(is_near, near, far))


@lowers(CastOp)
def lower_cast(op: CastOp, scope: Scope) -> Tile:
    """Write a conversion of the element type."""
    tile, element = scope.tile(op.input), element_type_of(op.result)
    hint, value = op.result.name_hint, before_cast(scope, tile.value, element)
    value = converted(scope, value, element, hint, "compound.cast")
    padding = tile.padding
    if op.truncates:
        padding = {dim: truncated(number) for dim, number in padding.items()}
    return Tile(value, tile.dims, padding)


@lowers(RenameOp)
def lower_rename(op: RenameOp, scope: Scope) -> Tile | Buffer:
    """
    Give the same value other names.

    Raises `PassFailedException` for a tile whose slices differ under the new names, and
    for views in parts.
    """
    if op.cut is not None:
        raise OpError(
            op,
            f"lower-to-triton: compound.rename sees {op.cut} in parts inside a node; "
            "put it in front of the node",
        )
    renaming, found = op.renaming, scope.values[op.input]
    if isinstance(found, Buffer):
        return found.renamed(renaming)
    for old, new in renaming.items():
        slices = scope.slices[old], scope.slices[new]
        starts = [(part.start, part.shape.length, part.shape.block) for part in slices]
        if starts[0] != starts[1]:
            raise OpError(
                op,
                f"lower-to-triton: compound.rename of a tile from {old} to {new}, "
                "whose slices differ; rename the value in device memory",
            )
    padding = {renaming[dim]: value for dim, value in found.padding.items()}
    return Tile(found.value, tuple(renaming[dim] for dim in found.dims), padding)


def filled(
    scope: Scope,
    number: float,
    dims: Sequence[str],
    element: Element,
    hint: str | None,
) -> Tile:
    """Write a block of one number."""
    check_size(dims, scope)
    constant = tl.ConstantOp.of(number, element)
    if axes := scope.axes(dims):
        full = tl.FullOp(constant.value, scope.block_sizes(dims))
        value = scope.insert(full, hint)
    else:
        value = scope.insert(constant)
    return Tile(value, axes, {dim: number for dim in dims})


@lowers(FillOp)
def lower_fill(op: FillOp, scope: Scope) -> Tile:
    """Write a constant."""
    number, hint = op.value.value.data, op.result.name_hint
    return filled(scope, number, names_of(op.result), element_type_of(op.result), hint)


@lowers(ExtentOp)
def lower_extent(op: ExtentOp, scope: Scope) -> Tile:
    """Write the number of elements of the current slice."""
    count, element = scope.slices[op.dim.data].count(), element_type_of(op.result)
    hint, count = op.result.name_hint, before_cast(scope, count, element)
    return Tile(converted(scope, count, element, hint, "compound.extent"), ())


@lowers(FoldOp)
def lower_fold(op: FoldOp, scope: Scope) -> None:
    """Write a fold that no loop runs: its whole input is taken in one step."""
    values: Sequence[SSAValue] = (*op.ins, *op.init)
    for argument, value in zip(op.step.block.args, values, strict=True):
        scope.values[argument] = scope.values[value]
    lower_ops(op.step.block, scope)
    for result, value in zip(op.outs, yielded_by(op.step.block), strict=True):
        scope.values[result] = scope.values[value]
