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

    For each of M queries it computes the weighted mean of N values of size E, with
    weights from its products with N keys of size D. With `causal`, query m sees the
    keys n <= m + N - M: the last query sees all keys.

    Several query heads may share a head of keys and values (grouped-query attention):
    queries and result have G query heads for each key head, as (B, H, G, M, D), or all
    in one dimension HG = H * G, where those of a key head are adjacent.

    ```mlir
    %o = compound.attention %q, %k, %v causal : (tensor<1x8x256x64xf16>,
        tensor<1x8x256x64xf16>, tensor<1x8x256x64xf16>) -> tensor<1x8x256x64xf16>
    %p = compound.attention %g, %k, %v causal : (tensor<1x8x4x256x64xf16>,
        tensor<1x8x256x64xf16>, tensor<1x8x256x64xf16>) -> tensor<1x8x4x256x64xf16>
    %r = compound.attention %f, %k, %v causal : (tensor<1x32x256x64xf16>,
        tensor<1x8x256x64xf16>, tensor<1x8x256x64xf16>) -> tensor<1x32x256x64xf16>
    ```
    """

    name = "compound.attention"
    OPERANDS: ClassVar = (
        ("B", "H", "M", "D"),
        ("B", "H", "N", "D"),
        ("B", "H", "N", "E"),
    )
    RESULT: ClassVar = ("B", "H", "M", "E")
    QUERY_HEADS: ClassVar = {"grouped": ("H", "G"), "flat": ("HG",)}
    """The dimensions of query heads in grouped-query attention, by form."""
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

    @property
    def form(self) -> str | None:
        """The form of grouped-query attention, None for one query head per key head."""
        q, k = (_shape(value) for value in self.inputs[:2])
        if len(q) == 5:
            return "grouped"
        flat = len(q) == len(k) == 4 and q[1] != k[1] and q[1] % max(k[1], 1) == 0
        return "flat" if flat else None

    @property
    def operand_dims(self) -> tuple[tuple[str, ...], ...]:
        """The dimension names of each operand, in axis order."""
        if (form := self.form) is None:
            return self.OPERANDS
        return ("B", *self.QUERY_HEADS[form], "M", "D"), *self.OPERANDS[1:]

    @property
    def result_dims(self) -> tuple[str, ...]:
        """The dimension names of the result, in axis order."""
        if (form := self.form) is None:
            return self.RESULT
        return "B", *self.QUERY_HEADS[form], "M", "E"

    @property
    def inner_dims(self) -> tuple[str, ...]:
        """The dimension G of the flat form, in which it is part of HG."""
        return ("G",) if self.form == "flat" else ()

    def verify_(self) -> None:
        self._verify_heads()
        super().verify_()
        extents = self.named_extents()
        if self.causal is not None and extents["N"] < extents["M"]:
            raise VerifyException(
                f"'{self.name}' op is causal with {extents['M']} queries and "
                f"{extents['N']} keys, so that some queries see nothing; give it at "
                "least as many keys as queries"
            )

    def _verify_heads(self) -> None:
        """Check that all key heads have the same number of query heads."""
        if len(self.inputs) < 2:
            return
        q, k = (_shape(value) for value in self.inputs[:2])
        if len(q) == len(k) == 4 and min(*q, *k) >= 1 and q[1] % k[1]:
            raise VerifyException(
                f"'{self.name}' op has {q[1]} query heads and {k[1]} key heads; give "
                "each key head as many query heads"
            )


def _shape(value: SSAValue) -> tuple[int, ...]:
    type_ = value.type
    return type_.get_shape() if isinstance(type_, TensorType) else ()


@irdl_op_definition
class FlashDecodeOp(CompoundOp):
    """
    Attention of one new token: `softmax(q k^T / sqrt(D)) v` over the existing keys.

    For each batch entry B, the G query heads of a key head H compute weighted means of
    its S values of size E. `lens` (i32) is the number of keys of each entry, from 1 to
    S: only the first lens[b] are seen. The values after them must be finite. S may be
    sharded over ranks.

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
