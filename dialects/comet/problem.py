"""The problem and constants files of the `comet` dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.traits import HasParent, NoTerminator
from xdsl.utils.exceptions import VerifyException

from comet.dialects.comet.attributes import (
    AccessesAttr,
    Sizes,
    SizesAttr,
    verify_distinct,
)
from comet.kinds import Access


def names_attr(names: Sequence[str]) -> ArrayAttr[StringAttr]:
    """Build an array of strings."""
    return ArrayAttr(StringAttr(name) for name in names)


@irdl_op_definition
class ConstantsOp(IRDLOperation):
    """
    The constants file: names that the other files may use in place of numbers.

    ```mlir
    comet.constants {m = 256 : i64, order = "MNK"}
    ```
    """

    name = "comet.constants"

    values = prop_def(DictionaryAttr)

    assembly_format = "$values attr-dict-with-keyword"

    def __init__(self, values: Mapping[str, int | str]):
        entries: dict[str, Attribute] = {
            name: StringAttr(value)
            if isinstance(value, str)
            else IntegerAttr(value, i64)
            for name, value in values.items()
        }
        super().__init__(properties={"values": DictionaryAttr(entries)})

    def verify_(self) -> None:
        for name, value in self.values.data.items():
            if not isinstance(value, IntegerAttr | StringAttr):
                raise VerifyException(
                    f"'{self.name}' op constant '{name}' is neither an integer "
                    "nor a string"
                )


@irdl_op_definition
class DeclareOp(IRDLOperation):
    """
    One operation of the problem, with the projections of its tensors.

    ```mlir
    comet.declare "GEMM" ins ["A", "B"] out "C" dimensions ["M", "N", "K"]
      tensors <A[M, K], B[K, N], C[M, N] read_write>
    ```
    """

    name = "comet.declare"

    operation = prop_def(StringAttr)
    ins = prop_def(ArrayAttr[StringAttr])
    out = prop_def(StringAttr)
    dimensions = prop_def(ArrayAttr[StringAttr])
    tensors = prop_def(AccessesAttr)

    traits = lazy_traits_def(lambda: (HasParent(ProblemOp),))

    assembly_format = (
        "$operation `ins` $ins `out` $out `dimensions` $dimensions "
        "`tensors` $tensors attr-dict"
    )

    def __init__(
        self,
        operation: str,
        ins: Sequence[str],
        out: str,
        dimensions: Sequence[str],
        tensors: Sequence[Access],
    ):
        super().__init__(
            properties={
                "operation": StringAttr(operation),
                "ins": names_attr(ins),
                "out": StringAttr(out),
                "dimensions": names_attr(dimensions),
                "tensors": AccessesAttr(tuple(tensors)),
            }
        )

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The tensors of this operation, with their projections."""
        return self.tensors.data

    def verify_(self) -> None:
        dims = {dim.data for dim in self.dimensions}
        what = f"'{self.name}' op {self.operation.data}"
        listed = {access.tensor for access in self.accesses}
        for tensor in (*self.ins, self.out):
            if tensor.data not in listed:
                raise VerifyException(
                    f"{what}: no projection is given for its tensor '{tensor.data}'"
                )
        for access in self.accesses:
            for dim in (dim for axis in access.projection for dim in axis):
                if dim not in dims:
                    raise VerifyException(
                        f"{what}: tensor '{access.tensor}' is indexed by {dim}, "
                        "which is not among the dimensions of the operation"
                    )


@irdl_op_definition
class ProblemOp(IRDLOperation):
    """
    The problem file: sizes, tensors in and out, and operations.

    ```mlir
    comet.problem ins ["A", "B"] outs ["H"] instance <M = 256, N = 64, K = 128> {
      comet.declare ...
    }
    comet.problem ins ["A"] outs ["B"] instance <M = 256> padded_from <M = 250> {
      comet.declare ...
    }
    ```
    """

    name = "comet.problem"

    ins = prop_def(ArrayAttr[StringAttr])
    outs = prop_def(ArrayAttr[StringAttr])
    instance = prop_def(SizesAttr)
    true = opt_prop_def(SizesAttr)
    """The sizes of the program in dimensions that the files have padded."""
    body = region_def("single_block")

    traits = traits_def(NoTerminator())

    assembly_format = (
        "`ins` $ins `outs` $outs `instance` $instance (`padded_from` $true^)? "
        "attr-dict-with-keyword $body"
    )

    def __init__(
        self,
        ins: Sequence[str],
        outs: Sequence[str],
        instance: Sizes,
        body: Region,
        true: Sizes = (),
    ):
        super().__init__(
            properties={
                "ins": names_attr(ins),
                "outs": names_attr(outs),
                "instance": SizesAttr(instance),
                "true": SizesAttr(true) if true else None,
            },
            regions=[body],
        )

    @property
    def true_sizes(self) -> dict[str, int]:
        """The sizes of the program in dimensions that the files have padded."""
        return {} if self.true is None else dict(self.true.data)

    @property
    def declarations(self) -> tuple[DeclareOp, ...]:
        """The operations of the problem, in the order of the file."""
        return tuple(op for op in self.body.block.ops if isinstance(op, DeclareOp))

    def verify_(self) -> None:
        for op in self.body.block.ops:
            if not isinstance(op, DeclareOp):
                raise VerifyException(
                    f"'{self.name}' op holds '{op.name}'; "
                    f"only '{DeclareOp.name}' has a place in it"
                )
        verify_distinct(
            f"'{self.name}' op operations",
            (declaration.operation.data for declaration in self.declarations),
        )
        dims = dict(self.instance.data)
        for dim, size in self.true_sizes.items():
            if size >= dims.get(dim, 0):
                raise VerifyException(
                    f"'{self.name}' op pads {dim} = {size} to {dims.get(dim)}; padding "
                    "makes a dimension of the instance larger"
                )
        for declaration in self.declarations:
            for dim in declaration.dimensions:
                if dim.data not in dims:
                    raise VerifyException(
                        f"'{self.name}' op {declaration.operation.data} has the "
                        f"dimension {dim.data}, whose size the instance does not give"
                    )
