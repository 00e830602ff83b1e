"""
Prints the `comet` dialect as the text of the COMET files, one to one.

A writer decides nothing: the op has all that the file says. The text is block YAML
with lists on one line, keys in the order of the format's own examples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Operation

from comet.dialects.comet import (
    BindingOp,
    CollectiveOp,
    ConstantsOp,
    DeclareOp,
    MappingOp,
    OperationOp,
    ProblemOp,
    TileOp,
)
from comet.dialects.comet.attributes import (
    Sizes,
)
from comet.kinds import Access

_INDENT = "  "
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(("true", "false", "yes", "no", "on", "off", "null"))


def write_constants(op: ConstantsOp) -> str:
    """Return the text of the constants file."""
    if not op.values.data:
        return "const: {}\n"
    lines = ["const:"]
    for name, value in op.values.data.items():
        if isinstance(value, IntegerAttr):
            lines.append(f"{_INDENT}{_scalar(name)}: {value.value.data}")
        elif isinstance(value, StringAttr):
            lines.append(f"{_INDENT}{_scalar(name)}: {_scalar(value.data)}")
    return _text(lines)


def write_problem(op: ProblemOp) -> str:
    """Return the text of the problem file."""
    instance = op.instance.data
    lines = [
        "problem:",
        "  io:",
        f"    ins: {_joined(op.ins)}",
        f"    outs: {_joined(op.outs)}",
        f"  dimensions: {_list(dim for dim, _ in instance)}",
        "  instance:",
        *(f"    {_size_text(op, dim, size)}" for dim, size in instance),
        "  operations:",
    ]
    for declaration in op.declarations:
        lines.extend(_indented(_item(_declaration_lines(declaration)), 2))
    return _text(lines)


def _size_text(op: ProblemOp, dim: str, size: int) -> str:
    """Return a size, with a comment that gives the program's if it is padded."""
    true = op.true_sizes.get(dim)
    return f"{_scalar(dim)}: {size}" + (f"  # padded from {true}" if true else "")


def write_mapping(op: MappingOp) -> str:
    """Return the text of the mapping file."""
    return _text(["mapping:", *_indented(_node_lines(op.root), 1)])


def _declaration_lines(op: DeclareOp) -> list[str]:
    lines = [
        f"name: {_scalar(op.operation.data)}",
        f"ins: {_joined(op.ins)}",
        f"out: {_scalar(op.out.data)}",
        f"dimensions: {_names(op.dimensions)}",
        "tensors:",
    ]
    for access in op.accesses:
        lines.extend(_indented(_item(_access_lines(access)), 1))
    return lines


def _access_lines(access: Access) -> list[str]:
    axes = ", ".join(
        "[" + ", ".join(f"[{_scalar(dim)}]" for dim in axis) + "]"
        for axis in access.projection
    )
    lines = [f"name: {_scalar(access.tensor)}", f"projection: [{axes}]"]
    return [*lines, "read-write: true"] if access.read_write else lines


def _node_lines(op: Operation) -> list[str]:
    return _NODE_WRITERS[type(op)](op)


def _tile_lines(op: Operation) -> list[str]:
    assert isinstance(op, TileOp)
    entries = op.entries
    lines = [
        "node_type: DataMovement_Tile",
        f"type: {op.kind.data}",
        f"tensors: {_list(entry.tensor for entry in entries)}",
        f"tag: {_list(entry.tag for entry in entries)}",
        f"target: {_list(entry.target for entry in entries)}",
        f"child: {_list(entry.child for entry in entries)}",
        f"precision: [{', '.join(str(entry.precision) for entry in entries)}]",
        f"rmw: [{', '.join(_flag(entry.rmw) for entry in entries)}]",
        f"wb_output: [{', '.join(_flag(entry.wb_output) for entry in entries)}]",
        "factors:",
        *(f"  - {row}" for row in _factor_rows(op)),
        f"permutation: {_scalar(op.permutation.data)}",
        "subtree:",
    ]
    for child in op.body.block.ops:
        lines.extend(_indented(_item(_node_lines(child)), 1))
    return lines


