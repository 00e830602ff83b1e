"""
The translation of pooling: means and maxima of windows.

With a stride of s, an axis is blocks of s positions. The window of a result begins with
a block and reads some, its taps, the last one maybe in part; that of the next result
begins a block later. So a tap is a view, and a result the sum or the maximum of taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import inf, prod

from xdsl.dialects.builtin import IntegerType, i32, i64

from comet.dialects.compound.elementary import ReduceKind
from comet.dialects.compound.map import MapKind
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.convolutions import MOST_TAPS, cut
from comet.pytorch.elementwise import wide
from comet.pytorch.emitter import View
from comet.pytorch.rules import Result, rule
from comet.pytorch.tracer import Tracer


@dataclass(frozen=True)
class Window:
    """One axis of a pooling; extents are positions."""

    extent: int
    """Of the input, without padding."""
    kernel: int
    stride: int
    padding: int
    results: int

    @property
    def taps(self) -> int:
        """How many blocks a window reads."""
        return -(-self.kernel // self.stride)

    @property
    def blocks(self) -> int:
        """How many blocks all windows read."""
        return self.results + self.taps - 1

    def part(self, tap: int) -> int:
        """Return how many positions of a block a tap reads."""
        return min(self.stride, self.kernel - tap * self.stride)


@dataclass(frozen=True)
class Pooling:
    """
    The windows of the last axes of a tensor.

    Blocks and their positions are axes (.., blocks, positions, blocks, ..).
    """

    windows: tuple[Window, ...]
    outer: tuple[int, ...]
    """The extents of the axes before."""

    @property
    def taps(self) -> list[tuple[int, ...]]:
        """The taps: their numbers along each axis."""
        return [*product(*(range(window.taps) for window in self.windows))]

    @property
    def positions(self) -> list[int]:
        """The axes of the positions of blocks, from the last one."""
        return [*range(-1, -2 * len(self.windows), -2)]

    def apart(self, view: View, sizes: Sequence[int], t: Tracer) -> View:
        """Return a view whose axes are blocks of `sizes` positions."""
        inner = zip(view.shape[len(self.outer) :], sizes, strict=True)
        extents = [n for extent, size in inner for n in (extent // size, size)]
        return t.reshaped(view, [*self.outer, *extents])

    def parts(self, t: Tracer, input: View, padding: float) -> list[View]:
        """Return what each tap reads of the input, for all results as blocks."""
        windows, first = self.windows, len(self.outer)
        firsts = [-window.padding for window in windows]
        sizes = [window.blocks * window.stride for window in windows]
        padded = cut(t, input, firsts, sizes, first, number=padding)
        view = self.apart(padded, [window.stride for window in windows], t)
        found: list[View] = []
        for tap in self.taps:
            part = cut(t, view, tap, [w.results for w in windows], first, 2)
            sizes = [w.part(n) for w, n in zip(windows, tap, strict=True)]
            found.append(cut(t, part, [0] * len(sizes), sizes, first + 1, 2))
        return found

    def places(self, t: Tracer, first: Sequence[int] | None = None) -> View:
        """
        Return where in the input, as one axis, the positions of blocks are.

        They are those of all blocks, or those that a tap reads for the results.
        """
        found, behind = t.full((), 0, i64), 2 * len(self.windows)
        for axis, w in enumerate(self.windows):
            behind -= 2
            tap = None if first is None else first[axis]
            blocks, part = (
                (w.blocks, w.stride) if tap is None else (w.results, w.part(tap))
            )
            start = t.map(MapKind.MULT, t.positions(blocks, i64), w.stride)
            start = t.map(MapKind.ADD, start, (tap or 0) * w.stride - w.padding)
            start = t.reshaped(start, [blocks, *[1] * (behind + 1)])
            position = t.reshaped(t.positions(part, i64), [part, *[1] * behind])
            place = t.map(MapKind.ADD, start, position)
            before = t.map(MapKind.MULT, found, w.extent)
            found = t.map(MapKind.ADD, before, place)
        return found

    def later(self, t: Tracer, results: View, tap: Sequence[int]) -> View:
        """Return for each block what is of the window that began a tap before."""
        blocks = [window.blocks for window in self.windows]
        firsts = [-number for number in tap]
        found = cut(t, results, firsts, blocks, len(self.outer))
        return self.apart(found, [1] * len(blocks), t)

    def of_input(self, t: Tracer, terms: Sequence[View]) -> View:
        """Return the sum of terms of all positions of blocks, where the input is."""
        windows, rank = self.windows, len(self.outer)
        extents = [n for w in windows for n in (w.blocks, w.stride)]
        total = reduce(lambda one, other: t.map(MapKind.ADD, one, other), terms)
        total = t.expanded(total, [*self.outer, *extents])
        flat = t.reshaped(total, [*self.outer, *(w.blocks * w.stride for w in windows)])
        return cut(
            t, flat, [w.padding for w in windows], [w.extent for w in windows], rank
        )


def _pooling(
    input: View,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil: bool,
    dilation: Sequence[int] = (1,),
) -> Pooling:
    """Return the windows of two axes; raise UnsupportedError if there is no rule."""
    if isinstance(input.tensor.element, IntegerType) or {*dilation} != {1}:
        raise UnsupportedError("a pooling of integers, or with steps")
    given = kernel, stride or kernel, padding
    per_axis = ([*each] * (2 // len(each)) for each in given)
    axes = zip(input.shape[-2:], *per_axis, strict=True)
    windows = tuple(_window(*axis, ceil=ceil) for axis in axes)
    taps = prod(window.taps for window in windows)
    if taps > MOST_TAPS:
        raise UnsupportedError(f"a pooling of {taps} parts, more than {MOST_TAPS}")
    return Pooling(windows, input.shape[:-2])


def _window(
    extent: int, kernel: int, stride: int, padding: int, *, ceil: bool
) -> Window:
    """Return one axis; with `ceil` the last window may end behind the padding."""
    rest = extent + 2 * padding - kernel
    results = (-(-rest // stride) if ceil else rest // stride) + 1
    if (results - 1) * stride >= extent + padding:
        results -= 1
    # A single window has one block, of its own length.
    return Window(extent, kernel, kernel if results == 1 else stride, padding, results)


@dataclass(frozen=True)
class Divisor:
    """By what the sums of windows are divided for their means."""

    pooling: Pooling
    pads: bool
    """Whether padding counts."""
    given: int | None

    def of(self, t: Tracer, sums: View) -> View:
        """Return sums, which have the axes of results, divided."""
        if self.given is not None:
            return t.map(MapKind.MULT, sums, 1 / self.given)
        for axis, window in enumerate(
            self.pooling.windows, 1 - len(self.pooling.windows)
        ):
            sums = self._along(t, sums, window, -axis)
        return sums

    def _along(self, t: Tracer, sums: View, w: Window, inner: int) -> View:
        """Return sums divided by how many positions windows have along an axis."""
        before, behind = (w.padding, w.padding) if self.pads else (0, 0)
        ends = [n * w.stride - w.padding for n in range(w.results)]
        counts = {min(n + w.kernel, w.extent + behind) - max(n, -before) for n in ends}
        if len(counts) == 1:
            return t.map(MapKind.MULT, sums, 1 / counts.pop())
        start = t.map(MapKind.MULT, t.positions(w.results, i32), w.stride)
        start = t.map(MapKind.SUB, start, w.padding)
        end = t.map(MapKind.MIN, t.map(MapKind.ADD, start, w.kernel), w.extent + behind)
        count = t.map(MapKind.SUB, end, t.map(MapKind.MAX, start, -before))
        along = t.reshaped(t.cast(count, sums.tensor.element), [-1, *[1] * inner])
        return t.map(MapKind.DIV, sums, along)


@rule("aten.avg_pool2d")
def avg_pool2d(
    t: Tracer,
    out: Result,
    input: View,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
):
    pooling = _pooling(input, kernel_size, stride, padding, ceil_mode)
    parts = pooling.parts(t, t.cast(input, wide(out.element)), 0)
    sums = [t.reduce(ReduceKind.ADD, part, pooling.positions) for part in parts]
    total = reduce(lambda one, other: t.map(MapKind.ADD, one, other), sums)
    divisor = Divisor(pooling, count_include_pad, divisor_override)
    return t.cast(divisor.of(t, total), out.element)


@rule("aten.avg_pool2d_backward")
def avg_pool2d_backward(
    t: Tracer,
    out: Result,
    grad_output: View,
    input: View,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
):
    pooling = _pooling(input, kernel_size, stride, padding, ceil_mode)
    divisor = Divisor(pooling, count_include_pad, divisor_override)
    scaled = divisor.of(t, t.cast(grad_output, wide(out.element)))
    terms: list[View] = []
    for tap in pooling.taps:
        term = pooling.later(t, scaled, tap)
        for axis, (window, n) in enumerate(zip(pooling.windows, tap, strict=True)):
            if (part := window.part(n)) < window.stride:
                inner = 2 * (len(pooling.windows) - 1 - axis)
                place = t.positions(window.stride, i32)
                place = t.reshaped(place, [window.stride, *[1] * inner])
                read = t.map(MapKind.GT, part, place)
                term = t.map(MapKind.SELECT, read, term, 0)
        terms.append(term)
    return t.cast(pooling.of_input(t, terms), out.element)


@rule("aten.max_pool2d_with_indices")
def max_pool2d_with_indices(
    t: Tracer,
    out: Result,
    input: View,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
):
    """Return the maxima of windows, and the first place in the input that has each."""
    pooling = _pooling(input, kernel_size, stride, padding, ceil_mode, dilation)
    axes, parts = pooling.positions, pooling.parts(t, input, -inf)
    tops = [t.reduce(ReduceKind.MAX, part, axes) for part in parts]
    top = reduce(lambda one, other: t.map(MapKind.MAX, one, other), tops)
    each, found = pooling.apart(top, [1] * len(axes), t), list[View]()
    for tap, part in zip(pooling.taps, parts, strict=True):
        before = t.map(MapKind.SUB, 0, pooling.places(t, tap))
        here = t.map(MapKind.EQ, part, each)
        places = t.map(MapKind.SELECT, here, before, -prod(input.shape[-2:]))
        found.append(t.reduce(ReduceKind.MAX, places, axes))
    first = reduce(lambda one, other: t.map(MapKind.MAX, one, other), found)
    return top, t.map(MapKind.SUB, 0, first)


@rule("aten.max_pool2d_with_indices_backward")
def max_pool2d_with_indices_backward(
    t: Tracer,
    out: Result,
    grad_output: View,
    input: View,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: View,
):
    pooling = _pooling(input, kernel_size, stride, padding, ceil_mode, dilation)
    gradients, places = t.cast(grad_output, wide(out.element)), pooling.places(t)
    terms: list[View] = []
    for tap in pooling.taps:
        here = t.map(MapKind.EQ, places, pooling.later(t, indices, tap))
        gradient = pooling.later(t, gradients, tap)
        terms.append(t.map(MapKind.SELECT, here, gradient, 0))
    return t.cast(pooling.of_input(t, terms), out.element)
