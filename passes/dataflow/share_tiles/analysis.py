"""Which kernels have tiles of sequences that programs could share evenly."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import BlockArgument, SSAValue

from comet.dialects.compound import FillOp, IndexOp, MapKind, MapOp, RenameOp
from comet.dialects.compound.dims import elements_of, extents_of, names_of
from comet.dialects.dataflow import ArriveOp, KernelOp
from comet.dialects.dataflow.merging import (
    arrivals_in,
    arriving_node,
    merging_node,
    readers,
)
from comet.dialects.errors import called
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.masked_loops import (
    Visible,
    copied_value,
    is_whole,
    last_visible,
)


@dataclass(frozen=True)
class PartialFold:
    """A kernel whose programs fold parts of sequences, which the last one merges."""

    arrive: ArriveOp
    split: SpatialOp
    """The node of the parts."""
    fold: TemporalOp
    """The loop over the tiles of a part."""
    merge: SpatialOp
    merging: TemporalOp
    """The loop over the parts of a sequence."""
    part: str
    """The dimension of the parts."""
    inner: str
    """The dimension of the positions in a part."""
    seen: Visible
    """The operands of `fold` with the last visible position, and where a part begins"""
    lengths: SSAValue
    offset: int
    """The last visible position is a length and this number."""

    @property
    def sequences(self) -> str:
        """The dimension of the sequences."""
        return names_of(self.lengths)[0]

    @property
    def parts(self) -> int:
        """The parts of a sequence."""
        return self.split.factors[self.part]

    @property
    def tile(self) -> int:
        """The positions that an iteration has."""
        operand = next(v for v in self.fold.tiles if self.inner in names_of(v))
        return extents_of(operand)[self.inner]

    @property
    def positions(self) -> int:
        """The positions of the longest sequence."""
        return self.parts * self.fold.extents[self.inner]

    @property
    def lists(self) -> int:
        """The tiles of the launch grid that have a list each: those of other loops."""
        shared = (self.part, self.sequences)
        return prod(n for dim, n in self.split.factors.items() if dim not in shared)


def partial_fold(kernel: KernelOp) -> PartialFold | str:
    """Return how a kernel folds parts of sequences; a text says why it does not."""
    arrivals = arrivals_in(kernel)
    if len(arrivals) != 1:
        return "no last program merges what others fold; use merge=last"
    (arrive,) = arrivals
    split, merge = arriving_node(arrive), merging_node(arrive)
    if split is None or merge is None or list(kernel.nodes) != [split, merge]:
        return "its programs do more than to fold parts and merge them"
    if split.launch is None or split.launch.persistent or split.launch.specialize:
        return "its programs are persistent already, or have producer warps"
    folds = [op for op in split.body.block.ops if isinstance(op, TemporalOp)]
    merging = [op for op in merge.body.block.ops if isinstance(op, TemporalOp)]
    if len(folds) != 1 or len(merging) != 1:
        return "it is not one loop that folds, and one that merges"
    return _in_loops(arrive, split, folds[0], merge, merging[0])


def _in_loops(
    arrive: ArriveOp,
    split: SpatialOp,
    fold: TemporalOp,
    merge: SpatialOp,
    merging: TemporalOp,
) -> PartialFold | str:
    """Return the fold of a node whose programs arrive, if lengths end its loop."""
    blocks = arrive.type.factors
    cut = [loop.dim for loop in split.loops if loop.dim not in blocks]
    seen = last_visible(fold)
    if len(cut) != 1 or seen is None or seen.start is None:
        return "no length ends its loop over the positions of a part"
    last = fold.ins[seen.operand]
    lengths, offset = _constant_apart(last)
    if not is_whole(last) or not _is_argument(lengths) or len(names_of(lengths)) != 1:
        return "the last visible positions are not integers of each sequence"
    ((sequences, count),) = extents_of(lengths).items()
    if blocks.get(sequences) != count or split.factors[cut[0]] != _extent(split, cut):
        return "a program has several sequences, or several parts"
    (inner,) = (loop.dim for loop in fold.loops)
    found = PartialFold(
        arrive, split, fold, merge, merging, *(cut[0], inner, seen, lengths, offset)
    )
    if (reason := _unmovable(found)) is not None:
        return reason
    return found


def _extent(node: SpatialOp, dims: list[str]) -> int:
    return node.extents[dims[0]]


def _constant_apart(value: SSAValue) -> tuple[SSAValue, int]:
    """Return a value outside nodes, and the constant that is added to it."""
    value, offset = copied_value(value), 0
    while isinstance(op := value.owner, MapOp) and len(op.inputs) == 2:
        constant = copied_value(op.inputs[1]).owner
        if op.kind.data not in (MapKind.ADD, MapKind.SUB):
            break
        if not isinstance(constant, FillOp):
            break
        sign = 1 if op.kind.data is MapKind.ADD else -1
        offset += sign * int(constant.value.value.data)
        value = copied_value(op.inputs[0])
    return value, offset


def _is_argument(value: SSAValue) -> bool:
    """Whether a value is an operand of a kernel."""
    return isinstance(value, BlockArgument) and isinstance(
        value.owner.parent_op(), KernelOp
    )


def _unmovable(found: PartialFold) -> str | None:
    """Return why programs cannot have other positions than those of a part."""
    for value in found.split.ins:
        names = names_of(value)
        if found.inner in names and whole_of(value, found) is None:
            return (
                f"{called(value)} is no part of whole sequences, but such as "
                "rows that are gathered in parts; leave the kernel out of the option"
            )
    if {*found.fold.combiners} != {Combiner.FOLD}:
        return "its loop has results that no iteration passes to the next one"
    if {*found.merging.combiners} != {Combiner.FOLD} or len(found.merging.loops) != 1:
        return "its last program does not merge one part after another"
    (parts,) = (loop.dim for loop in found.merging.loops)
    renamed = (
        dict(zip(names_of(partial), names_of(read), strict=True)).get(found.part)
        for partial, value in zip(
            found.arrive.partials, found.arrive.complete, strict=True
        )
        for read, _ in readers(value)
    )
    if any(name != parts for name in renamed):
        return "its last program reads the parts in another order"
    if any(found.part in names_of(out) for out in found.merge.outs):
        return "its results have parts"
    return None


def whole_of(value: SSAValue, found: PartialFold) -> SSAValue | None:
    """Return the whole value of which an operand is a view in parts, else None."""
    op = value.owner
    if isinstance(op, IndexOp) and op.whole is None:
        return value
    if not isinstance(op, RenameOp) or op.cut is None:
        return None
    names = names_of(value)
    at = names.index(found.inner)
    is_cut = at > 0 and op.renaming[op.cut] == names[at - 1] == found.part
    return op.input if is_cut else None


def sequence_count(found: PartialFold) -> int:
    """Return the number of sequences."""
    return elements_of(found.lengths)
