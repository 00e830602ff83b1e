"""Reads the `Problem` that the models price from the `comet` dialect."""

from __future__ import annotations

from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation as Op

from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.model import price
from comet.cost.accelerator.problem import (
    Binding,
    Collective,
    Entry,
    Leaf,
    Node,
    Operation,
    Problem,
    Tile,
)
from comet.cost.estimate import CostError, Estimate, ModelName
from comet.cost.from_ir.hardware import hardware_of
from comet.dialects.arch import SystemOp
from comet.dialects.comet import (
    BindingOp,
    CollectiveOp,
    DeclareOp,
    MappingOp,
    OperationOp,
    ProblemOp,
    TileOp,
)
from comet.dialects.comet.attributes import (
    MovedTensor,
)

OpT = TypeVar("OpT", bound=Op)


def estimate_module(module: ModuleOp, model: ModelName = "paper") -> Estimate:
    """
    Return the cost of the mapping of a module.

    The module has one `arch.system`, one `comet.problem` and one `comet.mapping`.
    Raises `CostError` if an op is missing or the mapping cannot be priced.
    """
    return price(problem_of(module), system_hardware(module), model)


def system_hardware(module: ModuleOp) -> Hardware:
    """Return the hardware of the only `arch.system`; raises `CostError` without it."""
    return hardware_of(_only(module, SystemOp))


def problem_of(module: ModuleOp) -> Problem:
    """Return the problem with the mapping of a module; raises `CostError` without."""
    problem, mapping = _only(module, ProblemOp), _only(module, MappingOp)
    root = _Numbering().tile(mapping.root)
    return Problem(
        dict(problem.instance.data),
        tuple(_operation(op) for op in problem.declarations),
        tuple(name.data for name in problem.ins),
        tuple(name.data for name in problem.outs),
        root,
    )


def node_op(module: ModuleOp, index: int) -> Op:
    """Return the op of a node of the module's mapping, by its `NodeEstimate` index."""
    nodes = [
        op for op in _only(module, MappingOp).walk() if not isinstance(op, MappingOp)
    ]
    return nodes[index]


def _only(module: ModuleOp, kind: type[OpT]) -> OpT:
    found = [op for op in module.ops if isinstance(op, kind)]
    if len(found) != 1:
        raise CostError(
            f"the module has {len(found)} ops '{kind.name}' where one is needed; run "
            "attach-hardware and lower-to-comet first"
        )
    return found[0]


def _operation(op: DeclareOp) -> Operation:
    dims = tuple(d.data for d in op.dimensions)
    return Operation(
        op.operation.data, tuple(t.data for t in op.ins), op.out.data, dims, op.accesses
    )


class _Numbering:
    """Converts nodes, and numbers them in document order, bindings included."""

    def __init__(self) -> None:
        self.count = 0

    def _next(self) -> int:
        self.count += 1
        return self.count - 1

    def tile(self, op: TileOp) -> Tile:
        index = self._next()
        children: list[Node] = []
        bindings: list[Binding | None] = []
        for child in op.body.block.ops:
            if isinstance(child, BindingOp):
                bindings.append(Binding(self._next(), child.kind.data))
            else:
                children.append(self._node(child))
        bound = tuple(bindings) if bindings else (None,) * (len(children) - 1)
        order = tuple(op.permutation.data)
        return Tile(
            index,
            not op.is_temporal,
            order,
            tuple(_entry(e) for e in op.entries),
            tuple(children),
            bound,
        )

    def _node(self, op: Op) -> Node:
        match op:
            case TileOp():
                return self.tile(op)
            case OperationOp():
                return self._leaf(op)
            case CollectiveOp():
                return self._collective(op)
            case _:
                raise CostError(f"'{op.name}' is no node of a mapping")

    def _leaf(self, op: OperationOp) -> Leaf:
        compute = None if op.compute is None else op.compute.data
        steps = {step.tensor: dict(step.sizes) for step in op.steps.data}
        return Leaf(
            self._next(),
            op.operation.data,
            op.kind.data,
            tuple(steps),
            op.primitive.data,
            steps,
            () if compute is None else compute.reduction,
            compute is not None and compute.rmw,
            compute is not None and compute.specd,
        )

    def _collective(self, op: CollectiveOp) -> Collective:
        return Collective(
            self._next(),
            op.kind.data,
            op.target.data,
            op.tag.data,
            None if op.dimension is None else op.dimension.data,
            tuple(level.data for level in op.src),
            tuple(level.data for level in op.dest),
            op.in_tensor.data,
            op.out_tensor.data,
            op.bits,
            None if op.reduction_op is None else op.reduction_op.data,
            0 if op.spatial_factor is None else op.spatial_factor.value.data,
            op.wb_output is not None,
        )


def _entry(moved: MovedTensor) -> Entry:
    """Return the entry of the models for a moved tensor of the dialect."""
    factors = tuple(dict(row) for row in moved.factors)
    return Entry(
        moved.tensor,
        moved.tag,
        moved.target,
        moved.child,
        moved.precision,
        moved.rmw,
        factors,
    )
