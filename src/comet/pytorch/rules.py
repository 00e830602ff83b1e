"""The rules by which ATen ops are translated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from torch import fx
from torch._ops import OpOverload

from comet.dialects.compound.dims import Element
from comet.pytorch.emitter import View

Number: TypeAlias = "float | bool"
Operand: TypeAlias = "View | Number"


@dataclass(frozen=True)
class Result:
    """What torch says of the first result of a node."""

    shape: tuple[int, ...]
    element: Element


Rule: TypeAlias = Callable[..., "View | tuple[View | None, ...]"]
"""
Takes the tracer, what torch says of the result, and the arguments of the op, under the
names that its schema has for them.
"""

RuleT = TypeVar("RuleT", bound=Rule)

RULES: dict[str, Rule] = {}
"""The rules by name, such as `aten.mm`; all overloads share one."""


def rule(*names: str) -> Callable[[RuleT], RuleT]:
    """Register a function as the rule of some ops."""

    def register(function: RuleT) -> RuleT:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def op_name(node: fx.Node) -> str:
    """Return the name of a node's op in the table of rules, without its overload."""
    target = cast("object", node.target)
    if isinstance(target, OpOverload):
        return target.name().partition(".")[0].replace("::", ".")
    return getattr(target, "__name__", str(target))
