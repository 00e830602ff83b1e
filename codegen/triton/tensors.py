"""How emitted modules describe tensors: shapes, element types, how to draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i1
from xdsl.ir import Attribute

from comet.codegen.python_text import tuple_of
from comet.codegen.rounding import expected_roundings, stores_narrow
from comet.codegen.triton.expressions import type_name
from comet.dialects.compound.dims import names_of
from comet.dialects.compound.gather import id_limits
from comet.dialects.compound.named import AT_MOST
from comet.dialects.tl.descriptors import MakeDescriptorOp
from comet.dialects.tl.types import element_of, shape_of


def shape_and_type(type: Attribute) -> tuple[str, str]:
    """Return the shape of a tensor, and what torch calls its element type."""
    name = "bool" if element_of(type) == i1 else type_name(type)
    return tuple_of([str(extent) for extent in shape_of(type)]), name


def prepared(module: ModuleOp, arguments: Mapping[str, Attribute]) -> list[str]:
    """
    Return the statements before the launches of `module`, on its arguments by name.

    They check the tensors, and allow kernels to make descriptors of them, if any does.
    """
    lines: list[str] = []
    for name, type in arguments.items():
        shape, dtype = shape_and_type(type)
        lines.append(f'expect_tensor("{name}", {name}, {shape}, "{dtype}")')
    if any(isinstance(op, MakeDescriptorOp) for op in module.walk()):
        passed = ", ".join(f"{name}={name}" for name in arguments)
        lines.append(f"allow_descriptors({passed})")
    return lines


def drawn_between(function: func.FuncOp, index: int) -> tuple[int, int]:
    """
    Return the least and the largest number that checks draw, for integers.

    Ids of a gather name positions of its table. Counts go from 1 to a bound, 1 if the
    argument has none.
    """
    extents = list(id_limits(function.body.block.args[index]))
    if extents:
        return 0, min(extents) - 1
    if function.arg_attrs is None:
        return 1, 1
    bound = function.arg_attrs.data[index].data.get(AT_MOST)
    return 1, bound.value.data if isinstance(bound, IntegerAttr) else 1


def split_axis(type: Attribute, dim: str) -> int | None:
    """Return the sharded axis, None for an empty name."""
    return names_of(type).index(dim) if dim else None


def tensor_text(
    type: Attribute,
    *,
    terms: int = 1,
    split: int | None = None,
    between: tuple[int, int] = (1, 1),
    address: str | None = None,
    same_as: int | None = None,
    rounding: float | None = None,
) -> str:
    """Return the text of a `Tensor` of `comet.runtime`."""
    shape, dtype = shape_and_type(type)
    fields = [shape, f'"{dtype}"']
    fields += [f"terms={terms}"] if terms > 1 else []
    fields += [f"split={split}"] if split is not None else []
    fields += [f"at_least={between[0]}"] if between[0] != 1 else []
    fields += [f"at_most={between[1]}"] if between[1] != 1 else []
    fields += [f"address={address}"] if address is not None else []
    fields += [f"same_as={same_as}"] if same_as is not None else []
    fields += [f"rounding={rounding:.3g}"] if rounding is not None else []
    return f"Tensor({', '.join(fields)})"


def output_texts(
    plan: func.FuncOp, reference: func.FuncOp, axes: Sequence[int | None]
) -> list[str]:
    """Return the text of each result of a plan; `axes` are those that are sharded."""
    stored = tuple(plan.function_type.outputs)
    roundings = expected_roundings(reference, stored, narrow=stores_narrow(plan))
    return [
        tensor_text(type, split=axis, rounding=rounding)
        for type, axis, rounding in zip(stored, axes, roundings, strict=True)
    ]
