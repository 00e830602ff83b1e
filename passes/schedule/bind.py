"""The `bind` pass: when the siblings of a node run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal, Self, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.collective import CollectiveOp
from comet.dialects.errors import OpError, called
from comet.dialects.schedule.attributes import (
    BIND,
    BindingAttr,
    BindingKind,
    binding_of,
)
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import IRLevel
from comet.passes.analysis.op_groups import defining_ops
from comet.passes.annotate_cost.accelerator import lowered_copy, total_figures
from comet.passes.comet.lower_to_comet.legality import check_legality
from comet.passes.function_pass import FunctionPass
from comet.passes.pipeline import ChoosingPass
from comet.passes.search import Candidate, Found, Goal, cheapest, cost_of
from comet.passes.search.goal import ChoosesByGoal, ModelOption, ObjectiveOption

KINDS = (BindingKind.SEQUENTIAL, BindingKind.PIPELINE, BindingKind.PARALLEL)
"""The candidates of `auto`; of equal ones the first is taken."""

Kinds: TypeAlias = tuple[BindingKind, ...]
"""The kinds of the siblings in one body: one for all, or one for each but the last."""

SEQUENTIAL: Kinds = (BindingKind.SEQUENTIAL,)


@dataclass(frozen=True)
class BindPass(ChoosingPass, FunctionPass, ChoosesByGoal):
    """
    Bind every node and collective to its next sibling.

    Before: a tile tree. After: the same with a `schedule.bind` on all but the last
    sibling of each body. With `parallel`, no sibling may use a result of the one before
    it. Rejects a function at another level; `auto` needs an accelerator's hardware.
    """

    name = "bind"

    LEVELS = (IRLevel.SCHEDULE,)

    kind: Literal["sequential", "pipeline", "parallel", "auto"] = "sequential"
    """
    One after the other, overlapped from tile to tile, or at the same time; or for each
    body the cheapest of these.
    """

    bodies: str | None = None
    """
    Other kinds for the children of some nodes, as in "p_gb: pipeline; @f: parallel",
    where @f is the body of the function; not with `kind=auto`. Several kinds, as in
    "p_gb: pipeline sequential", bind each child to the next one by a kind of its own.
    """

    model: ModelOption = "paper"

    objective: ObjectiveOption = "latency"

    def __post_init__(self) -> None:
        """Check the text of the kinds."""
        if self.bodies is not None:
            if self.kind == "auto":
                raise PassFailedException(
                    "bind: kind=auto chooses for all bodies; leave `bodies` out, or "
                    "give another kind"
                )
            parse_bodies(self.bodies)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        if self.kind == "auto":
            bind_by_cost(function, attached_system(module), self.goal)
        else:
            bodies = parse_bodies(self.bodies or "")
            bind_bodies(function, bodies, BindingKind(self.kind))

    def settled(self, module: ModuleOp) -> Self:
        """Return the pass with the kinds of all bindings."""
        functions = list(compute_functions(module))
        if self.kind != "auto" or len(functions) != 1:
            return self
        kinds = kinds_of(functions[0])
        if len(found := set(kinds.values())) == 1 and len(first := found.pop()) == 1:
            return replace(self, kind=str(first[0]))
        if not kinds:
            return self
        bodies = format_bodies(kinds) or None
        return replace(self, kind=str(BindingKind.SEQUENTIAL), bodies=bodies)


def parse_bodies(text: str) -> dict[str, Kinds]:
    """Parse the option `bodies`; raises PassFailedException for another form."""
    kinds = {str(kind): kind for kind in KINDS}
    found: dict[str, Kinds] = {}
    for entry in filter(None, map(str.strip, text.split(";"))):
        name, _, rest = (part.strip() for part in entry.partition(":"))
        words = rest.split()
        if not words or not set(words) <= set(kinds) or name in found:
            raise PassFailedException(
                f"bind: '{entry}' in `bodies` is not of the form NODE: KIND with one "
                f"of {', '.join(kinds)}, each node once"
            )
        found[name] = tuple(kinds[kind] for kind in words)
    return found


def format_bodies(kinds: Mapping[str, Kinds]) -> str:
    """Return kinds as the option `bodies`, without sequential bodies."""
    return "; ".join(
        f"{name}: {' '.join(body_kinds)}"
        for name, body_kinds in kinds.items()
        if body_kinds != SEQUENTIAL
    )


def bodies_of(func: FuncOp) -> list[tuple[str, Block]]:
    """Return the bodies with several siblings: the names of their nodes, and blocks."""
    nodes = [op for op in func.walk() if isinstance(op, NodeOp)]
    named = [(f"@{func.sym_name.data}", func.body.block)]
    named += [(node.node_name or "", node.body.block) for node in nodes]
    return [(name, block) for name, block in named if len(siblings_in(block)) > 1]


def kinds_of(func: FuncOp) -> dict[str, Kinds]:
    """Return the kinds of each body, by the name of its node; equal kinds as one."""
    found: dict[str, Kinds] = {}
    for name, block in bodies_of(func):
        kinds = tuple(map(binding_of, siblings_in(block)[:-1]))
        found[name] = kinds[:1] if len({*kinds}) == 1 else kinds
    return found


def bind_bodies(func: FuncOp, kinds: Mapping[str, Kinds], rest: BindingKind) -> None:
    """
    Bind the siblings of all bodies by `kinds`, those of other bodies by `rest`.

    Raises PassFailedException for a name of no body with siblings, for a wrong number
    of kinds, and for siblings that cannot run in parallel.
    """
    bodies = bodies_of(func)
    names = [name for name, _ in bodies]
    for name in kinds:
        if name not in names:
            raise OpError(
                func,
                f"bind: '{name}' in `bodies` names no node with several children; "
                f"there are {', '.join(names) or 'none'}",
            )
    for name, block in bodies:
        _bind_block(block, kinds.get(name, (rest,)))


def _bind_block(block: Block, kinds: Kinds) -> None:
    """Bind the siblings of a block; raises as `bound_siblings`."""
    for sibling, kind in bound_siblings(block, kinds):
        sibling.attributes[BIND] = BindingAttr(kind)


def bind_by_cost(func: FuncOp, system: SystemOp, goal: Goal) -> None:
    """
    Bind the siblings of each body by the kind that makes `func` cheapest.

    Bodies are decided one after the other, outermost first; the others are sequential
    at first. A kind is rejected if `lower-to-comet` or the COMET tool rejects its
    files, for example for capacity. If all are rejected, siblings stay sequential.
    """
    several = [block for _, block in bodies_of(func)]

    @cache
    def price(kinds: tuple[BindingKind, ...]) -> Found[tuple[BindingKind, ...]]:
        for block, kind in zip(several, kinds, strict=True):
            _bind_block(block, (kind,))
        return _price(func, system, goal, kinds)

    best = (BindingKind.SEQUENTIAL,) * len(several)
    for index, block in enumerate(several):
        options = [(*best[:index], kind, *best[index + 1 :]) for kind in KINDS]
        candidates = [
            Candidate(str(kinds[index]), partial(price, kinds)) for kinds in options
        ]
        with suppress(PassFailedException):
            best = cheapest("bind", _described(block), candidates, goal).result
    for block, kind in zip(several, best, strict=True):
        _bind_block(block, (kind,))


def _price(
    func: FuncOp, system: SystemOp, goal: Goal, kinds: tuple[BindingKind, ...]
) -> Found[tuple[BindingKind, ...]]:
    """Price `func` with its bindings, which are `kinds`; raises if not legal."""
    files = lowered_copy(func, system, absorb=True)
    check_legality(files)
    estimate_module(files, "tool")
    estimate = estimate_module(files, goal.model)
    return Found(kinds, cost_of(estimate), total_figures(estimate).limit)


def _described(block: Block) -> str:
    """Return a description of the op with the body `block`, by its results."""
    op = block.parent_op()
    if op is None or isinstance(op, FuncOp):
        return "the function"
    results = ", ".join(map(called, op.results))
    return f"the node that makes {results}"


def siblings_in(block: Block) -> list[Operation]:
    """Return the nodes and collectives in `block`, in order."""
    return [op for op in block.ops if isinstance(op, NodeOp | CollectiveOp)]


def can_bind(block: Block, kinds: Kinds) -> bool:
    """Return whether the siblings in `block` can be bound by these kinds."""
    try:
        bound_siblings(block, kinds)
    except PassFailedException:
        return False
    return True


def bound_siblings(block: Block, kinds: Kinds) -> list[tuple[Operation, BindingKind]]:
    """
    Return all siblings in `block` but the last, each with the kind to bind it by.

    Raises PassFailedException for a wrong number of kinds, and for siblings that cannot
    run in parallel.
    """
    siblings = siblings_in(block)
    count = len(siblings) - 1
    every = kinds * count if len(kinds) == 1 else kinds
    if len(every) != count:
        raise PassFailedException(
            f"bind: {len(kinds)} kinds in `bodies` bind {len(siblings)} children; give "
            f"one for all, or {count}"
        )
    for place, kind in enumerate(every, start=1):
        if kind is BindingKind.PARALLEL:
            _check_parallel(siblings[:place], siblings[place:])
    return list(zip(siblings, every, strict=False))


def _check_parallel(before: Sequence[Operation], after: Sequence[Operation]) -> None:
    """
    Raise PassFailedException if siblings depend on siblings before them.

    They may do so through ops between siblings, such as casts.
    """
    for op in after:
        block = op.parent_block()
        needed = defining_ops(op.operands, set(block.ops if block else ()))
        for producer in before:
            if producer in needed:
                raise OpError(
                    op,
                    f"bind: {op.name} uses what the {producer.name} before it makes; "
                    "they cannot run in parallel, take kind=pipeline or "
                    "kind=sequential",
                )
