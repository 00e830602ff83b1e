"""Tile trees of the named ops on accelerators, for the tests of the passes on them."""

from collections.abc import Sequence
from typing import TypeVar

from accelerators import attached
from programs import graph_text
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.passes.analysis.functions import compute_functions

OpT = TypeVar("OpT", bound=Operation)
SIZES = (6, 4, 32)
"""(M, K, N) of a tree where nothing else is said."""


def fused(
    strategy: str = "full",
    *,
    op: str = "gemm_softmax",
    sizes: Sequence[int] = SIZES,
    machine: int = 16,
    place: str = "",
) -> ModuleOp:
    """Return a named op as a tile tree without factors, N over all cores."""
    pipeline = (
        f"{attached(machine)},decompose{{accumulator=input}},"
        "distribute{dim=N axes=cx,cy,kx,ky},insert-collectives,"
        f"place-collectives{{{place}}},fuse{{strategy={strategy}}}"
    )
    return run_passes(parse_module(graph_text(op, sizes)), pipeline)


def only_function(module: ModuleOp) -> FuncOp:
    """Return the one function that is no reference."""
    (func,) = compute_functions(module)
    return func


def ops_of(module: ModuleOp, kind: type[OpT]) -> list[OpT]:
    """Return the ops of a class in the one function, in order."""
    return [op for op in only_function(module).walk() if isinstance(op, kind)]
