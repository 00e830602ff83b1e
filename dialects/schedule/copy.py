"""The copy of the schedule dialect: a tile that moves to another memory level."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.bitwise_casts import is_power_of_two
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound import ReduceKind, ReduceKindAttr
from comet.dialects.compound.dims import level_of, names_of, with_level
from comet.dialects.schedule.node import NodeOp


@irdl_op_definition
class CopyOp(IRDLOperation):
    """
    Move a tile to another memory level.

    If a tile is shorter than its type, the elements after its end are the neutral
    element of `pad`, or zeros. In a kernel, `mask` has the dimensions along which a
    tile may be shorter than its block, see `mask-copies`. With `descriptor`, the copy
    uses a tensor descriptor, see `use-descriptors`; `parts` is the number of parts of
    its last dimension in which it stores, see `stage-stores`. With `resident`, a
    persistent program does the copy once, before its first tile, see `hoist-copies`. In
    a tile tree with copies, borders of nodes do not transfer.

    ```mlir
    %b = schedule.copy %a mask ["K"] pad max
        : tensor<8x16xf16, #compound.dims<M, K @HBM>>
        -> tensor<8x16xf16, #compound.dims<M, K @SMEM>>
    ```
    """

    name = "schedule.copy"
    source = operand_def(base(TensorType))
    mask = opt_prop_def(ArrayAttr[StringAttr])
    pad = opt_prop_def(ReduceKindAttr)
    descriptor = opt_prop_def(UnitAttr)
    parts = opt_prop_def(IntegerAttr[I64])
    resident = opt_prop_def(UnitAttr)
    result = result_def(base(TensorType))
    traits = traits_def(Pure())
    assembly_format = (
        "$source (`mask` $mask^)? (`pad` $pad^)? (`descriptor` $descriptor^)? "
        "(`parts` $parts^)? (`resident` $resident^)? attr-dict `:` type($source) `->` "
        "type($result)"
    )

    def __init__(self, source: SSAValue, level: str, pad: ReduceKind | None = None):
        super().__init__(
            operands=[source],
            result_types=[with_level(source.type, level)],
            properties={"pad": None if pad is None else ReduceKindAttr(pad)},
        )
        self.result.name_hint = source.name_hint

    @property
    def padding(self) -> ReduceKind:
        """The reduction whose neutral element pads a short tile."""
        return ReduceKind.ADD if self.pad is None else self.pad.data

    @property
    def masked(self) -> tuple[str, ...]:
        """The dimensions along which the copy is masked."""
        return () if self.mask is None else tuple(dim.data for dim in self.mask)

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), NodeOp):
            raise VerifyException(f"'{self.name}' op is in the body of a node")
        source, level = self.source.type, level_of(self.result)
        if None in (level_of(source), level) or level_of(source) == level:
            raise VerifyException(
                f"'{self.name}' op moves a tile from one memory level to another, not "
                f"{source} to {self.result.type}"
            )
        if with_level(source, level) != self.result.type:
            raise VerifyException(
                f"'{self.name}' op changes the memory level only, not {source} to "
                f"{self.result.type}"
            )
        for dim in self.masked:
            if dim not in names_of(self.source):
                raise VerifyException(
                    f"'{self.name}' op is masked along {dim}, which {source} lacks"
                )
        if self.parts is not None:
            self._verify_parts(self.parts.value.data)
        if self.resident is not None:
            self._verify_resident()

    def _verify_parts(self, parts: int) -> None:
        """Check that a descriptor stores halves, or halves of these."""
        if self.descriptor is None or parts < 2 or not is_power_of_two(parts):
            raise VerifyException(
                f"'{self.name}' op stores by descriptor in a power of two of parts, "
                f"2 or more, not in {parts}"
            )

    def _verify_resident(self) -> None:
        """Check that all tiles of the launch grid copy the same tile."""
        node, source = self.parent_op(), self.source
        assert isinstance(node, NodeOp)
        if not node.is_grid or source not in node.tiles:
            raise VerifyException(
                f"'{self.name}' op is resident, so it copies an operand of the node on "
                "the launch grid that it is in"
            )
        for loop in node.loops:
            if loop.factor > 1 and loop.dim in names_of(source):
                raise VerifyException(
                    f"'{self.name}' op is resident, and the tiles of the launch grid "
                    f"have different slices of {source.type} along {loop.dim}"
                )
