"""The tables of the arch dialect: kinds of memory and of compute units."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Self

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Block, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
)
from xdsl.utils.exceptions import VerifyException

from comet.dialects.arch.fields import (
    Fields,
    FieldsDirective,
    dictionary_of,
    fields_of,
    number,
)
from comet.dialects.arch.schema import COMPUTE, MEMORY, Rules, mistakes
from comet.dialects.parents import HasParentNamed

SYSTEM = "arch.system"
"""The name of the op of a machine, which contains all others."""


class ContainerOp(IRDLOperation, ABC):
    """An op whose regions have one block each; `{}` in the text is an empty block."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for region in self.regions:
            if not region.blocks:
                region.add_block(Block())

    def clone_without_regions(
        self,
        value_mapper: dict[SSAValue, SSAValue] | None = None,
        block_mapper: dict[Block, Block] | None = None,
        *,
        clone_name_hints: bool = True,
        clone_operands: bool = True,
    ) -> Self:
        """Clone the op; the caller adds the blocks."""
        clone = super().clone_without_regions(
            value_mapper,
            block_mapper,
            clone_name_hints=clone_name_hints,
            clone_operands=clone_operands,
        )
        for region in clone.regions:
            region.detach_block(region.block)
        return clone


class RowOp(IRDLOperation, ABC):
    """A row of a table: a kind of memory or of compute unit."""

    kind = prop_def(StringAttr)
    fields = prop_def(DictionaryAttr)
    extra = opt_prop_def(DictionaryAttr)
    """Other fields of the file: the class, and fields that comet does not read."""
    traits = traits_def(HasParentNamed((SYSTEM,)))
    custom_directives = (FieldsDirective,)
    assembly_format = (
        "$kind custom<FieldsDirective>($fields) "
        "(`extra` custom<FieldsDirective>($extra)^)? attr-dict"
    )

    RULES: ClassVar[Rules]
    """The rules of the fields."""

    def __init__(self, kind: str, fields: Fields, extra: Fields | None = None):
        super().__init__(
            properties={
                "kind": StringAttr(kind),
                "fields": dictionary_of(fields),
                "extra": dictionary_of(extra) if extra else None,
            }
        )

    def verify_(self) -> None:
        for _, mistake in mistakes(fields_of(self.fields), self.RULES):
            raise VerifyException(f"'{self.name}' op \"{self.kind.data}\": {mistake}")


@irdl_op_definition
class ComputeOp(RowOp):
    """
    A kind of compute unit: an entry of the file's `ComputeTiles`.

    ```mlir
    arch.compute "VSIMD" {computeWidth = 16, computeOpC = 64, computeLatency = 16}
    ```
    """

    name = "arch.compute"
    RULES: ClassVar[Rules] = COMPUTE


@irdl_op_definition
class MemoryOp(RowOp):
    """
    A kind of memory: an entry of the file's `MemoryTypes`.

    It has `depth` blocks of `width` bytes. Bandwidths are bytes per cycle, energies pJ
    per block.

    ```mlir
    arch.memory "GBuffer" {width = 2048, depth = 1024} extra {class = "SRAM"}
    ```
    """

    name = "arch.memory"
    RULES: ClassVar[Rules] = MEMORY

    @property
    def bytes(self) -> int:
        """The capacity of one instance: width times depth."""
        fields = fields_of(self.fields)
        return int(number(fields, "width", 1) * number(fields, "depth", 1))
