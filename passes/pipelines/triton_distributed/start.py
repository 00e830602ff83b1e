"""Where a module starts in the pipeline: its level, its ranks, what may be asked."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

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
from comet.passes.analysis.named_numbers import named_number
from comet.passes.graph.split import SplitPass
from comet.passes.sharding.add_ctas import AXIS as CTAS
from comet.passes.sharding.boundary import says_sharding

NAME = "triton-distributed"
"""The name of the pipeline, for its errors."""


WORDS: Mapping[str, frozenset[str]] = {
    "merge": frozenset(("auto", "last", "launch")),
    "launches": frozenset(("auto", "none")),
    "share": frozenset(("auto", "all", "none")),
    "split": frozenset(("auto", "none")),
    "kind": frozenset(("auto", "allreduce")),
}
"""The values of options that are no request for certain kernels or parts."""


def check_requests(given: Mapping[str, str], ctas: int) -> None:
    """
    Raise PassFailedException for options that name what no pass would look at.

    `given` are values of the options of `WORDS`, which are for programs that are in no
    groups (`ctas` is 1).
    """
    asked = {name: value for name, value in given.items() if value not in WORDS[name]}
    for name, value in asked.items():
        reason = None
        if ctas > 1:
            reason = f"programs are in groups; use ctas=1, or leave {name} out"
        elif name == "share" and given["merge"] == "launch":
            reason = "merge=launch merges parts in a launch of its own; leave one out"
        if reason is not None:
            raise PassFailedException(
                f"the option '{name}' asks for {value}, and {reason}"
            )


def plan_start(module: ModuleOp, ranks: int) -> tuple[IRLevel, bool]:
    """
    Return the level of the functions of `module`, and whether they have shardings.

    Raises PassFailedException if one is written for another number of ranks, or if they
    are at different levels.
    """
    functions = tuple(compute_functions(module))
    for func in functions:
        check_blocks(func, NAME)
        region = spmd_region(func)
        if region is None:
            continue
        mesh = lookup_mesh(region, region.mesh)
        axes = [axis for axis in mesh.axis_extents if axis != CTAS]
        if (written := mesh.size(axes)) != ranks:
            raise OpError(
                func,
                f"{NAME}: @{func.sym_name.data} is written for {written} "
                f"ranks, not {ranks}; use ranks={written}",
            )
        if ranks > (available := prod(attached_system(module).axes.values())):
            raise OpError(
                func,
                f"{NAME}: @{func.sym_name.data} is written for {written} "
                f"ranks, and the hardware has {available}; attach hardware with more",
            )
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


def check_single(module: ModuleOp) -> None:
    """Raise PassFailedException if `module` has several functions: `tl` takes one."""
    for func in tuple(compute_functions(module))[1:]:
        raise OpError(
            func,
            f"{NAME}: @{func.sym_name.data} is the second function of the module, and "
            "a Triton program is one function; keep one, or use to=dataflow",
        )


def parse_splits(text: str) -> tuple[SplitPass, ...]:
    """
    Return the splits in `text`, such as S=64, or D=4: q k; F=8: down.

    Raises PassFailedException if it has another form.
    """
    return tuple(map(_parse_split, text.split(";")))


def _parse_split(text: str) -> SplitPass:
    """Return the split of a dimension, or of the products that follow a colon."""
    what, _, products = text.partition(":")
    found = named_number(what)
    if found is None:
        raise PassFailedException(
            "the option 'split' is DIM=PARTS, such as S=64, or D=4: q k for products, "
            f"none or auto, not '{text}'"
        )
    names = " ".join(name.removeprefix("%") for name in products.split())
    return SplitPass(*found, names or None)
