"""The shardings of the values of a function of which some ops have shardings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from comet.dialects.blocks import captured_by
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.spmd import Sharding
from comet.dialects.compound import (
    ContractOp,
    FoldOp,
    ReduceOp,
    ScatterAddOp,
    SliceOp,
    View,
)
from comet.dialects.compound.dims import bytes_of
from comet.passes.analysis.padding import argument_of, is_border
from comet.passes.sharding.boundary import boundary_of
from comet.passes.sharding.insert_collectives.local_body import restricted
from comet.passes.sharding.moves import Held, received
from comet.passes.sharding.through_views import (
    local_sharding,
    operand_sharding,
    shown_sharding,
)

Shardings: TypeAlias = dict[Operation, Sharding]
"""The shardings of ops."""


def operands_of(op: Operation) -> tuple[SSAValue, ...]:
    """Return the operands of an op, with what its regions read from outside."""
    return tuple(dict.fromkeys(captured_by(op)))


@dataclass(frozen=True)
class Known:
    """A function, its mesh, and the shardings of some of its ops."""

    func: FuncOp
    mesh: MeshOp
    ops: Mapping[Operation, Sharding] = field(default_factory=Shardings)
    free_arguments: bool = False
    """
    Whether arguments without a sharding have the one that ops need; otherwise instances
    have them whole.
    """

    def with_ops(self, ops: Mapping[Operation, Sharding]) -> Known:
        """Return the same with the shardings of further ops."""
        return replace(self, ops={**self.ops, **ops})

    def held(self, value: SSAValue) -> Held | None:
        """Return how instances hold `value`; None if it can be had in any sharding."""
        if (argument := argument_of(value)) is not None:
            sharding = boundary_of(self.func).arguments[argument.index]
            return Held(sharding) if sharding else None
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, View):
            return self._shown(op)
        if (sharding := self.ops.get(op)) is None:
            return None
        split, pending = restricted(sharding, value), tuple[str, ...]()
        if isinstance(op, ContractOp | ReduceOp | ScatterAddOp):
            summed = [axes for dim, axes in sharding.items() if dim not in split]
            pending = tuple(axis for axes in summed for axis in axes)
        return Held(split, pending)

    def _shown(self, view: View) -> Held | None:
        """Return how instances hold what a view shows."""
        held = [self.held(operand) for operand in view.operands]
        if not any(held):
            return None
        shown = shown_sharding(view, self.sharding, self.mesh)
        return Held(shown, next(operand.pending for operand in held if operand))

    def sharding(self, value: SSAValue) -> Sharding:
        """Return the sharding in which instances hold `value`, if they do."""
        held = self.held(value)
        return {} if held is None else held.sharding

    def may_have(self, value: SSAValue, dim: str, axes: tuple[str, ...]) -> bool:
        """Return whether instances may hold `value` in shards of a summed dimension."""
        held = self.held(value)
        return self.free_arguments if held is None else held.sharding.get(dim) == axes

    def wanted(self, value: SSAValue) -> Iterator[Sharding]:
        """Yield the shardings in which known readers, and the caller, need `value`."""
        body = self.func.body.block
        for use in value.uses:
            reader = body.find_ancestor_op_in_block(use.operation)
            match reader:
                case ReturnOp():
                    sharding = boundary_of(self.func).results[use.index]
                    if sharding is not None:
                        yield sharding
                case SliceOp() if is_border(reader):
                    yield from self.wanted(reader.result)
                case _ if isinstance(reader, View):
                    for sharding in self.wanted(reader.result):
                        local = local_sharding(reader, sharding, self.mesh)
                        yield restricted(operand_sharding(reader, local), value)
                case Operation() if reader in self.ops:
                    yield restricted(self.ops[reader], value)
                case _:
                    pass

    def received(self, op: Operation, sharding: Sharding) -> float | None:
        """
        Return the bytes that an instance receives for `op` in a sharding.

        They are those of its operands, but for what another op needs in the same
        sharding; those that merge the results of a fold; and those of its results for
        known readers. None if a whole value would be scattered.
        """
        after = self.with_ops({op: sharding})
        moves = [
            self._operand_bytes(v, restricted(sharding, v)) for v in operands_of(op)
        ]
        for result in op.results:
            held = after.held(result)
            assert held is not None
            for wanted in _distinct(self.wanted(result)):
                moves.append(received(held, wanted, bytes_of(result), self.mesh))
        moves += self.merged(op, sharding)
        sizes = [moved for moved in moves if moved is not None]
        return sum(sizes) if len(sizes) == len(moves) else None

    def merged(self, op: Operation, sharding: Sharding) -> Iterator[float]:
        """Yield the bytes of partial results that an instance receives for a fold."""
        if isinstance(op, FoldOp) and (axes := sharding.get(op.dim.data)):
            others = self.mesh.size(axes) - 1
            yield from (float(others * bytes_of(result)) for result in op.results)

    def _operand_bytes(self, value: SSAValue, wanted: Sharding) -> float | None:
        """Return the bytes that an instance receives to read `value` in a sharding."""
        held = self.held(value)
        if held is None:
            return 0.0 if self._can_be(value, wanted) else None
        if wanted in self.wanted(value):
            return 0.0
        return received(held, wanted, bytes_of(value), self.mesh)

    def _can_be(self, value: SSAValue, wanted: Sharding) -> bool:
        """Return whether shards of `value` are views of shards, if it is a view."""
        view = value.owner
        if not isinstance(view, View) or is_border(view):
            return True
        if local_sharding(view, wanted, self.mesh) != wanted:
            return False
        inner = operand_sharding(view, wanted)
        return all(
            self._can_be(operand, restricted(inner, operand))
            for operand in view.operands
        )


def _distinct(shardings: Iterator[Sharding]) -> list[Sharding]:
    """Return `shardings` without those that are there already."""
    found: list[Sharding] = []
    for sharding in shardings:
        if sharding not in found:
            found.append(sharding)
    return found
