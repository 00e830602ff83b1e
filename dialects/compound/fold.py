"""`compound.fold`: running reductions whose partial results need rescaling."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import extents_of, names_of, with_extents


@irdl_op_definition
class YieldOp(IRDLOperation):
    """
    Ends a region of `compound.fold`.

    ```mlir
    compound.yield %m : tensor<4xf32, #compound.dims<M>>
    ```
    """

    name = "compound.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


@irdl_op_definition
class FoldOp(IRDLOperation):
    """
    A reduction over one dimension in steps, whose partial results need rescaling.

    `init` is the neutral element of the iter_args (finite, so that merging an empty
    partial is exact). `step` takes one chunk of every input and the iter_args, and
    yields the next iter_args. `merge` merges two partial results. Inputs without the
    dimension enter every step whole. All chunk sizes and all trees of merges give the
    same value; if the types of `step` have chunks of extent 1, it runs element by
    element.

    The results of a `partial` fold are only merged with those of other parts of a
    dimension. Where they count for nothing after that, because a mask hides the whole
    part, but not all parts, the fold may yield its `init` instead.

    ```mlir
    %m = compound.fold over "N" ins(%s : tensor<4x8xf32, #compound.dims<M, N>>)
        init(%low : tensor<4xf32, #compound.dims<M>>) step {
    ^bb0(%chunk : tensor<4x8xf32, #compound.dims<M, N>>,
         %old : tensor<4xf32, #compound.dims<M>>):
      %now = compound.reduce max %chunk : ...
      %new = compound.map max %old, %now : ...
      compound.yield %new : tensor<4xf32, #compound.dims<M>>
    } merge {
    ^bb1(%x : tensor<4xf32, #compound.dims<M>>, %y : tensor<4xf32, #compound.dims<M>>):
      %new = compound.map max %x, %y : ...
      compound.yield %new : tensor<4xf32, #compound.dims<M>>
    } -> tensor<4xf32, #compound.dims<M>>
    ```
    """

    name = "compound.fold"
    dim = prop_def(StringAttr)
    partial = opt_prop_def(UnitAttr)
    ins = var_operand_def()
    init = var_operand_def()
    outs = var_result_def()
    step = region_def("single_block")
    merge = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure(), RecursiveMemoryEffect())
    assembly_format = (
        "`over` $dim (`partial` $partial^)? `ins` `(` $ins `:` type($ins) `)` "
        "`init` `(` $init `:` type($init) `)` attr-dict-with-keyword `step` $step "
        "`merge` $merge `->` type($outs)"
    )

    def __init__(
        self,
        dim: str,
        ins: Sequence[SSAValue],
        init: Sequence[SSAValue],
        step: Region,
        merge: Region,
    ):
        super().__init__(
            operands=[ins, init],
            result_types=[[value.type for value in init]],
            properties={"dim": StringAttr(dim)},
            regions=[step, merge],
        )

    @property
    def element_by_element(self) -> bool:
        """Whether the types of `step` have chunks of one element."""
        chunks = self.step.block.args[: len(self.ins)]
        sizes = (extents_of(chunk).get(self.dim.data) for chunk in chunks)
        return 1 in sizes

    def _element(self, type_: Attribute) -> Attribute:
        if self.dim.data not in names_of(type_):
            return type_
        return with_extents(type_, {self.dim.data: 1})

    def verify_(self) -> None:
        if all(self.dim.data not in names_of(value) for value in self.ins):
            raise VerifyException(
                f"'{self.name}' op no input has the folded dimension {self.dim.data}"
            )
        iter_args = tuple(value.type for value in self.init)
        for iter_arg in iter_args:
            if self.dim.data in names_of(iter_arg):
                raise VerifyException(
                    f"'{self.name}' op iter_arg {iter_arg} still has the folded "
                    f"dimension {self.dim.data}"
                )
        chunk = tuple(value.type for value in self.ins)
        if self.element_by_element:
            chunk = tuple(self._element(type_) for type_ in chunk)
        self._check_region("step", self.step.block, (*chunk, *iter_args), iter_args)
        self._check_region(
            "merge", self.merge.block, (*iter_args, *iter_args), iter_args
        )
        if tuple(result.type for result in self.outs) != iter_args:
            raise VerifyException(
                f"'{self.name}' op results have the types of the iter_args"
            )

    def _check_region(
        self,
        which: str,
        block: Block,
        arguments: tuple[Attribute, ...],
        iter_args: tuple[Attribute, ...],
    ) -> None:
        if tuple(arg.type for arg in block.args) != arguments:
            raise VerifyException(
                f"'{self.name}' op region {which} takes ({_types(arguments)}), "
                f"got ({_types(tuple(arg.type for arg in block.args))})"
            )
        terminator = block.last_op
        if not isinstance(terminator, YieldOp):
            raise VerifyException(
                f"'{self.name}' op region {which} ends in compound.yield"
            )
        if tuple(value.type for value in terminator.values) != iter_args:
            raise VerifyException(
                f"'{self.name}' op region {which} yields ({_types(iter_args)})"
            )


def _types(types: tuple[Attribute, ...]) -> str:
    return ", ".join(str(type_) for type_ in types)
