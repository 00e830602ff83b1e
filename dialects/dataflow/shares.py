"""
Shares of work that lengths decide: equal runs of a flat list of tiles.

Sequences of a batch have different lengths, which are known at run time. The list has
the tiles of all of them, one sequence after another. Equal runs of it, one for each
program, cut a sequence at most into a given number of parts (even shares, as in
stream-K, with the tiles of a ragged dimension as the list).
"""

from __future__ import annotations

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType, i32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import (
    INTEGER_TENSOR,
    extents_of,
    level_of,
    names_of,
    tensor,
)
from comet.dialects.dataflow.flags import KERNEL
from comet.dialects.parents import HasParentNamed
from comet.dialects.schedule import SpatialOp


@irdl_op_definition
class SharesOp(IRDLOperation):
    """
    Cut a flat list of tiles in equal runs; say which tiles each part of a sequence has.

    The last position that element e of `lengths` sees is its value and `offset`. It has
    the tiles up to there, or all `tiles` if it sees none, as all terms have equal
    weight then. Tiles have `size` positions. The list of all tiles has `runs` runs of

        max(ceil(total / runs), ceil((most - 1) / (parts - 1)))

    tiles, so that a sequence, of at most `most` tiles, is in no more than `parts` runs.
    Part p of a sequence is what the p-th of the runs that it is in has of it: the tiles
    from `first` until `end`, none for those from `count` on. The parts of one run are
    of neighbouring sequences.

    ```mlir
    %first, %end, %count = dataflow.shares of %lens offset -1 tiles 4 of 64 runs 33
        : tensor<8xi32, #compound.dims<B @HBM>>
        -> tensor<3x8xi32, #compound.dims<S_part, B @HBM>>, ..
    ```
    """

    name = "dataflow.shares"
    lengths = operand_def(INTEGER_TENSOR)
    offset = prop_def(IntegerAttr[I64])
    tiles = prop_def(IntegerAttr[I64])
    size = prop_def(IntegerAttr[I64])
    runs = prop_def(IntegerAttr[I64])
    first = result_def(TensorType)
    end = result_def(TensorType)
    count = result_def(TensorType)
    traits = traits_def(Pure(), HasParentNamed((KERNEL,)))
    assembly_format = (
        "`of` $lengths `offset` $offset `tiles` $tiles `of` $size `runs` $runs "
        "attr-dict `:` type($lengths) `->` type($first) `,` type($end) `,` type($count)"
    )

    def __init__(
        self,
        lengths: SSAValue,
        part: str,
        parts: int,
        *,
        offset: int,
        tiles: int,
        size: int,
        runs: int,
    ):
        (dim,) = names_of(lengths)
        level, extent = level_of(lengths), extents_of(lengths)[dim]
        ranges = tensor({part: parts, dim: extent}, i32, level)
        counts = tensor({dim: extent}, i32, level)
        numbers = {"offset": offset, "tiles": tiles, "size": size, "runs": runs}
        super().__init__(
            operands=[lengths],
            result_types=[ranges, ranges, counts],
            properties={key: IntegerAttr(n, i64) for key, n in numbers.items()},
        )

    @property
    def part(self) -> str:
        """The dimension of the parts of a sequence."""
        return names_of(self.first)[0]

    @property
    def parts(self) -> int:
        """The most parts of a sequence."""
        return extents_of(self.first)[self.part]

    @property
    def dim(self) -> str:
        """The dimension of the sequences."""
        return names_of(self.lengths)[0]

    @property
    def sequences(self) -> int:
        """The number of sequences."""
        return extents_of(self.lengths)[self.dim]

    @property
    def run_count(self) -> int:
        """The number of runs."""
        return self.runs.value.data

    @property
    def lists(self) -> tuple[str, str]:
        """The loops of a launch grid whose tiles a list has: parts and sequences."""
        return self.part, self.dim

    def verify_(self) -> None:
        if len(names_of(self.lengths)) != 1:
            raise VerifyException(
                f"'{self.name}' op lengths have one dimension, got {self.lengths.type}"
            )
        numbers = self.tiles.value.data, self.size.value.data, self.run_count
        if min(numbers) < 1:
            raise VerifyException(
                f"'{self.name}' op has tiles, positions of each and runs, 1 or more"
            )
        extents = list(extents_of(self.first).items())
        fits = len(extents) == 2 and extents[1] == (self.dim, self.sequences)
        if not fits or self.end.type != self.first.type or self.parts < 2:
            raise VerifyException(
                f"'{self.name}' op first and end tiles have the parts of a sequence, "
                f"at least 2, and {self.dim}, got {self.first.type}"
            )
        if extents_of(self.count) != {self.dim: self.sequences}:
            raise VerifyException(
                f"'{self.name}' op counts the parts along {self.dim}, got "
                f"{self.count.type}"
            )


def shares_of(node: SpatialOp) -> SharesOp | None:
    """Return what says which tiles each program of a node has, None without it."""
    found = {value.owner for value in node.ins if isinstance(value.owner, SharesOp)}
    op = next(iter(found), None)
    assert op is None or isinstance(op, SharesOp)
    return op if op is not None and op.first in node.ins else None
