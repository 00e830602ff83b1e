"""Tile trees of the named ops on accelerators, for the tests of the passes on them."""

from collections.abc import Sequence
from typing import TypeVar

from accelerators import attached
from programs import graph_text
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.schedule.node_names import node_kinds, node_level
from comet.passes.schedule.plan_string import (
    PlanEntry,
    cuttable,
    format_plan,
    parse_plan,
    plan_nodes,
)

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
    hardware: str = "",
) -> ModuleOp:
    """
    Return a named op as a tile tree without factors, N over all cores.

    `hardware` is the quoted path of another file than that of `machine`.
    """
    attach = f"attach-hardware{{path={hardware}}}" if hardware else attached(machine)
    pipeline = (
        f"{attach},decompose{{accumulator=input}},"
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


def plan_text(module: ModuleOp, **loops: str) -> str:
    """
    Return a plan with loops for the nodes of a level or, by kind, around an op.

    `DRAM="M=3", contract="K=2"` is for all nodes at DRAM and the innermost one around
    each contraction; what stands later wins. Dimensions that a node lacks are left out.
    """
    entries: list[PlanEntry] = []
    for name, node in plan_nodes(only_function(module)).items():
        inner = any(isinstance(op, NodeOp) for op in node.body.walk())
        keys = {node_level(node)} if inner else {node_level(node), *node_kinds(node)}
        chosen = [text for key, text in loops.items() if key in keys]
        for given in parse_plan(f"{name}: {chosen[-1]}") if chosen else ():
            known = tuple(each for each in given.numbers if each[0] in cuttable(node))
            entries.append(PlanEntry(name, known))
    return format_plan(entries)


def tiled(module: ModuleOp, **loops: str) -> ModuleOp:
    """Run `tile` on a module with the plan of `plan_text`."""
    return run_passes(module, f'tile{{factors="{plan_text(module, **loops)}"}}')
