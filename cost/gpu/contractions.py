"""The contractions of a GPU kernel, and what formulas ask about all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from comet.cost.gpu.terms import Product, Term


@dataclass(frozen=True)
class Contraction:
    """A contraction inside loops of a program: its operations and its operands."""

    product: Product
    """The roles of its dimensions, and its loops."""
    operations: Term
    """Floating-point operations, where it is a dot."""
    result: tuple[str, ...]
    """The dimensions of its result."""
    reads: tuple[Term, Term]
    """Its operands, bytes of shared memory."""
    summed: bool
    """Whether it is added to the same accumulator as other contractions."""
    rate: str
    """The element type of its operands, by which its rate is found."""


@dataclass(frozen=True)
class Contractions:
    """
    All contractions of a kernel.

    Each is a dot of matrices where its batch dimensions have blocks of 1.
    """

    ops: tuple[Contraction, ...]
    """In the order of the program."""
    least_extent: int = 1
    """The least rows, columns and terms of a contraction in a program."""

    @cached_property
    def roles(self) -> tuple[Product, ...]:
        """The roles of the dimensions of each."""
        return tuple(each.product for each in self.ops)

    @cached_property
    def loops(self) -> frozenset[tuple[str, ...]]:
        """The loops around each."""
        return frozenset(dot.loops for dot in self.roles)

    @cached_property
    def operations(self) -> tuple[Term, ...]:
        """The floating-point operations of each."""
        return tuple(each.operations for each in self.ops)

    @cached_property
    def results(self) -> tuple[tuple[str, ...], ...]:
        """The dimensions of the result of each."""
        return tuple(each.result for each in self.ops)

    @cached_property
    def reads(self) -> tuple[Term, ...]:
        """The bytes that they read from shared memory."""
        return tuple(term for each in self.ops for term in each.reads)

    @cached_property
    def sums(self) -> tuple[Term, ...]:
        """The operands of those that are added to one accumulator, bytes."""
        summed = (each for each in self.ops if each.summed)
        return tuple(term for each in summed for term in each.reads)

    @cached_property
    def element(self) -> str:
        """The element type by which the rate is found: that of the last one."""
        return self.ops[-1].rate if self.ops else "f32"

    @cached_property
    def dims(self) -> frozenset[str]:
        """The dimensions of dots; their blocks have a minimum."""
        dots = self.roles
        dims = ((dot.rows | dot.columns | dot.summed) - dot.batch for dot in dots)
        return frozenset[str]().union(*dims)

    @cached_property
    def rows(self) -> frozenset[str]:
        """The dimensions of the left operands of dots that results keep."""
        return frozenset[str]().union(*(dot.rows - dot.batch for dot in self.roles))

    @cached_property
    def depths(self) -> frozenset[str]:
        """The dimensions that they sum over."""
        return frozenset[str]().union(*(dot.summed for dot in self.roles))

    @cached_property
    def batch(self) -> frozenset[str]:
        """The dimensions of which a dot takes one element: blocks of 1, or no dot."""
        return frozenset[str]().union(*(dot.batch for dot in self.roles))