def _factor_rows(op: TileOp) -> Iterator[str]:
    """Yield a string `M=[..] N=[..]` per row; the entries share their dimensions."""
    for index, first in enumerate(op.entries[0].factors):
        rows = [dict(entry.factors[index]) for entry in op.entries]
        yield " ".join(
            f"{dim}=[{','.join(str(row[dim]) for row in rows)}]" for dim, _ in first
        )


def _operation_lines(op: Operation) -> list[str]:
    assert isinstance(op, OperationOp)
    steps = op.steps.data
    lines = [
        "node_type: Operation",
        f"type: {op.kind.data}",
        f"name: {_scalar(op.operation.data)}",
        f"tensors: {_list(step.tensor for step in steps)}",
        f"TilePrimitive: {_sizes(op.primitive.data)}",
        "TileSteps:",
        *(f"  {_scalar(step.tensor)}: {_sizes(step.sizes)}" for step in steps),
    ]
    if op.compute is not None:
        compute = op.compute.data
        factors = ", ".join(str(size) for _, size in compute.reduction)
        lines += [
            "compute_attributes:",
            f"  reduction_dimensions: {_list(dim for dim, _ in compute.reduction)}",
            f"  reduction_factors: [{factors}]",
            f"  rmw: {_flag(compute.rmw)}",
            f"  specd: {_flag(compute.specd)}",
        ]
    if op.scale is not None:
        lines.append("Scale:")
        for tensor, scale in op.scale.data.items():
            assert isinstance(scale, StringAttr)
            lines.append(f"  {_scalar(tensor)}: {_scalar(scale.data)}")
    return lines


def _collective_lines(op: Operation) -> list[str]:
    assert isinstance(op, CollectiveOp)
    lines = [
        "node_type: CollectiveOperation",
        f"type: {op.kind.data}",
        f"tag: {_scalar(op.tag.data)}",
        f"target: {_scalar(op.target.data)}",
        f"child: {_scalar(op.target.data)}",
        f"src: {_names(op.src)}",
        f"dest: {_names(op.dest)}",
        f"in_tensor: {_scalar(op.in_tensor.data)}",
        f"out_tensor: {_scalar(op.out_tensor.data)}",
        f"precision: {op.bits}",
        f"wb_output: {_flag(op.wb_output is not None)}",
    ]
    if op.dimension is not None:
        lines.append(f"dimension: {_scalar(op.dimension.data)}")
    if op.reduction_op is not None:
        lines.append(f"reduction_op: {op.reduction_op.data}")
    if op.spatial_factor is not None:
        lines.append(f"spatial_factor: {op.spatial_factor.value.data}")
    return lines


def _binding_lines(op: Operation) -> list[str]:
    assert isinstance(op, BindingOp)
    return ["node_type: inter_tile_binding", f"binding: {op.kind.data}"]


_NODE_WRITERS: dict[type[Operation], Callable[[Operation], list[str]]] = {
    TileOp: _tile_lines,
    OperationOp: _operation_lines,
    CollectiveOp: _collective_lines,
    BindingOp: _binding_lines,
}


def _scalar(text: str) -> str:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _RESERVED
    return text if plain else json.dumps(text, ensure_ascii=False)


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(_scalar(text) for text in texts)}]"


def _names(names: ArrayAttr[StringAttr]) -> str:
    return _list(name.data for name in names)


def _joined(names: ArrayAttr[StringAttr]) -> str:
    """Join names with commas into one plain scalar, as the tool requires."""
    joined = ", ".join(name.data for name in names)
    return joined if len(names) > 1 else _scalar(joined)


def _sizes(sizes: Sizes) -> str:
    return " ".join(f"{dim}={size}" for dim, size in sizes)


def _flag(flag: bool) -> str:
    return "true" if flag else "false"


def _item(lines: list[str]) -> list[str]:
    """Turn the lines of a mapping into those of a list element."""
    return [f"- {lines[0]}", *(f"{_INDENT}{line}" for line in lines[1:])]


def _indented(lines: Iterable[str], depth: int) -> Iterator[str]:
    return (f"{_INDENT * depth}{line}" for line in lines)


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
