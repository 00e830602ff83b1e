"""The named ops of attention."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, TensorType, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.named import FORMAT, CompoundOp


@irdl_op_definition
class AttentionOp(CompoundOp):
    """
    `softmax(q k^T / sqrt(D)) v` for each batch entry B and head H.

    For each of M queries it takes the weighted mean of N values of size E, by its
    products with N keys of size D. With `causal`, the last query sees all keys and each
    one before it one less: query m sees the keys n <= m + N - M.

    ```mlir
    %o = compound.attention %q, %k, %v causal : (tensor<1x8x256x64xf16>,
        tensor<1x8x256x64xf16>, tensor<1x8x256x64xf16>) -> tensor<1x8x256x64xf16>
    ```
    """

    name = "compound.attention"
    OPERANDS: ClassVar = (
        ("B", "H", "M", "D"),
        ("B", "H", "N", "D"),
        ("B", "H", "N", "E"),
    )
    RESULT: ClassVar = ("B", "H", "M", "E")
    causal = opt_prop_def(UnitAttr)
    assembly_format = (
        "$inputs (`causal` $causal^)? attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        inputs: Iterable[SSAValue],
        result_type: TensorType[AnyFloat],
        *,
        causal: bool = False,
    ):
        properties = {"causal": UnitAttr()} if causal else {}
        super().__init__(inputs, result_type, properties)

    def verify_(self) -> None:
        super().verify_()
        extents = self.named_extents()
        if self.causal is not None and extents["N"] < extents["M"]:
            raise VerifyException(
                f"'{self.name}' op is causal with {extents['M']} queries and "
                f"{extents['N']} keys, so that some queries see nothing; give it at "
                "least as many keys as queries"
            )


@irdl_op_definition
class FlashDecodeOp(CompoundOp):
    """
    Attention of one new token: `softmax(q k^T / sqrt(D)) v` over the existing keys.

    For each batch entry B, the G query heads of a key head H take the weighted mean of
    its S values, of size E. `lens`, of i32, is the number of keys of an entry: the
    first lens[b], at least one and at most all S. The elements after them must be
    finite. S may be sharded over ranks.

    ```mlir
    %o = compound.flash_decode %q, %k, %v, %lens : (tensor<4x2x8x64xf16>,
        tensor<4x2x512x64xf16>, tensor<4x2x512x64xf16>, tensor<4xi32>)
        -> tensor<4x2x8x64xf16>
    ```
    """

    name = "compound.flash_decode"
    OPERANDS: ClassVar = (
        ("B", "H", "G", "D"),
        ("B", "H", "S", "D"),
        ("B", "H", "S", "E"),
        ("B",),
    )
    RESULT: ClassVar = ("B", "H", "G", "E")
    LENGTHS: ClassVar = {3: "S"}
    assembly_format = FORMAT
