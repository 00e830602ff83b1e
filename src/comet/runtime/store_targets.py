"""
Finds the kernel parameters to whose memory the stores of Triton's IR go.

Pointers are followed from each store back to the parameters that they are computed
from, also where they are integers for a while, as addresses of other ranks are. What
is loaded points nowhere, and nor do the offsets that are added to a pointer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

PARAMETER = re.compile(r"%(\w+): !tt\.ptr")
VALUE = re.compile(r"%\w+(?:#\d+)?")
CARRIED = re.compile(r"(%\w+) = (%\w+(?:#\d+)?)")
RESULTS = re.compile(r"\s*(%\w+)(?::(\d+))? = (?:\"?)([\w.]+)")
STORE = re.compile(r"\s*tt\.store (%\w+(?:#\d+)?),")

NOWHERE = frozenset[str]()


@dataclass(frozen=True)
class Store:
    """A store to global memory."""

    parameters: frozenset[str]
    """The names of the parameters to whose memory it may go."""
    line: str
    """The text of the op."""


@dataclass
class _Pointers:
    """The parameters that values point to, by name."""

    to: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    around: list[list[str]] = field(default_factory=list[list[str]])
    """The results of the ops whose regions are open."""

    def of(self, text: str) -> frozenset[str]:
        """Return the parameters that any value of a text points to."""
        return NOWHERE.union(*(self.to.get(v, NOWHERE) for v in VALUE.findall(text)))

    def read(self, line: str) -> None:
        """Take in one line."""
        names: list[str] = []
        if (found := RESULTS.match(line)) is not None:
            name, count, op = found.groups()
            names = [f"{name}#{n}" for n in range(int(count))] if count else [name]
            operands = line[found.end() :]
            carried = CARRIED.findall(operands) if op == "scf.for" else []
            if carried:
                self._carry(names, carried[1:])  # the first one is the index
            else:
                self.to.update(dict.fromkeys(names, self._result(op, operands)))
        elif line.strip().startswith("scf.yield") and self.around:
            for result, value in zip(
                self.around[-1], VALUE.findall(line), strict=False
            ):
                self.to[result] = self.to.get(result, NOWHERE) | self.of(value)
        for _ in range(line.count("}") - line.count("{")):
            self.around.pop()
        self.around += [names] * (line.count("{") - line.count("}"))

    def _carry(self, names: list[str], carried: list[tuple[str, str]]) -> None:
        """Have a loop's arguments and results point where its initial values do."""
        for result, (argument, initial) in zip(names, carried, strict=True):
            self.to[result] = self.to[argument] = self.of(initial)

    def _result(self, op: str, operands: str) -> frozenset[str]:
        if op in ("tt.load", "tt.atomic_rmw", "tt.atomic_cas"):
            return NOWHERE
        return self.of(operands.partition(",")[0] if op == "tt.addptr" else operands)


def stores(ir: str) -> Iterator[Store]:
    """Yield the stores of a kernel in Triton's IR, in order, calls inlined."""
    pointers = _Pointers()
    for line in ir.splitlines():
        if line.lstrip().startswith("tt.func"):
            names = PARAMETER.findall(line)
            pointers.to = {f"%{name}": frozenset([name]) for name in names}
        elif (found := STORE.match(line)) is not None:
            yield Store(pointers.of(found[1]), line)
        pointers.read(line)
