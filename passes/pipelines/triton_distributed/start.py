"""The start of a module in the pipeline: its level and its ranks, which are checked."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from comet.dialects.arch import attached_system
from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.errors import OpError
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import (
    IRLevel,
    check_blocks,
    level_of_function,
    spmd_region,
)
from comet.passes.sharding.add_ctas import AXIS as CTAS
from comet.passes.sharding.boundary import says_sharding
from comet.passes.triton.lower_to_triton.kernel import ELEMENTS, WRITABLE

NAME = "triton-distributed"
"""The name of the pipeline, for its errors."""


def plan_start(module: ModuleOp, ranks: int) -> tuple[IRLevel, bool]:
    """
    Return the level of the functions of `module`, and whether they have shardings.

    Raises PassFailedException if one is written for another number of ranks, or is at
    the last level, or if they are at different levels.
    """
    functions = tuple(compute_functions(module))
    for func in functions:
        check_blocks(func, NAME)
        _check_start(func, ranks, prod(attached_system(module).axes.values()))
    levels = dict.fromkeys(level_of_function(func) for func in functions)
    found = [level for level in levels if level is not None]
    if len(found) > 1:
        raise OpError(
            functions[-1],
            f"{NAME}: functions are at the {' and '.join(found)} levels; "
            "bring all of them to one first",
        )
    is_sharded = any(says_sharding(func) for func in functions)
    return (found[0] if found else IRLevel.GRAPH), is_sharded


def _check_start(func: FuncOp, ranks: int, available: int) -> None:
    """Raise PassFailedException for a function that was lowered for other ranks."""
    name, level = func.sym_name.data, level_of_function(func)
    if level is IRLevel.TARGET:
        raise OpError(
            func, f"{NAME}: @{name} is at the level tl already; print it by -t triton"
        )
    region = spmd_region(func)
    if region is None and level in (None, IRLevel.GRAPH, IRLevel.ELEMENTARY):
        return
    written = 1
    if region is not None:
        mesh = lookup_mesh(region, region.mesh)
        written = mesh.size([axis for axis in mesh.axis_extents if axis != CTAS])
    if written != ranks:
        of_ranks = "1 rank" if written == 1 else f"{written} ranks"
        raise OpError(
            func,
            f"{NAME}: @{name} is written for {of_ranks}, not {ranks}; use "
            f"ranks={written}",
        )
    if ranks > available:
        raise OpError(
            func,
            f"{NAME}: @{name} is written for {written} ranks, and the hardware has "
            f"{available}; attach hardware with more",
        )


def check_single(module: ModuleOp) -> None:
    """Raise PassFailedException if `module` has several functions: `tl` takes one."""
    for func in tuple(compute_functions(module))[1:]:
        raise OpError(
            func,
            f"{NAME}: @{func.sym_name.data} is the second function of the module, and "
            "a Triton program is one function; keep one, or use to=dataflow",
        )


def check_elements(module: ModuleOp) -> None:
    """
    Raise PassFailedException for elements that no Triton kernel takes.

    `lower-to-triton` would reject them, too, but only after the search.
    """
    for func in compute_functions(module):
        _check_elements(func, func.args)
        for op in func.walk():
            _check_elements(op, op.results)


def _check_elements(op: Operation, values: Sequence[SSAValue]) -> None:
    for value in values:
        if not isinstance(value.type, TensorType):
            continue
        element = cast("TensorType[Attribute]", value.type).element_type
        if element not in WRITABLE:
            raise OpError(
                op,
                f"{NAME}: {ELEMENTS}, not {element}; take one of these, or use "
                "to=dataflow, which only prices kernels",
            )
