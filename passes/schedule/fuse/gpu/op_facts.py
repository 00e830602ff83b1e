"""
Facts about each op of a graph, from which lower bounds of kernels are computed.

A search bounds many groups of the same ops, so that the facts of each op are derived
once; they are valid as long as the op does not change.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.products import ReadProduct, products_in
from comet.cost.from_ir.vector_costs import loop_cost
from comet.cost.from_ir.vector_operations import additions_of
from comet.cost.gpu.device import Device
from comet.cost.gpu.terms import LoopCost
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    FillOp,
    FoldOp,
    IndexOp,
    MapKind,
    MapOp,
    ReduceOp,
)
from comet.dialects.compound.dims import iteration_dims, joined_extents
from comet.dialects.compound.map import constant_of, neutral_operand
from comet.dialects.schedule.accumulators import is_addition
from comet.passes.analysis.reduction_loops import reduced_dims
from comet.passes.schedule.fuse.gpu.narrow import UNROUNDED
from comet.passes.schedule.tile_tree import chunks_of, iter_args_of, resolve

ADDS = (MapKind.ADD, MapKind.SUB)

Extents: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class VectorOp:
    """An op of a kernel, as the bound of vector operations sees it."""

    bit: int
    """Its bit if it is an op of the graph, 0 if it is in the step of a fold."""
    results: tuple[SSAValue, ...]
    kind: int
    """Ops of one kind that read equal values have equal results."""
    reads: tuple[SSAValue, ...]
    """
    Its operands; in the step of a fold, the whole values in place of their chunks.
    """
    counts: bool
    """Whether vector lanes compute it, and it is no cast that may be undone."""
    is_trivial: bool
    """Whether it is a constant, or equals one of its operands."""
    starts: str
    """
    If it reads an iter_arg that begins with a constant, the dimension of the fold, else
    empty. Without a loop over that dimension the op may be a constant.
    """
    extents: Extents
    """Of its operands and results."""
    cost: float
    """In additions per element, outside of loops of products."""
    in_loop: LoopCost
    """A lower bound of the cost per element in a loop of products."""


@dataclass(frozen=True, eq=False)
class OpFacts:
    """Facts about one op."""

    bit: int
    """The bit that stands for the op in masks of sets of ops."""
    sources: int
    """The ops that compute its operands, as a mask."""
    reads: tuple[tuple[SSAValue, int], ...]
    """Its operands without constants, and the bits of the ops that compute them."""
    dims: tuple[str, ...]
    """Of its operands and results."""
    extents: Mapping[str, int]
    reduced: tuple[str, ...]
    positions: tuple[str, ...]
    """The dimensions along which it reads positions."""
    products: tuple[ReadProduct, ...]
    """The op if it is a contraction, or those in its step."""
    steps: tuple[VectorOp, ...]
    """The ops in its step, and the op."""

    @property
    def has_steps(self) -> bool:
        """Whether it is a fold, with ops in its step."""
        return len(self.steps) > 1


class Facts(dict[Operation, OpFacts]):
    """The facts of all ops that were asked for, on one GPU."""

    def __init__(self, gpu: Device):
        super().__init__()
        self.gpu = gpu
        self.gpu_of_loops = replace(gpu, times=replace(gpu.times, dependent=0.0))
        """The GPU as bounds take it: loops need not wait for products they reduce."""
        self._bits: dict[Operation, int] = {}
        self._kinds: dict[Hashable, int] = {}

    def __missing__(self, op: Operation) -> OpFacts:
        """Derive the facts of an op."""
        owners = [value.owner for value in op.operands]
        read = [v for v in op.operands if not isinstance(v.owner, FillOp)]
        self[op] = facts = OpFacts(
            self._bit(op),
            self.owners(op.operands),
            tuple((value, self._bit(value.owner)) for value in read),
            iteration_dims(op),
            joined_extents((*op.operands, *op.results)),
            reduced_dims(op),
            tuple(owner.dim for owner in owners if isinstance(owner, IndexOp)),
            tuple(map(ReadProduct.of, products_in(op))),
            tuple(self._steps(op)),
        )
        return facts

    def _bit(self, owner: object) -> int:
        """Return the bit of an op, 0 for a block (the owner of an argument)."""
        if not isinstance(owner, Operation):
            return 0
        return self._bits.setdefault(owner, 1 << len(self._bits))

    def owners(self, values: Iterable[SSAValue]) -> int:
        """Return the ops that compute values, as a mask."""
        return union(self._bit(value.owner) for value in values)

    def _steps(self, op: Operation) -> Iterator[VectorOp]:
        chunks, constant = chunks_of((op,)), set[SSAValue]()
        inside: tuple[Operation, ...] = ()
        if isinstance(op, FoldOp):
            inside = tuple(op.step.block.ops)[:-1]
            started = zip(iter_args_of(op), op.init, strict=True)
            constant = {arg for arg, init in started if constant_of(init) is not None}
        for each in (*inside, op):
            starts = not constant.isdisjoint(each.operands)
            kind = each.name, *each.properties.values()
            cost = additions_of(each, self.gpu.units)
            yield VectorOp(
                self._bit(op) if each is op else 0,
                tuple(each.results),
                self._kinds.setdefault(kind, len(self._kinds)),
                tuple(resolve(value, chunks) for value in each.operands),
                isinstance(each, MapOp | ReduceOp | CastOp) and not _is_undone(each),
                _is_trivial(each),
                op.dim.data if isinstance(op, FoldOp) and starts else "",
                tuple(joined_extents((*each.operands, *each.results)).items()),
                cost,
                _least_in_loop(each, cost, self.gpu),
            )


def union(masks: Iterable[int]) -> int:
    """Return the union of sets of ops, as a mask."""
    found = 0
    for mask in masks:
        found |= mask
    return found


def slice_of(needed: int, ops: Sequence[OpFacts]) -> int:
    """Return a mask of some ops, and of all of `ops` (in order) that they depend on."""
    for op in reversed(ops):
        if op.bit & needed:
            needed |= op.sources
    return needed


def _least_in_loop(op: Operation, cost: float, gpu: Device) -> LoopCost:
    """
    Return a lower bound of the cost of an op per element in a loop of products.

    0 for an op that may become part of an addition or a contraction, even if the kernel
    does not have that user.
    """
    if _may_be_free(op):
        return LoopCost(0.0)
    return loop_cost(op, cost, gpu.units) or LoopCost(cost)


def _may_be_free(op: Operation) -> bool:
    if not isinstance(op, MapOp):
        return False
    if op.kind.data is MapKind.MULT:
        users = (use.operation for use in op.result.uses)
        return any(isinstance(user, MapOp) and user.kind.data in ADDS for user in users)
    return op.kind.data in ADDS and any(
        isinstance(owner := value.owner, ContractOp)
        or (is_addition(owner) and _may_be_free(owner))
        for value in op.operands
    )


def _is_undone(op: Operation) -> bool:
    """Return whether a cast, or the one before it, may be undone; see `unround`."""
    if not isinstance(op, CastOp):
        return False
    before = op.input.owner
    return UNROUNDED in op.attributes or (
        isinstance(before, CastOp) and UNROUNDED in before.attributes
    )


def _is_trivial(op: Operation) -> bool:
    """Return whether an op is a constant, or equals one of its operands."""
    if not isinstance(op, MapOp | CastOp):
        return False
    numbers = [constant_of(value) for value in op.operands]
    if None not in numbers:
        return True
    return isinstance(op, MapOp) and (
        neutral_operand(op) is not None
        or (op.kind.data is MapKind.SELECT and numbers[0] is not None)
    )
