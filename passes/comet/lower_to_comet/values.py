"""Which SSA values of a tile tree are one tensor of the COMET files, and which none."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from comet.dialects.collective import CollectiveOp
from comet.dialects.compound import (
    CastOp,
    ExtentOp,
    FillOp,
    PadOp,
    RenameOp,
    SliceOp,
)
from comet.dialects.compound.copied import ComputeOp, readers_of
from comet.dialects.compound.dims import names_of
from comet.dialects.errors import OpError
from comet.dialects.schedule import YieldOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.iter_args import in_place
from comet.dialects.schedule.node import NodeOp


@dataclass(frozen=True)
class Values:
    """
    The tensors of a function: block arguments, yields, results of nodes and in-place
    collectives of one value are one tensor; so are a value and its cast, renaming,
    padding or slice, and an iter_arg and its next value where that overwrites it.
    """

    parents: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    constants: set[SSAValue] = field(default_factory=set[SSAValue])
    """Roots that are scalar constants, which the files do not have."""

    def root(self, value: SSAValue) -> SSAValue:
        """Return the first value of the tensor of `value`, which represents it."""
        while (parent := self.parents.get(value)) is not None:
            value = parent
        return value

    def is_constant(self, value: SSAValue) -> bool:
        """Whether `value` is a scalar that the files do not have."""
        return self.root(value) in self.constants

    def join(self, value: SSAValue, source: SSAValue) -> None:
        """Record that `value` is the tensor of `source`."""
        self.parents[value] = self.root(source)


def values_of(func: FuncOp) -> Values:
    """
    Return the tensors of a function at the schedule level.

    Init args are no tensors. Raises PassFailedException for partial folds that
    instances merge, for other constants that are no scalars, and for casts that no
    read or store of an op includes.
    """
    values = Values()
    for op in func.body.walk():
        _enter(op, values)
    return values


def _enter(op: Operation, values: Values) -> None:
    """Record which values of `op` are one tensor; bodies come after their node."""
    match op:
        case NodeOp():
            _reject_merge(op)
            _enter_iter_args(op, values)
            for outer, inner in zip(op.ins, op.tiles, strict=True):
                values.join(inner, outer)
            for inner, outer in zip(op.yielded, op.outs, strict=True):
                values.join(outer, inner)
        case CastOp():
            _check_cast(op)
            values.join(op.result, op.input)
        case RenameOp() | PadOp() | SliceOp():
            values.join(op.result, op.input)
        case CollectiveOp() if op.results:
            values.join(op.results[0], op.input)
        case FillOp() if _only_starts(op):
            pass
        case FillOp() | ExtentOp():
            _check_scalar(op)
            values.constants.add(op.result)
        case _:
            pass


def _reject_merge(op: NodeOp) -> None:
    if Combiner.FOLD in op.combiners and not op.init_args():
        raise OpError(
            op,
            "lower-to-comet: instances merge the partial results of a fold, and the "
            "COMET files have no such reduction; distribute another dimension",
        )


def _enter_iter_args(op: NodeOp, values: Values) -> None:
    """
    Record that an iter_arg and the value that the body yields for it are one tensor.

    An iter_arg that is read after its next value is computed is a separate tensor.
    """
    if not op.init_args():
        return
    for start in op.init_args():
        if not isinstance(start.owner, FillOp):
            raise OpError(
                op,
                f"lower-to-comet: an iter_arg starts from {start.type}, which is no "
                "constant, and the COMET files only say what a loop updates; start "
                "from a compound.fill",
            )
    iter_args = op.region_iter_args
    for iter_arg, value, reused in zip(
        iter_args, op.yielded, in_place(op), strict=True
    ):
        if reused:
            values.join(iter_arg, value)


def _check_cast(op: CastOp) -> None:
    """Raise PassFailedException for a cast that no read or store of an op includes."""
    stores = isinstance(op.input.owner, ComputeOp | CastOp) and op.input.has_one_use()
    users = [user for user in readers_of(op.result) if not isinstance(user, YieldOp)]
    if stores or (users and all(isinstance(user, ComputeOp) for user in users)):
        return
    raise OpError(
        op,
        f"lower-to-comet: the cast of {op.input.type} is neither of what one op "
        "computes nor of what ops of its node read, and the COMET files have no casts "
        "of their own; put it into the node of the ops that read it",
    )


def _only_starts(op: FillOp) -> bool:
    """Return whether a constant is used only as init arg."""
    return bool(op.result.uses) and all(
        isinstance(use.operation, NodeOp) and use.index >= len(use.operation.ins)
        for use in op.result.uses
    )


def _check_scalar(op: FillOp | ExtentOp) -> None:
    if names_of(op.result):
        raise OpError(
            op,
            f"lower-to-comet: the COMET files have no constant {op.result.type}, only "
            "scalars; make it an argument of the function",
        )
