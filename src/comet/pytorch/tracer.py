"""Records elementary ops on torch tensors: in its terms, ATen ops have rules."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import i1, i32

from comet.dialects.compound.dims import Element
from comet.dialects.compound.elementary import ReduceKind
from comet.dialects.compound.map import MapKind
from comet.pytorch.arithmetic import Arithmetic, UnsupportedError, stored_in
from comet.pytorch.dims import (
    Axis,
    Dim,
    dims_of,
    elements,
    inner_sizes,
    leaves,
    new_axis,
    refine,
    replaced,
)
from comet.pytorch.emitter import Tensor, View
from comet.pytorch.ops import (
    Concat,
    Fill,
    Gather,
    GatherOwn,
    Index,
    Pad,
    Rename,
    ScatterAdd,
    Slice,
)


class Tracer(Arithmetic):
    """A graph that is being traced, with views of its tensors."""

    def positions_along(self, like: View, dim: int, element: Element) -> View:
        """Return the positions along an axis, which is where `like` has it."""
        inner, extent = len(like.axes) - 1 - dim % len(like.axes), like.shape[dim]
        return self.reshaped(self.positions(extent, element), [extent, *[1] * inner])

    # Axes.

    def permuted(self, view: View, order: Sequence[int]) -> View:
        """Return a view with its axes in another order."""
        return View(view.tensor, tuple(view.axes[axis] for axis in order))

    def reshaped(self, view: View, shape: Sequence[int]) -> View:
        """Return a view with other axes; the elements stay in their order."""
        total = prod(view.shape)
        known = -prod(shape)
        extents = [total // known if extent == -1 else extent for extent in shape]
        dims = view.dims
        if not refine(dims, inner_sizes(extents)):
            return self._cut_anew(view, extents)
        rest, axes = list(leaves(dims)), list[Axis]()
        for extent in extents:
            axis: list[Dim] = []
            while elements(axis) < extent:
                axis.append(rest.pop(0))
            axes.append(tuple(axis))
        return View(view.tensor, tuple(axes))

    def _cut_anew(self, view: View, extents: Sequence[int]) -> View:
        """Return a view whose axes are cut otherwise: one axis, which is cut again."""
        view = self.stored(view)
        axes = [*map(new_axis, extents)]
        pair = view.dims, dims_of(axes)
        dims = replaced(view.tensor.dims, [pair])
        op = Rename(view.tensor, (pair,))
        return self.view(Tensor(dims, view.tensor.element, op), axes)

    def in_one_dimension(self, view: View, axis: int) -> View:
        """Return a view of stored values, an axis of which is a single dimension."""
        old = view.axes[axis]
        if len(leaves(old)) == 1:
            return view
        axes = list(view.axes)
        axes[axis] = (Dim(view.shape[axis]),)
        return self._renamed(view, axes)

    def expanded(self, view: View, shape: Sequence[int]) -> View:
        """Return a view that is the same along axes that had one element, or none."""
        axes: list[Axis] = [()] * (len(shape) - len(view.axes)) + list(view.axes)
        for index, (axis, extent) in enumerate(zip(axes, shape, strict=True)):
            if not axis and extent != -1:
                axes[index] = new_axis(extent)
        return self.view(view.tensor, axes)

    def sliced(self, view: View, axis: int, start: int, size: int) -> View:
        """Return a view of `size` positions of an axis from `start` on."""
        axis %= len(view.axes)
        old = view.axes[axis]
        if size == elements(leaves(old)):
            return view
        if isinstance(op := view.tensor.op, Fill):
            shape = [*view.shape[:axis], size, *view.shape[axis + 1 :]]
            return self.full(shape, op.number, view.tensor.element)
        if not stored_in(view).issuperset(leaves(old)):
            view = self.stored(view)
        dim = Dim(size)
        dims = replaced(view.tensor.dims, [(old, (dim,))])
        tensor = Tensor(dims, view.tensor.element, Slice(view.tensor, old, start, dim))
        axes = list(view.axes)
        axes[axis] = (dim,)
        part = self.view(tensor, axes)
        return part if size != 1 else self._without_one(part, axis)

    def _without_one(self, view: View, axis: int) -> View:
        """
        Return a view without the dimension of an axis, which has one element.

        It joins the dimension before it, or the one after it. Numbers without either
        are summed over it; so are those before a dimension that ranks may shard.
        """
        element, stored = view.tensor.element, leaves(view.tensor.dims)
        (one,) = leaves(view.axes[axis])
        dims = tuple(dim for dim in stored if dim is not self.ranks.dim)
        place = dims.index(one)
        pair = dims[max(place - 1, 0) :][:2]
        left = tuple(dim for dim in pair if dim is not one)
        if element != i1 and (not left or (place == 0 and self.ranks.count > 1)):
            return self.reduce(ReduceKind.ADD, view, [axis], keep=True)
        if not left:
            raise UnsupportedError(f"one position of a vector of {element}")
        rest = tuple(dim for dim in stored if dim is not one)
        tensor = Tensor(rest, element, Rename(view.tensor, ((pair, left),)))
        axes = list(view.axes)
        axes[axis] = ()
        return self.view(tensor, axes)

    def padded(
        self, view: View, axis: int, before: int, after: int, number: float
    ) -> View:
        """Return a tensor with a number in front of an axis and behind it."""
        if not before and not after:
            return view
        element, shape, parts = view.tensor.element, [*view.shape], [view]
        axis %= len(shape)
        if (extent := shape[axis]) == 1:
            positions = self.positions(1 + before + after, i32)
            here = self.map(MapKind.EQ, self._as_axis(positions, view, axis), before)
            return self.map(MapKind.SELECT, here, view, number)
        for place, count in ((0, before), (len(parts) + 1, after)):
            if count:
                shape[axis] = count
                parts.insert(place, self.full(shape, number, element))
        if before:
            return self.joined(parts, axis)
        axes, dim = list(view.axes), Dim(extent + after)
        if not stored_in(view).issuperset(leaves(axes[axis])):
            view = self.stored(view)
        op = Pad(view.tensor, axes[axis], dim, number)
        dims = replaced(view.tensor.dims, [(axes[axis], (dim,))])
        axes[axis] = (dim,)
        return self.view(Tensor(dims, element, op), axes)

    def _as_axis(self, vector: View, like: View, axis: int) -> View:
        """Return a vector whose axis is the one of that number of `like`."""
        inner = len(like.axes) - 1 - axis
        return View(vector.tensor, (vector.axes[0], *[()] * inner))

    def joined(self, views: Sequence[View], axis: int) -> View:
        """Return tensors one behind the other, along an axis."""
        if len(views) == 1:
            return views[0]
        axis %= len(views[0].axes)
        differ = self.ranks.differ_in(*(view.tensor for view in views))
        alike = map(self.of_each_rank, views) if differ else views
        first, *others = map(self.stored, alike)
        kept = {i: a for i, a in enumerate(first.axes) if i != axis}
        parts = [first, *(self.unified(view, kept) for view in others)]
        computed = [part for part in parts if not isinstance(part.tensor.op, Fill)]
        if not all(part.dims for part in computed or parts):
            return self.stacked(parts, axis)
        dim = Dim(sum(elements(leaves(part.axes[axis])) for part in parts))
        axes = list(first.axes)
        axes[axis] = (dim,)
        op = Concat(tuple((part.tensor, part.axes[axis]) for part in parts), dim)
        dims = self.ranks.among(dims_of(axes), *(part.tensor for part in parts))
        return self.view(Tensor(dims, first.tensor.element, op), axes)

    def of_each_rank(self, view: View) -> View:
        """Return a view of which each rank has its own values, which may be equal."""
        if self.ranks.differ_in(view.tensor):
            return view
        return self._along(view, Index(self.ranks.dim, self.ranks.count))

    def stacked(self, views: Sequence[View], axis: int) -> View:
        """Return single positions of an axis as one: each is selected at its own."""
        if any(view.shape[axis] != 1 for view in views):
            raise UnsupportedError("a concatenation with a single number")
        result, *others = views
        positions = self.positions(len(views), i32)
        for number, view in enumerate(others, 1):
            here = self.map(MapKind.EQ, self._as_axis(positions, view, axis), number)
            result = self.map(MapKind.SELECT, here, view, result)
        return result

    # Rows of tables.

    def gathered(self, table: View, ids: View) -> View:
        """Return the rows of a table that ids name, along its first axis."""
        table, ids = self.stored(table), self.stored(ids)
        table = self.unified(table, {}, ids.dims)
        self._groups.add((*table.dims, *ids.dims))
        axes = [*ids.axes, *table.axes[1:]]
        if not table.axes[0]:  # All ids name its only row.
            return self.view(table.tensor, axes)
        named = table.tensor, table.axes[0], ids.tensor
        own = all(map(self.ranks.differ_in, (table.tensor, ids.tensor)))
        op = GatherOwn(*named, self.ranks.dim) if own else Gather(*named)
        return self._computed(op, table.tensor.element, axes, table, ids)

    def scattered(self, values: View, ids: View, rows: int) -> View:
        """Return a table of sums: each of `values` is added to the row of its id."""
        count = len(ids.axes)
        if rows == 1:  # All ids name the only row.
            total = values
            if count:
                total = self.reduce(ReduceKind.ADD, values, range(count))
            return self.view(total.tensor, [(), *total.axes])
        ids = self.stored(ids)
        for dim in values.expanded:  # Programs split what they add: no constant.
            values = self._along(values, Index(dim))
        if self.ranks.differ_in(ids.tensor):
            raise UnsupportedError("sums into rows by ids of a rank")
        values = self.unified(values, dict(enumerate(ids.axes)))
        dim = Dim(rows)
        axes = [(dim,), *values.axes[count:]]
        op = ScatterAdd(values.tensor, ids.tensor, dim)
        dims = self.ranks.among(dims_of(axes), values.tensor)
        return self.view(Tensor(dims, values.tensor.element, op), axes)
