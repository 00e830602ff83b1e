"""Which SSA values of a tile tree are one tensor, and which are no tensor at all."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective import CollectiveOp
from comet.dialects.compound import CastOp, ExtentOp, FillOp, RenameOp
from comet.dialects.compound_dims import names_of
from comet.dialects.schedule_attributes import Combiner
from comet.dialects.schedule_node import NodeOp


@dataclass(frozen=True)
class Values:
    """
    The tensors of a function: block arguments, yields, results of nodes and in-place
    collectives of one value are one tensor; so are a value and its cast or renaming.
    """

    parents: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    constants: set[SSAValue] = field(default_factory=set[SSAValue])
    """Roots that are scalars known to the program, which no file mentions."""

    def root(self, value: SSAValue) -> SSAValue:
        """Return the value that stands for the tensor of `value`: the first of it."""
        while (parent := self.parents.get(value)) is not None:
            value = parent
        return value

    def is_constant(self, value: SSAValue) -> bool:
        """Whether `value` is a scalar that the files leave out."""
        return self.root(value) in self.constants

    def _join(self, value: SSAValue, source: SSAValue) -> None:
        self.parents[value] = self.root(source)


def values_of(func: FuncOp) -> Values:
    """
    Return the tensors of a function at the schedule level.

    Raises PassFailedException for folds, for constants that are no scalars and for
    casts that are not the output of one op.
    """
    values = Values()
    for op in func.body.walk():
        _enter(op, values)
    return values


def _enter(op: Operation, values: Values) -> None:
    """Record what `op` says of its values; the walk visits bodies after their node."""
    join = values._join  # pyright: ignore[reportPrivateUsage]
    match op:
        case NodeOp():
            _reject_fold(op)
            for outer, inner in zip(op.ins, op.tiles, strict=True):
                join(inner, outer)
            for inner, outer in zip(op.yielded, op.outs, strict=True):
                join(outer, inner)
        case CastOp():
            _check_cast(op)
            join(op.result, op.input)
        case RenameOp():
            join(op.result, op.input)
        case CollectiveOp() if op.results:
            join(op.results[0], op.input)
        case FillOp() | ExtentOp():
            _check_scalar(op)
            values.constants.add(op.result)
        case _:
            pass


def _reject_fold(op: NodeOp) -> None:
    if op.initial_carries() or Combiner.FOLD in op.combiners:
        raise PassFailedException(
            "lower-to-comet: the COMET files cannot carry a value that is rescaled "
            "from one iteration to the next; decompose without the pass stream"
        )


def _check_cast(op: CastOp) -> None:
    made = op.input.owner
    if isinstance(made, Operation) and not isinstance(made, NodeOp):
        if op.input.has_one_use():
            return
    raise PassFailedException(
        f"lower-to-comet: the cast of {op.input.type} is not the only use of the op "
        "that makes it, and the COMET files have no casts of their own; decompose with "
        "accumulator=input"
    )


def _check_scalar(op: FillOp | ExtentOp) -> None:
    if names_of(op.result):
        raise PassFailedException(
            f"lower-to-comet: the COMET files have no constant {op.result.type}, only "
            "scalars; make it an argument of the function"
        )
