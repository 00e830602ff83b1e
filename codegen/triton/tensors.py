"""How emitted modules describe tensors: shapes, element types, how to draw them."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Attribute

from comet.codegen.python_text import tuple_of
from comet.codegen.triton.expressions import type_name
from comet.dialects.compound.dims import names_of
from comet.dialects.compound.named import AT_MOST
from comet.dialects.tl.types import element_of, shape_of


def shape_and_type(type: Attribute) -> tuple[str, str]:
    """Return the shape of a tensor, and what torch calls its element type."""
    name = "bool" if element_of(type) == i1 else type_name(type)
    return tuple_of([str(extent) for extent in shape_of(type)]), name


def at_most(function: func.FuncOp, index: int) -> int:
    """Return the largest number in an argument of counts, 1 if it has none."""
    if function.arg_attrs is None:
        return 1
    bound = function.arg_attrs.data[index].data.get(AT_MOST)
    return bound.value.data if isinstance(bound, IntegerAttr) else 1


def split_axis(type: Attribute, dim: str) -> int | None:
    """Return the sharded axis, None for an empty name."""
    return names_of(type).index(dim) if dim else None


def tensor_text(
    type: Attribute,
    *,
    terms: int = 1,
    split: int | None = None,
    at_most: int = 1,
    address: str | None = None,
    same_as: int | None = None,
    rounding: float | None = None,
) -> str:
    """Return the text of a `Tensor` of `comet.runtime`."""
    shape, dtype = shape_and_type(type)
    fields = [shape, f'"{dtype}"']
    fields += [f"terms={terms}"] if terms > 1 else []
    fields += [f"split={split}"] if split is not None else []
    fields += [f"at_most={at_most}"] if at_most > 1 else []
    fields += [f"address={address}"] if address is not None else []
    fields += [f"same_as={same_as}"] if same_as is not None else []
    fields += [f"rounding={rounding:.3g}"] if rounding is not None else []
    return f"Tensor({', '.join(fields)})"
