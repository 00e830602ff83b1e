"""Backward graphs: reverse-mode differentiation of functions of elementary ops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import pi, sqrt
from typing import TypeAlias

from graph_text import Node, Program

Rule: TypeAlias = Callable[["Backward", Node, str], Mapping[str, str]]
"""Returns the gradients of the inputs of an op, given that of its result."""


def backward(
    forward: Program, result: str, saved: Iterable[str], wrt: Iterable[str]
) -> tuple[Program, tuple[str, ...]]:
    """
    Return a program that computes gradients, and their names.

    Its arguments are what it needs of the arguments of `forward` and of the values in
    `saved`, and the gradient of `result`, as it needs them; all else is recomputed. The
    gradients are those of `wrt`, arguments of `forward`.
    """
    made = Backward(forward, frozenset(saved), frozenset(wrt))
    return made.program, made.gradients(result)


class Backward:
    """A backward graph, which grows from the last op of the forward graph on."""

    def __init__(self, forward: Program, saved: frozenset[str], wrt: frozenset[str]):
        self._forward, self._saved, self._wrt = forward, saved, wrt
        self.program = Program(forward.sizes, *forward.elements)
        self._nodes = {node.name: node for node in forward.nodes}
        self._active = set(wrt)
        """Values that depend on what gradients are asked of."""
        for node in forward.nodes:
            if self._active.intersection(node.inputs):
                self._active.add(node.name)
        self._parts: dict[str, list[str]] = {}
        """The gradients of values through each of their uses."""
        self._count = 0

    def gradients(self, result: str) -> tuple[str, ...]:
        """Add all ops, and return the gradients in the order of the arguments."""
        first = self.program.argument(f"d_{result}", self._forward.dims(result))
        self._parts[result] = [first]
        for node in reversed(self._forward.nodes):
            if node.name in self._parts:
                parts = RULES[self._kind(node)](self, node, self._sum(node.name))
                for value, part in parts.items():
                    self._parts.setdefault(value, []).append(part)
        found = (name for name in self._forward.arguments if name in self._wrt)
        return tuple(self._sum(name) for name in found)

    @staticmethod
    def _kind(node: Node) -> str:
        name, *rest = node.text.split()
        return rest[0] if name == "map" else " ".join((name, *rest))

    def _sum(self, value: str) -> str:
        """Return the gradient of a value: the sum over its uses."""
        first, *others = self._parts[value]
        for other in others:
            first = self.program.map(self.new(f"d_{value}"), "add", first, other)
        return first

    def active(self, value: str) -> bool:
        """Return whether a gradient of a value is needed."""
        return value in self._active

    def new(self, name: str) -> str:
        """Return a name that no value has."""
        self._count += 1
        return f"{name}_{self._count}"

    def value(self, name: str) -> str:
        """Return a value of the forward graph: an argument, or computed again."""
        if name in self.program.values:
            return name
        if name in self._saved or name in self._forward.arguments:
            return self.program.argument(name, self._forward.dims(name))
        node = self._nodes[name]
        inputs = tuple(map(self.value, node.inputs))
        return self.program.add(name, node.text, inputs, node.dims)

    def dims(self, value: str) -> tuple[str, ...]:
        """Return the dimensions of a value of the forward graph."""
        return self._forward.dims(value)

    def map(self, kind: str, *inputs: str) -> str:
        """Compute elementwise under a new name."""
        return self.program.map(self.new(kind), kind, *inputs)

    def number(self, value: float) -> str:
        """Add a number."""
        return self.program.fill(self.new("n"), value)

    def onto(self, value: str, gradient: str) -> str:
        """Return a gradient summed over the dimensions that `value` does not have."""
        p, kept = self.program, self._forward.dims(value)
        if extra := [dim for dim in p.dims(gradient) if dim not in kept]:
            return p.reduce(self.new(f"d_{value}"), "add", gradient, extra)
        return gradient


def _of_sum(sign: str) -> Rule:
    def rule(b: Backward, node: Node, g: str) -> Mapping[str, str]:
        lhs, rhs = node.inputs
        found = {lhs: b.onto(lhs, g)} if b.active(lhs) else {}
        if b.active(rhs):
            other = b.onto(rhs, g)
            found[rhs] = b.map("neg", other) if sign == "-" else other
        return found

    return rule


def _mult(b: Backward, node: Node, g: str) -> Mapping[str, str]:
    lhs, rhs = node.inputs
    if lhs == rhs:
        two = b.map("mult", b.value(lhs), b.number(2.0))
        return {lhs: b.map("mult", g, two)}
    found: dict[str, str] = {}
    for value, other in ((lhs, rhs), (rhs, lhs)):
        if b.active(value):
            found[value] = b.onto(value, b.map("mult", g, b.value(other)))
    return found


def _div(b: Backward, node: Node, g: str) -> Mapping[str, str]:
    above, below = node.inputs
    quotient = b.map("div", g, b.value(below))
    found = {above: b.onto(above, quotient)} if b.active(above) else {}
    if b.active(below):
        part = b.map("neg", b.map("mult", quotient, b.value(node.name)))
        found[below] = b.onto(below, part)
    return found


def _by(derivative: Callable[[Backward, str, str], str]) -> Rule:
    """Return the rule of a map y of one operand x, from its derivative."""

    def rule(b: Backward, node: Node, g: str) -> Mapping[str, str]:
        (x,) = node.inputs
        return {x: b.map("mult", g, derivative(b, x, node.name))}

    return rule


def _of_exp(b: Backward, x: str, y: str) -> str:
    return b.value(y)


def _of_rsqrt(b: Backward, x: str, y: str) -> str:
    root = b.value(y)
    cube = b.map("mult", b.map("mult", root, root), root)
    return b.map("mult", cube, b.number(-0.5))


def _of_tanh(b: Backward, x: str, y: str) -> str:
    value = b.value(y)
    return b.map("sub", b.number(1.0), b.map("mult", value, value))


def _of_erf(b: Backward, x: str, y: str) -> str:
    value = b.value(x)
    bell = b.map("exp", b.map("neg", b.map("mult", value, value)))
    return b.map("mult", bell, b.number(2 / sqrt(pi)))


def _select(b: Backward, node: Node, g: str) -> Mapping[str, str]:
    condition, then, otherwise = node.inputs
    found: dict[str, str] = {}
    for value in (then, otherwise):
        if b.active(value):
            cases = (g, b.number(0.0)) if value == then else (b.number(0.0), g)
            found[value] = b.onto(value, b.map("select", b.value(condition), *cases))
    return found


def _neg(b: Backward, node: Node, g: str) -> Mapping[str, str]:
    return {node.inputs[0]: b.map("neg", g)}


def _reduce_add(b: Backward, node: Node, g: str) -> Mapping[str, str]:
    return {node.inputs[0]: g}


def _reduce_max(b: Backward, node: Node, g: str) -> Mapping[str, str]:
    """Softmax is the same whatever is subtracted, so its maximum is a constant."""
    return {}


def _contract(b: Backward, node: Node, g: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    lhs, rhs = node.inputs
    for value, other in ((lhs, rhs), (rhs, lhs)):
        if b.active(value):
            name, dims = b.new(f"d_{value}"), b.dims(value)
            found[value] = b.program.contract(name, g, b.value(other), dims)
    return found


def _rename(b: Backward, node: Node, g: str) -> Mapping[str, str]:
    (value,) = node.inputs
    names = dict(zip(node.dims, b.dims(value), strict=True))
    dims = [names[dim] for dim in b.program.dims(g)]
    return {value: b.program.rename(b.new(f"d_{value}"), g, dims)}


RULES: Mapping[str, Rule] = {
    "add": _of_sum("+"),
    "sub": _of_sum("-"),
    "mult": _mult,
    "div": _div,
    "exp": _by(_of_exp),
    "rsqrt": _by(_of_rsqrt),
    "tanh": _by(_of_tanh),
    "erf": _by(_of_erf),
    "neg": _neg,
    "select": _select,
    "reduce add": _reduce_add,
    "reduce max": _reduce_max,
    "contract": _contract,
    "rename": _rename,
}
