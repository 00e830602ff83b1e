"""
The sharding annotations between `distribute` and `insert-collectives`.

An elementary op has `collective.shard = {N = ["cx", "cy"]}`, its function the mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import PassFailedException, VerifyException

from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.spmd import (
    Sharding,
    SpmdOp,
    sharding_attr,
    sharding_of,
)
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    ExtentOp,
    FillOp,
    FoldOp,
    IndexOp,
    MapOp,
    PadOp,
    ReduceOp,
    ScatterAddOp,
    View,
)
from comet.dialects.compound.dims import iteration_dims, names_of
from comet.dialects.errors import about
from comet.passes.analysis.dependence import is_constant
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.padding import is_border

SHARD = "collective.shard"
"""The sharding of an op's iterations, or of an argument or result of a function."""
MESH = "collective.on"
"""The mesh of the shardings in a function."""

ITERATING = (
    *(CastOp, ContractOp, ExtentOp, FoldOp, MapOp, PadOp, ReduceOp),
    ScatterAddOp,
)
"""The ops that compute; fill and rename follow the ops around them."""


def shardable_dims(op: Operation) -> tuple[str, ...]:
    """Return the dimensions that an op can be sharded in: it iterates over them."""
    if isinstance(op, ScatterAddOp):  # ids name any position of the result
        return names_of(op.values)
    shardable = isinstance(op, ITERATING) and not is_border(op)
    return iteration_dims(op) if shardable else ()


def computes(module: ModuleOp) -> bool:
    """Return whether an op of a function that is no reference can be sharded."""
    ops = (op for func in compute_functions(module) for op in func.body.block.ops)
    return any(map(shardable_dims, ops))


def follows_readers(op: Operation) -> bool:
    """
    Return whether `op` takes the shardings that its users need.

    It is copied to each reader, or stays outside of the region.
    """
    follows = isinstance(op, FillOp | IndexOp | View) or is_border(op)
    return follows or any(map(is_constant, op.results))


def part_dim(axes: Sequence[str]) -> str:
    """Return the name of a new dimension with one element per instance of a group."""
    return "_".join((*axes, "part"))


def sharding_of_op(op: Operation) -> Sharding:
    """
    Return the sharding that an op is annotated with, empty without annotation.

    Raises PassFailedException if the annotation is not a sharding.
    """
    if (attribute := op.attributes.get(SHARD)) is None:
        return {}
    with about(op):
        return read_sharding(attribute, f"'{op.name}' op")


def read_sharding(attribute: Attribute, where: str) -> Sharding:
    """
    Return the sharding in an attribute.

    Raises PassFailedException for other attributes; `where` begins the message.
    """
    try:
        return sharding_of(attribute)
    except VerifyException as error:
        raise PassFailedException(f"{where} {SHARD}: {error}") from error


def shard_op(op: Operation, sharding: Sharding) -> None:
    """Annotate an elementary op with the part of a sharding for its dimensions."""
    dims = shardable_dims(op)
    if split := {dim: axes for dim, axes in sharding.items() if dim in dims}:
        op.attributes[SHARD] = sharding_attr({**sharding_of_op(op), **split})


def check_sharding(
    sharding: Sharding, dims: Sequence[str], mesh: MeshOp, what: str
) -> None:
    """
    Check that a sharding splits some of `dims`, over distinct axes of `mesh`.

    Raises PassFailedException otherwise; `what` begins the message.
    """
    for dim in sharding.keys() - set(dims):
        raise PassFailedException(
            f"{what} is sharded in {dim}, which it does not have; its dimensions are "
            f"{', '.join(dims)}"
        )
    axes = [axis for names in sharding.values() for axis in names]
    if axes and (fault := mesh.fault(axes)):
        raise PassFailedException(f"{what} has a wrong sharding: {fault}")


def mesh_of(func: FuncOp, module: ModuleOp, pass_name: str) -> MeshOp:
    """
    Return the mesh of the shardings in a function.

    Raises PassFailedException if there is none, or more than one to choose from.
    """
    symbol = func.attributes.get(MESH)
    named = symbol.string_value() if isinstance(symbol, SymbolRefAttr) else None
    with about(func):
        return select_mesh(pass_name, module, named)


def user_of(mesh: MeshOp, module: ModuleOp) -> SpmdOp | CollectiveOp | None:
    """Return the first op that is written for a mesh, None if it is not in use."""
    ops = (op for op in module.walk() if isinstance(op, SpmdOp | CollectiveOp))
    name = mesh.sym_name.data
    return next((op for op in ops if op.mesh.string_value() == name), None)


MeshOption: TypeAlias = Annotated[
    str | None, "The mesh, without `@`; the only one of the module if unset."
]
"""The option `mesh` of passes, with what it means."""


def select_mesh(pass_name: str, module: ModuleOp, name: str | None) -> MeshOp:
    """
    Return the mesh called `name`, or the only one of the module.

    Raises PassFailedException if there is none, or more than one to choose from.
    """
    meshes = [op for op in module.body.block.ops if isinstance(op, MeshOp)]
    names = [mesh.sym_name.data for mesh in meshes]
    if name is not None:
        meshes = [mesh for mesh in meshes if mesh.sym_name.data == name]
        if not meshes:
            raise PassFailedException(
                f"{pass_name}: there is no mesh @{name}; the module has "
                f"{', '.join(names) or 'none'}"
            )
    if not meshes:
        raise PassFailedException(
            f"{pass_name}: the module has no mesh; run attach-hardware, or write "
            "collective.mesh @NAME {axis = extent}"
        )
    if len(meshes) > 1:
        raise PassFailedException(
            f"{pass_name}: the module has the meshes {', '.join(names)}; choose one "
            "with mesh=NAME"
        )
    return meshes[0]
