"""Records what computes: elementwise ops, reductions, products, on torch tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import IntegerType, f32, i1, i32

from comet.dialects.compound.dims import Element
from comet.dialects.compound.elementary import ReduceKind, is_integer
from comet.dialects.compound.map import COMPARISONS, MapKind, is_defined_on
from comet.pytorch.dims import (
    Axis,
    Dim,
    Groups,
    cut_alike,
    dims_of,
    elements,
    leaves,
    like_axis,
    new_axis,
    replaced,
    sizes_of,
)
from comet.pytorch.emitter import Op, Tensor, View
from comet.pytorch.ops import (
    Cast,
    Contract,
    Fill,
    Index,
    Map,
    Positions,
    Reduce,
    Rename,
)
from comet.pytorch.ranks import Ranks


class UnsupportedError(Exception):
    """A node that has no translation; the message says what of it has none."""


def stored_in(*views: View) -> set[Dim]:
    """Return the dimensions that the values of views have."""
    return {dim for view in views for dim in leaves(view.tensor.dims)}


class Arithmetic:
    """A graph that is being traced, with the ops that compute."""

    def __init__(self) -> None:
        self._groups = Groups()
        self.ranks = Ranks()
        self.parts: dict[tuple[View, ...], tuple[View, int]] = {}
        """Of equal parts that were one view: the view, and the axis that was split."""

    def argument(
        self,
        shape: Sequence[int],
        order: Sequence[int],
        element: Element,
        sharded: int | None = None,
    ) -> View:
        """
        Return an argument whose axes lie in memory in `order`, outermost first.

        The axis `sharded` is the one of which each rank has a part, if there is one.
        """
        axes = tuple(map(new_axis, shape))
        of_ranks = {sharded: (self.ranks.dim,)}
        cut = (dim for each in order for dim in of_ranks.get(each, ()) + axes[each])
        dims = tuple(cut) if axes else of_ranks.get(0, ())
        return self.view(Tensor(dims, element), axes)

    def view(self, tensor: Tensor, axes: Sequence[Axis]) -> View:
        """Return a tensor with these axes, whose dimensions stay different."""
        view = View(tensor, tuple(axes))
        self._groups.add(view.dims)
        return view

    def _computed(
        self, op: Op, element: Element, axes: Sequence[Axis], *operands: View
    ) -> View:
        """Return the result of an op: it has the dimensions that an operand has."""
        stored = stored_in(*operands)
        dims = tuple(dim for dim in dims_of(axes) if dim in stored)
        dims = self.ranks.among(dims, *(view.tensor for view in operands))
        return self.view(Tensor(dims, element, op), axes)

    # Numbers and positions.

    def full(self, shape: Sequence[int], number: float, element: Element) -> View:
        """Return a tensor with one number everywhere; of conditions 0 is false."""
        if element == i1:
            number = bool(number)
        elif isinstance(element, IntegerType) and not (
            float(number) == number and is_integer(float(number), element)
        ):  # A program keeps its numbers in f64.
            raise UnsupportedError(f"{number} in {element}")
        return self.view(Tensor((), element, Fill(number)), [*map(new_axis, shape)])

    def positions(self, extent: int, element: Element) -> View:
        """Return 0, 1, 2 and so on."""
        if extent == 1:
            return self.full((1,), 0, element)
        (dim,) = axis = (Dim(extent),)
        return self.view(Tensor(axis, element, Index(dim)), [axis])

    def positions_in(self, shape: Sequence[int], element: Element) -> View:
        """Return the positions in a tensor: 0, 1, 2 and so on in the order of axes."""
        axes = [*map(new_axis, shape)]
        if not (dims := dims_of(axes)):
            return self.full(shape, 0, element)
        return self.view(Tensor(dims, element, Positions(dims)), axes)

    # Elementwise functions.

    def map(self, kind: MapKind, *operands: View | float) -> View:
        """
        Return an elementwise function of operands of one type, numbers among them.

        Shapes are broadcast as torch does: axes are aligned at the last one.
        """
        element = next(v.tensor.element for v in operands[::-1] if isinstance(v, View))
        if not is_defined_on(kind, element):
            raise UnsupportedError(f"{kind} of {element}")
        views = self._aligned([self._number(v, element) for v in operands])
        rank = max(len(view.axes) for view in views)
        axes = [_axis(views, index) for index in range(-rank, 0)]
        op = Map(kind, tuple(view.tensor for view in views))
        result = i1 if kind in COMPARISONS else element
        result = f32 if kind is MapKind.RANDOM else result
        return self._computed(op, result, axes, *views)

    def _number(self, value: View | float, element: Element) -> View:
        return value if isinstance(value, View) else self.full((), value, element)

    def cast(self, view: View, element: Element) -> View:
        """Return a tensor in another element type, a number."""
        if view.tensor.element == element:
            return view
        tensor = Tensor(view.tensor.dims, element, Cast(view.tensor))
        return self.view(tensor, view.axes)

    def convert(self, view: View, element: Element) -> View:
        """Return a tensor in another element type, numbers or conditions."""
        if element == i1 and view.tensor.element != i1:
            return self.negated(self.map(MapKind.EQ, view, 0.0))
        return self.cast(view, element)

    def negated(self, condition: View) -> View:
        """Return where a condition does not hold."""
        no = self.full((), 0, i1)
        return self.map(MapKind.SELECT, condition, no, 1)

    def _aligned(self, views: Sequence[View]) -> list[View]:
        """Return views whose axes are the same where they have several elements."""
        done: list[View] = []
        for view in views:
            indices = range(-len(view.axes), 0)
            known = {index: _axis(done, index) for index in indices if view.axes[index]}
            wanted = {index: axis for index, axis in known.items() if axis}
            others = (dim for each in done for dim in each.dims)
            done.append(self.unified(view, wanted, others))
        return done

    def unified(
        self, view: View, wanted: Mapping[int, Axis], apart: Iterable[Dim] = ()
    ) -> View:
        """
        Return a view some of whose axes are others of the same extents.

        Their dimensions become the same; the view is renamed where a tensor has both.
        Its other axes have none of these dimensions, nor of those in `apart`.
        """
        axes = list(view.axes)
        for index, axis in wanted.items():
            axes[index] = axis
            if cut_alike(view.axes[index], axis):
                pairs = zip(leaves(view.axes[index]), leaves(axis), strict=True)
                for old, new in pairs:
                    (one,), (other,) = old.leaves, new.leaves
                    self._groups.unify(one, other)
        taken = {*dims_of([*wanted.values()]), *leaves(apart)}
        rank = len(axes)
        for index in {*range(rank)} - {each % rank for each in wanted}:
            if taken.intersection(leaves(axes[index])):
                axes[index] = like_axis(axes[index])
        return self._renamed(view, axes)

    def _renamed(self, view: View, axes: Sequence[Axis]) -> View:
        """Return a view with other axes of the same extents."""
        if view.dims == dims_of(axes):
            return view
        stored, moved = stored_in(view), list[tuple[Axis, Axis]]()
        for old, new in zip(map(leaves, view.axes), map(leaves, axes), strict=True):
            if sizes_of(old) == sizes_of(new):
                pairs = zip(old, new, strict=True)
                moved += [((a,), (b,)) for a, b in pairs if a in stored and a != b]
            elif stored.issuperset(old):
                moved.append((old, new))
            else:
                return self._renamed(self.stored(view), axes)
        if not moved:
            return self.view(view.tensor, axes)
        dims = replaced(view.tensor.dims, moved)
        op = Rename(view.tensor, tuple(moved))
        return self.view(Tensor(dims, view.tensor.element, op), axes)

    def stored(self, view: View) -> View:
        """Return a tensor whose value has the dimensions of all axes."""
        if not (missing := view.expanded):
            return view
        element = view.tensor.element
        if isinstance(op := view.tensor.op, Fill):
            return self.view(Tensor(view.dims, element, op), view.axes)
        for dim in missing:
            view = self._along(view, Index(dim))
        return view

    def _along(self, view: View, positions: Index) -> View:
        """
        Return a view whose value has the dimension of positions, too.

        Loops have the dimensions of positions, but not those of constants.
        """
        element, axis = view.tensor.element, (positions.dim,)
        number, zero = self.full((), 0, element), self.full((), 0, i32)
        along = Tensor(axis, i32, positions)
        here = Tensor(axis, i1, Map(MapKind.GE, (along, zero.tensor)))
        op = Map(MapKind.SELECT, (here, view.tensor, number.tensor))
        given = view, View(here, view.axes)
        return self._computed(op, element, view.axes, *given)

    # Sums and products.

    def reduce(
        self, kind: ReduceKind, view: View, axes: Sequence[int], *, keep: bool = False
    ) -> View:
        """Return the sum or the maximum over some axes, over all if there are none."""
        rank = len(view.axes)
        # torch lets a single number have an axis 0, of one element.
        reduced = {axis % rank for axis in axes if rank} or {*range(rank)}
        dims = {dim for index in reduced for dim in leaves(view.axes[index])}
        left = [
            () if index in reduced else axis
            for index, axis in enumerate(view.axes)
            if keep or index not in reduced
        ]
        same = dims - stored_in(view)
        if same == dims:
            result = self.view(view.tensor, left)
        elif view.tensor.element == i1:
            name = "sum" if kind is ReduceKind.ADD else "maximum"
            raise UnsupportedError(f"a {name} of i1")
        else:
            op = Reduce(kind, view.tensor)
            result = self._computed(op, view.tensor.element, left, view)
        return result if kind is ReduceKind.MAX else self._times(result, same)

    def _times(self, view: View, dims: Iterable[Dim]) -> View:
        """Return the sum of a tensor over dimensions along which it is the same."""
        count = elements(dims)
        return view if count == 1 else self.map(MapKind.MULT, view, count)

    def product(self, lhs: View, rhs: View, element: Element) -> View:
        """
        Return products of matrices, of the last two axes; the others are the same.

        Of narrow floats they are summed in f32.
        """
        rank = len(lhs.axes)
        batch: dict[int, Axis] = {i: lhs.axes[i] for i in range(rank - 2)}
        rhs = self.unified(rhs, {**batch, rank - 2: lhs.axes[-1]}, lhs.axes[-2])
        axes = [*lhs.axes[:-1], rhs.axes[-1]]
        summed = set(leaves(lhs.axes[-1]))
        one, other = stored_in(lhs), stored_in(rhs)
        lhs = self._summed(lhs, summed & one - other)
        rhs = self._summed(rhs, summed & other - one)
        wide = element if element.bitwidth >= 32 else f32
        tensors = lhs.tensor, rhs.tensor
        if summed & one & other:
            result = self._computed(Contract(*tensors), wide, axes, lhs, rhs)
        else:
            op = Map(MapKind.MULT, tensors)
            result = self._computed(op, lhs.tensor.element, axes, lhs, rhs)
        return self.cast(self._times(result, summed - one - other), element)

    def _summed(self, view: View, dims: set[Dim]) -> View:
        """Return a tensor that is summed over dimensions; its axes keep them."""
        if not dims:
            return view
        left = tuple(dim for dim in leaves(view.tensor.dims) if dim not in dims)
        op = Reduce(ReduceKind.ADD, view.tensor)
        return View(Tensor(left, view.tensor.element, op), view.axes)


def _axis(views: Sequence[View], index: int) -> Axis:
    """Return the axis `index`, from the last one, of the first view that has it."""
    axes = (view.axes[index] for view in views if -index <= len(view.axes))
    return next(filter(None, axes), ())
