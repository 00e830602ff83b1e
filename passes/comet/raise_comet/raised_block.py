"""The operations of a COMET mapping as elementary ops, in the order of its leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import AnyFloat, TensorType, f8E4M3FN, f16, f32, f64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import collective
from comet.dialects.comet import CollectiveOp, DeclareOp, OperationOp, ProblemOp, TileOp
from comet.dialects.comet.kinds import MAPS, REDUCES, REDUCTIONS
from comet.dialects.compound import (
    MAP_ARITY,
    ContractOp,
    MapKind,
    MapOp,
    ReduceKind,
    ReduceOp,
)
from comet.dialects.compound.dims import tensor
from comet.kinds import CollectiveKind, OperationKind, ReductionKind

ELEMENTWISE = {kind: element_kind for element_kind, kind in MAPS.items()}
"""The elementwise function of an operation type."""

ROW_REDUCTIONS = {kind: element_kind for element_kind, kind in REDUCES.items()}
"""The reduction of a row operation type."""

COMBINED = {
    **{kind: element_kind for element_kind, kind in REDUCTIONS.items()},
    ReductionKind.SUB: ReduceKind.ADD,
}
"""How an all-reduce combines; the tool treats subtraction as addition."""

MESH = "instances"
"""The mesh of a raised mapping."""

GroupOf: TypeAlias = Callable[[CollectiveOp], tuple[str, ...]]
"""The mesh axes whose instances a collective joins."""


class NotRaisable(PassFailedException):
    """The mapping is no program; the message gives the reason."""

    def __init__(self, reason: str):
        super().__init__(f"raise-comet: the mapping is no program: {reason}")


@dataclass
class RaisedBlock:
    """The elementary ops of a mapping, in one block, and their names."""

    problem: ProblemOp
    element: AnyFloat
    block: Block
    current: dict[str, SSAValue]
    """The latest value of each tensor."""
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """The tensor of each value."""
    of_node: dict[OperationOp | CollectiveOp, Operation] = field(
        default_factory=dict[OperationOp | CollectiveOp, Operation]
    )
    """The op of each leaf or collective of the mapping."""

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        """
        The values that the problem leaves in memory.

        Raises NotRaisable for one that no operation defines.
        """
        names = (name.data for name in self.problem.outs)
        return tuple(_value(self, name, "the problem") for name in names)

    def type_of(self, access_dims: tuple[str, ...]) -> TensorType[AnyFloat]:
        """Return the type of a whole tensor with the given dimensions."""
        sizes = dict(self.problem.instance.data)
        return tensor({dim: sizes[dim] for dim in access_dims}, self.element)

    def define(self, name: str, op: Operation) -> None:
        """Append `op`; its result is from now on the value of tensor `name`."""
        self.block.add_op(op)
        result = op.results[0]
        result.name_hint = name
        self.current[name] = result
        self.names[result] = name


def start_block(problem: ProblemOp, bits: int) -> RaisedBlock:
    """
    Return a block with only its inputs; `bits` is the widest precision in use.

    Raises NotRaisable for an index that adds dimensions.
    """
    raised = RaisedBlock(problem, element_of(bits), Block(), {})
    for name in problem.ins:
        dims = dims_of(problem, name.data)
        argument = raised.block.insert_arg(raised.type_of(dims), len(raised.block.args))
        argument.name_hint = name.data
        raised.current[name.data] = argument
        raised.names[argument] = name.data
    return raised


def element_of(bits: int) -> AnyFloat:
    """
    Return the float of a width in bits, or the next wider one.

    The files say how wide elements are, not what they are: comet takes 8 bits for
    f8E4M3FN, of the two common floats of 8 bits the one with the finer fraction.
    """
    widths: dict[int, AnyFloat] = {8: f8E4M3FN, 16: f16, 32: f32}
    return next((found for width, found in widths.items() if bits <= width), f64)


def dims_of(problem: ProblemOp, name: str) -> tuple[str, ...]:
    """
    Return the dimensions of a tensor, in axis order.

    Raises NotRaisable if no operation has it, or one axis adds two dimensions.
    """
    for declared in problem.declarations:
        for access in declared.accesses:
            if access.tensor != name:
                continue
            if any(len(axis) != 1 for axis in access.projection):
                raise NotRaisable(f"tensor {name} is indexed by a sum of dimensions")
            return tuple(axis[0] for axis in access.projection)
    raise NotRaisable(f"no operation has the tensor {name}")


def add_ops(raised: RaisedBlock, root: TileOp, group_of: GroupOf | None) -> None:
    """
    Append an op for each leaf and collective below `root`, in document order.

    `group_of` gives the mesh axes of a collective; without it, collectives are left
    out. Raises NotRaisable for what has no elementary op, and for a tensor used before
    it is defined.
    """
    declared = {op.operation.data: op for op in raised.problem.declarations}
    for node in _leaves(root):
        if isinstance(node, OperationOp):
            operation = node.operation.data
            if operation not in declared:
                raise NotRaisable(f"the problem has no operation {operation}")
            value = _compute(raised, node, declared[operation])
            name = declared[operation].out.data
        elif group_of is None:
            source = _value(raised, node.in_tensor.data, node.tag.data)
            raised.current[node.out_tensor.data] = source
            continue
        else:
            value, name = _exchange(raised, node, group_of), node.out_tensor.data
        raised.define(name, value)
        raised.of_node[node] = value


def _leaves(tile: TileOp) -> Iterator[OperationOp | CollectiveOp]:
    for child in tile.children:
        if isinstance(child, TileOp):
            yield from _leaves(child)
        else:
            yield child


def _value(raised: RaisedBlock, name: str, user: str) -> SSAValue:
    if name not in raised.current:
        raise NotRaisable(f"{user} uses tensor {name} before any operation makes it")
    return raised.current[name]


def _compute(raised: RaisedBlock, node: OperationOp, declared: DeclareOp) -> Operation:
    tag, kind = declared.operation.data, node.kind.data
    ins = [_value(raised, name.data, tag) for name in declared.ins]
    result = raised.type_of(dims_of(raised.problem, declared.out.data))
    if kind is OperationKind.GEMM and len(ins) == 2:
        return ContractOp(ins[0], ins[1], result)
    if (reduce := ROW_REDUCTIONS.get(kind)) is not None and len(ins) == 1:
        return ReduceOp(reduce, ins[0], result)
    if (elementwise := ELEMENTWISE.get(kind)) is None:
        raise NotRaisable(f"operation {tag} of type {kind} has no elementary form")
    # The files have no subtraction: by convention an addition called SUB is one.
    if elementwise is MapKind.ADD and tag.upper().startswith("SUB"):
        elementwise = MapKind.SUB
    # Nor do they have squares: a product of one tensor called SQ is one, and others are
    # products with constants, such as the scale of attention's scores.
    if elementwise is MapKind.MULT and len(ins) == 1 and tag.upper().startswith("SQ"):
        ins = [*ins, *ins]
    if len(ins) != MAP_ARITY[elementwise]:
        raise NotRaisable(
            f"operation {tag} of type {kind} has {len(ins)} operand(s), and the files "
            "do not hold the constants of an operation; keep the program of which they "
            "were written"
        )
    return MapOp(elementwise, ins, result)


def _exchange(raised: RaisedBlock, node: CollectiveOp, group_of: GroupOf) -> Operation:
    """Return a collective at its level; `retile` gives its result its shape."""
    value = _value(raised, node.in_tensor.data, f"collective {node.tag.data}")
    op = _collective(node, value, group_of(node))
    op.from_level = op.to_level = node.target
    return op


def _collective(
    node: CollectiveOp, value: SSAValue, group: tuple[str, ...]
) -> collective.CollectiveOp:
    dim = "" if node.dimension is None else node.dimension.data
    match node.kind.data:
        case CollectiveKind.ALL_REDUCE:
            return collective.AllReduceOp(value, MESH, group, kind=_reduction(node))
        case CollectiveKind.ALL_GATHER:
            return collective.AllGatherOp(value, MESH, group, value.type, dim=dim)
        case CollectiveKind.GATHER:
            return collective.GatherOp(value, MESH, group, value.type, dim=dim, root=0)
        case CollectiveKind.SCATTER:
            return collective.ScatterOp(value, MESH, group, value.type, dim=dim, root=0)
        case CollectiveKind.BROADCAST:
            return collective.BroadcastOp(value, MESH, group, root=0)
        case CollectiveKind.REDUCTION:
            return collective.RootReduceOp(
                value, MESH, group, kind=_reduction(node), root=0
            )


def _reduction(node: CollectiveOp) -> ReduceKind:
    kind = None if node.reduction_op is None else node.reduction_op.data
    if kind is None or kind not in COMBINED:
        raise NotRaisable(f"collective {node.tag.data} reduces by {kind}")
    return COMBINED[kind]
