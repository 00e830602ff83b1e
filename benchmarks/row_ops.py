"""Ops on rows, without products, whose registers are recorded: as elementary ops."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

HEAD = """
!x = tensor<{rows}x{columns}x{type}, #compound.dims<M, N>>
!w = tensor<{rows}x{columns}xf32, #compound.dims<M, N>>
!b = tensor<{rows}x{columns}xi1, #compound.dims<M, N>>
!g = tensor<{columns}x{type}, #compound.dims<N>>
!h = tensor<{columns}xf32, #compound.dims<N>>
!i = tensor<{rows}xi64, #compound.dims<M>>
!n = tensor<{columns}xi64, #compound.dims<N>>
!r = tensor<{rows}xf32, #compound.dims<M>>
!s = tensor<f32, #compound.dims<>>
func.func @rows({arguments}) -> ({types}) {{
"""
SUM = """
  %first = compound.cast %x : !x -> !w
  %second = compound.cast %residual : !x -> !w
  %wide = compound.map add %first, %second : !w, !w -> !w
  %sum = compound.cast %wide : !w -> !x
"""
"""What ops of a sum start with."""
ALONE = """
  %wide = compound.cast %x : !x -> !w
"""
SOFTMAX = """
  %most = compound.reduce max %wide : !w -> !r
  %below = compound.map sub %wide, %most : !w, !r -> !w
  %grown = compound.map exp %below : !w -> !w
  %all = compound.reduce add %grown : !w -> !r
  %part = compound.map div %grown, %all : !w, !r -> !w
  %y = compound.cast %part : !w -> !x
"""
LAYERNORM = """
  %count = compound.fill 0.0001220703125 : !s
  %all = compound.reduce add %wide : !w -> !r
  %mean = compound.map mult %all, %count : !r, !s -> !r
  %centred = compound.map sub %wide, %mean : !w, !r -> !w
  %square = compound.map mult %centred, %centred : !w, !w -> !w
  %squares = compound.reduce add %square : !w -> !r
  %variance = compound.map mult %squares, %count : !r, !s -> !r
  %inverse = compound.map rsqrt %variance : !r -> !r
  %normal = compound.map mult %centred, %inverse : !w, !r -> !w
  %scale = compound.cast %gamma : !g -> !h
  %scaled = compound.map mult %normal, %scale : !w, !h -> !w
  %shift = compound.cast %beta : !g -> !h
  %shifted = compound.map add %scaled, %shift : !w, !h -> !w
  %y = compound.cast %shifted : !w -> !x
"""
RMSNORM = """
  %count = compound.fill 0.0001220703125 : !s
  %square = compound.map mult %wide, %wide : !w, !w -> !w
  %squares = compound.reduce add %square : !w -> !r
  %mean = compound.map mult %squares, %count : !r, !s -> !r
  %inverse = compound.map rsqrt %mean : !r -> !r
  %normal = compound.map mult %wide, %inverse : !w, !r -> !w
  %scale = compound.cast %gamma : !g -> !h
  %scaled = compound.map mult %normal, %scale : !w, !h -> !w
  %y = compound.cast %scaled : !w -> !x
"""
CROSS_ENTROPY = """
  %numbers = compound.index : !n
  %hit = compound.map eq %labels, %numbers : !i, !n -> !b
  %most = compound.reduce max %wide : !w -> !r
  %below = compound.map sub %wide, %most : !w, !r -> !w
  %grown = compound.map exp %below : !w -> !w
  %all = compound.reduce add %grown : !w -> !r
  %log = compound.map log %all : !r -> !r
  %score = compound.map sub %below, %log : !w, !r -> !w
  %narrow = compound.cast %score : !w -> !x
  %again = compound.cast %narrow : !x -> !w
  %none = compound.fill 0.0 : !s
  %one = compound.map select %hit, %again, %none : !b, !w, !s -> !w
  %loss = compound.reduce add %one : !w -> !r
  %y = compound.map neg %loss : !r -> !r
"""


@dataclass(frozen=True)
class RowOp:
    """An op on rows, as elementary ops."""

    body: str
    arguments: Mapping[str, str]
    """Those besides `x`, with their types."""
    result: str
    stores_sum: bool = False
    """Whether it stores the sum with a residual beside its result."""

    def text(self, rows: int, columns: int, element: str) -> str:
        """Return the op on rows of so many columns, of an element type."""
        summed = "residual" in self.arguments
        results = {"y": self.result} | ({"sum": "!x"} if self.stores_sum else {})
        given = {"x": "!x", **self.arguments}
        head = HEAD.format(
            rows=rows,
            columns=columns,
            type=element,
            arguments=", ".join(f"%{name}: {kind}" for name, kind in given.items()),
            types=", ".join(results.values()),
        )
        values = ", ".join(f"%{name}" for name in results)
        end = f"  func.return {values} : {', '.join(results.values())}\n}}\n"
        text = head + (SUM if summed else ALONE) + self.body + end
        return _without_casts(text) if element == "f32" else text


def _without_casts(text: str) -> str:
    """Return a text without its casts, which would be from f32 to f32."""
    cast = re.compile(r" *(%\w+) = compound\.cast (%\w+) .*\n")
    while (found := cast.search(text)) is not None:
        result, operand = found.groups()
        text = re.sub(rf"{result}\b", operand, text.replace(found.group(), ""))
    return text


OPS: Mapping[str, RowOp] = {
    "softmax": RowOp(SOFTMAX, {}, "!x"),
    "softmax_of_sum": RowOp(SOFTMAX, {"residual": "!x"}, "!x"),
    "layernorm": RowOp(LAYERNORM, {"gamma": "!g", "beta": "!g"}, "!x"),
    "layernorm_of_sum": RowOp(
        LAYERNORM, {"residual": "!x", "gamma": "!g", "beta": "!g"}, "!x", True
    ),
    "rmsnorm": RowOp(RMSNORM, {"gamma": "!g"}, "!x"),
    "rmsnorm_of_sum": RowOp(RMSNORM, {"residual": "!x", "gamma": "!g"}, "!x", True),
    "cross_entropy": RowOp(CROSS_ENTROPY, {"labels": "!i"}, "!r"),
}
