"""
The boundary of a function: the shardings of its arguments and results.

An argument or a result may have `collective.shard`, such as {K = ["rank"]}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.spmd import Sharding
from comet.dialects.compound.dims import names_of
from comet.dialects.errors import about
from comet.passes.sharding.shardings import SHARD, check_sharding, read_sharding

Attributes = ArrayAttr[DictionaryAttr]
"""The attributes of each argument, or of each result."""


@dataclass(frozen=True)
class Boundary:
    """The shardings of arguments and results, None if not annotated."""

    arguments: tuple[Sharding | None, ...]
    results: tuple[Sharding | None, ...]


def boundary_of(func: FuncOp) -> Boundary:
    """
    Return the shardings in the signature of a function.

    Raises PassFailedException if an annotation is not a sharding.
    """
    types, name = func.function_type, func.sym_name.data
    with about(func):
        return Boundary(
            tuple(_stated(func.arg_attrs, len(types.inputs), f"@{name} argument")),
            tuple(_stated(func.res_attrs, len(types.outputs), f"@{name} result")),
        )


def _stated(
    attributes: Attributes | None, count: int, what: str
) -> Iterator[Sharding | None]:
    """Yield the sharding of each of `count` values."""
    for index in range(count):
        if attributes is None or SHARD not in attributes.data[index].data:
            yield None
        else:
            attribute = attributes.data[index].data[SHARD]
            yield read_sharding(attribute, f"{what} {index}")


def says_sharding(func: FuncOp) -> bool:
    """Return whether an op, an argument or a result of a function is annotated."""
    boundary = boundary_of(func)
    return any((*boundary.arguments, *boundary.results)) or any(
        SHARD in op.attributes for op in func.body.block.ops
    )


def check_boundary(func: FuncOp, mesh: MeshOp, name: str) -> None:
    """
    Check that the shardings of the signature fit its values and the mesh.

    Raises PassFailedException if one does not; `name` is the name of the pass.
    """
    boundary, signature = boundary_of(func), func.function_type
    sides = (
        ("argument", signature.inputs, boundary.arguments),
        ("result", signature.outputs, boundary.results),
    )
    for side, types, shardings in sides:
        for index, (type_, sharding) in enumerate(zip(types, shardings, strict=True)):
            if sharding is not None:
                what = f"{name}: {side} {index} of @{func.sym_name.data}"
                with about(func):
                    check_sharding(sharding, names_of(type_), mesh, what)


def drop_boundary(func: FuncOp) -> None:
    """Remove the shardings from the signature of a function."""
    arguments, results = func.arg_attrs, func.res_attrs
    func.arg_attrs = None if arguments is None else _without_shard(arguments)
    func.res_attrs = None if results is None else _without_shard(results)


def drop_shardings(func: FuncOp) -> None:
    """Remove all shardings from a function."""
    drop_boundary(func)
    for op in func.walk():
        op.attributes.pop(SHARD, None)


def _without_shard(attributes: Attributes) -> Attributes | None:
    remaining = [_without_shard_entry(entry.data) for entry in attributes]
    return ArrayAttr(map(DictionaryAttr, remaining)) if any(remaining) else None


def _without_shard_entry(entry: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {name: value for name, value in entry.items() if name != SHARD}
