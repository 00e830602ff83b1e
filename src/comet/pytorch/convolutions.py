"""
The translation of convolutions: sums of products of matrices, of shifted inputs.

With a stride of s, an axis is blocks of s positions. A kernel of k numbers reads about
k / s of them, its taps, and the next result those that begin a block later. A tap is a
product, summed over channels and the positions of a block. Patches, whose kernel is as
long as the stride, have one tap: the product of a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

from xdsl.dialects.builtin import IntegerType, f32

from comet.dialects.compound.elementary import ReduceKind
from comet.dialects.compound.map import MapKind
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.emitter import View
from comet.pytorch.rules import Result, rule
from comet.pytorch.tracer import Tracer

MOST_TAPS = 9
"""
The most taps, those of 3 x 3. Each is a product of its own, and the time to compile
grows faster than their number: one step takes 3 s for 3, 12 s for 9, and 35 s for 16.
"""


@dataclass(frozen=True)
class Window:
    """One axis of a convolution; extents are positions where they say no other."""

    extent: int
    """Of the input, without padding."""
    kernel: int
    stride: int
    padding: int
    dilation: int

    @property
    def results(self) -> int:
        """The extent of the result."""
        last = self.dilation * (self.kernel - 1) + 1
        return (self.extent + 2 * self.padding - last) // self.stride + 1

    @property
    def before(self) -> int:
        """How many blocks of padding are in front of the input's first block."""
        return -(-self.padding // self.stride)

    @property
    def first(self) -> int:
        """Where the kernel begins in the first block that it reads."""
        return self.before * self.stride - self.padding

    @property
    def taps(self) -> int:
        """How many blocks the kernel reads."""
        return -(-(self.first + self.kernel) // self.stride)

    @property
    def reach(self) -> int:
        """How many blocks are between the first and the last one."""
        return self.dilation * (self.taps - 1)

    @property
    def blocks(self) -> int:
        """How many blocks of the input, the last one maybe in part, are read."""
        read = self.results + self.reach - self.before
        return min(read, -(-self.extent // self.stride))

    @property
    def part(self) -> tuple[int, int]:
        """Which positions of a block are read: the first one, and how many."""
        return (self.first, self.kernel) if self.taps == 1 else (0, self.stride)

    @property
    def zeros(self) -> int:
        """How many numbers are missing in front of the kernel in its first tap."""
        return self.first - self.part[0]


@dataclass(frozen=True)
class Convolution:
    """
    The shapes of a convolution.

    Its products are of matrices for each group: of rows, which are positions of all
    sequences or images, and of columns, which are channels, and positions of a block.
    """

    windows: tuple[Window, ...]
    batch: int
    groups: int
    channels: int
    """Of the input, those of one group."""
    filters: int
    """Of the result, those of one group."""

    @property
    def results(self) -> list[int]:
        """The extents of the result's axes."""
        return [window.results for window in self.windows]

    @property
    def blocks(self) -> list[int]:
        """How many blocks of the input are read, along each axis."""
        return [window.blocks for window in self.windows]

    @property
    def parts(self) -> list[int]:
        """How many positions of a block are read, along each axis."""
        return [window.part[1] for window in self.windows]

    @property
    def taps(self) -> list[tuple[tuple[Window, int], ...]]:
        """The taps: along each axis the window, and the number of the tap."""
        numbers = product(*(range(window.taps) for window in self.windows))
        return [tuple(zip(self.windows, tap, strict=True)) for tap in numbers]

    def result(self, t: Tracer, input: View, weight: View) -> View:
        """Return the result, in f32 where operands are narrower."""
        pairs = zip(self._read(t, input), self._matrices(t, weight), strict=True)
        terms = [_product(t, rows, _transposed(t, w)) for rows, w in pairs]
        found = self._placed(t, _sum(t, terms), self.results, self.filters)
        return t.reshaped(found, [*found.shape[:2], *self.results])

    def of_input(self, t: Tracer, gradient: View, weight: View) -> View:
        """Return the gradient of the input, from that of the result."""
        firsts = [w.before - w.reach for w in self.windows]
        sizes = [w.blocks + w.reach for w in self.windows]
        gradient = cut(t, gradient, firsts, sizes)
        terms: list[View] = []
        for tap, matrix in zip(self.taps, self._matrices(t, weight), strict=True):
            firsts = [w.reach - w.dilation * number for w, number in tap]
            rows = self._rows(t, cut(t, gradient, firsts, self.blocks), self.filters)
            terms.append(_product(t, rows, matrix))
        found = self._placed(t, _sum(t, terms), self.blocks, self.channels, self.parts)
        strides = [w.stride for w in self.windows]
        found = cut(t, found, [-w.part[0] for w in self.windows], strides, 3, 2)
        whole = [w.blocks * w.stride for w in self.windows]
        found = t.reshaped(found, [*found.shape[:2], *whole])
        return cut(t, found, [0] * len(whole), [w.extent for w in self.windows])

    def of_weight(self, t: Tracer, gradient: View, input: View) -> View:
        """Return the gradient of the weight, from that of the result."""
        rows = _transposed(t, self._rows(t, gradient, self.filters))
        shape = [self.groups * self.filters, self.channels, *self.parts]
        terms = [
            t.reshaped(_product(t, rows, read), [1, *shape])
            for read in self._read(t, input)
        ]
        taps, count = [window.taps for window in self.windows], len(self.windows)
        found = t.reshaped(t.joined(terms, 0), [*taps, *shape])
        order = [count, count + 1, *_alternate(0, count + 2, count)]
        pairs = zip(taps, self.parts, strict=True)
        whole = [*shape[:2], *(number * part for number, part in pairs)]
        found = t.reshaped(t.permuted(found, order), whole)
        sizes = [window.kernel for window in self.windows]
        return cut(t, found, [window.zeros for window in self.windows], sizes)

    def _read(self, t: Tracer, input: View) -> list[View]:
        """Return the rows that each tap reads of the input."""
        count, windows = len(self.windows), self.windows
        whole = [w.blocks * w.stride for w in windows]
        input = cut(t, input, [0] * count, whole)
        extents = [n for w in windows for n in (w.blocks, w.stride)]
        view = t.reshaped(input, [self.batch, self.groups, self.channels, *extents])
        read = [w.results + w.reach for w in windows]
        view = cut(t, view, [-w.before for w in windows], read, 3, 2)
        view = cut(t, view, [w.part[0] for w in windows], self.parts, 4, 2)
        order = [1, 0, *range(3, 3 + 2 * count, 2), 2, *range(4, 4 + 2 * count, 2)]
        view = t.permuted(view, order)
        shape = self.groups, self.batch * prod(self.results), -1
        found: list[View] = []
        for tap in self.taps:
            firsts = [number * w.dilation for w, number in tap]
            found.append(t.reshaped(cut(t, view, firsts, self.results), shape))
        return found

    def _matrices(self, t: Tracer, weight: View) -> list[View]:
        """Return the weights of each tap: (groups, filters, columns)."""
        found: list[View] = []
        for tap in self.taps:
            firsts = [number * w.part[1] - w.zeros for w, number in tap]
            part = cut(t, weight, firsts, self.parts)
            found.append(t.reshaped(part, [self.groups, self.filters, -1]))
        return found

    def _rows(self, t: Tracer, view: View, channels: int) -> View:
        """Return (batch, channels of all groups, axes) as rows of channels."""
        extents = view.shape[2:]
        apart = t.reshaped(view, [self.batch, self.groups, channels, *extents])
        order = [1, 0, *range(3, len(apart.axes)), 2]
        rows = self.batch * prod(extents)
        return t.reshaped(t.permuted(apart, order), [self.groups, rows, channels])

    def _placed(
        self,
        t: Tracer,
        rows: View,
        blocks: Sequence[int],
        channels: int,
        parts: Sequence[int] | None = None,
    ) -> View:
        """Return rows as (batch, channels, blocks, a block's positions, blocks, ..)."""
        count = len(blocks)
        inner = [channels, *(parts or [1] * count)]
        apart = t.reshaped(rows, [self.groups, self.batch, *blocks, *inner])
        order = [1, 0, 2 + count, *_alternate(2, 3 + count, count)]
        view = t.permuted(apart, order)
        return t.reshaped(view, [self.batch, -1, *view.shape[3:]])


def _alternate(first: int, second: int, count: int) -> list[int]:
    """Return `count` numbers from `first` on, each with one from `second` on."""
    return [n for step in range(count) for n in (first + step, second + step)]


def cut(
    t: Tracer,
    view: View,
    firsts: Sequence[int],
    sizes: Sequence[int],
    axis: int = 2,
    step: int = 1,
    number: float = 0,
) -> View:
    """Return positions of each `step`-th axis from `axis` on, `number` beyond ends."""
    for place, (first, size) in enumerate(zip(firsts, sizes, strict=True)):
        at = axis + place * step
        here, end = max(first, 0), min(first + size, view.shape[at])
        view = t.sliced(view, at, here, end - here)
        view = t.padded(view, at, here - first, first + size - end, number)
    return view


def _transposed(t: Tracer, matrices: View) -> View:
    return t.permuted(matrices, [0, 2, 1])


def _product(t: Tracer, lhs: View, rhs: View) -> View:
    """Return products of matrices, in f32 where elements are narrower."""
    element = lhs.tensor.element
    wide = element if element.bitwidth >= 32 else f32
    _, rows, summed = lhs.shape
    if summed == 1:
        lhs, rhs = t.cast(lhs, wide), t.cast(rhs, wide)
    elif rows == rhs.shape[-1] == 1:
        lhs, rhs = t.cast(lhs, wide), t.cast(_transposed(t, rhs), wide)
        return t.reduce(ReduceKind.ADD, t.map(MapKind.MULT, lhs, rhs), [-1], keep=True)
    return t.product(lhs, rhs, wide)


def _sum(t: Tracer, terms: Iterable[View]) -> View:
    return reduce(lambda one, other: t.map(MapKind.ADD, one, other), terms)


def _convolution(
    out: Result,
    input: View,
    weight: View,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    groups: int,
) -> Convolution:
    """Return the shapes; raise UnsupportedError for those that have no translation."""
    if isinstance(out.element, IntegerType):
        raise UnsupportedError(f"a convolution of {out.element}")
    if transposed:
        raise UnsupportedError("a transposed convolution")
    count = len(input.shape) - 2
    per_axis = ([*each] * (count // len(each)) for each in (stride, padding, dilation))
    given = input.shape[2:], weight.shape[2:], *per_axis
    windows = tuple(Window(*each) for each in zip(*given, strict=True))
    if any(window.dilation > 1 and window.stride > 1 for window in windows):
        raise UnsupportedError("a convolution with steps in results and kernel")
    taps = prod(window.taps for window in windows)
    if taps > MOST_TAPS:
        raise UnsupportedError(
            f"a convolution of {taps} products, more than {MOST_TAPS}"
        )
    if any(window.blocks < 1 for window in windows):
        raise UnsupportedError("a convolution of padding alone")
    channels, filters = weight.shape[1], weight.shape[0] // groups
    return Convolution(windows, input.shape[0], groups, channels, filters)


@rule("aten.convolution")
def convolution(
    t: Tracer,
    out: Result,
    input: View,
    weight: View,
    bias: View | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
):
    how = stride, padding, dilation, transposed, groups
    found = _convolution(out, input, weight, *how).result(t, input, weight)
    if bias is not None:
        inner = [1] * (len(input.shape) - 2)
        each = t.reshaped(t.cast(bias, found.tensor.element), [-1, *inner])
        found = t.map(MapKind.ADD, found, each)
    return t.cast(found, out.element)


@rule("aten.convolution_backward")
def convolution_backward(
    t: Tracer,
    out: Result,
    grad_output: View,
    input: View,
    weight: View,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
):
    """Return the gradients that the mask wants: of input, weight and bias."""
    how = stride, padding, dilation, transposed, groups
    shapes = _convolution(out, input, weight, *how)
    of_input, of_weight, of_bias = output_mask
    found = (
        shapes.of_input(t, grad_output, weight) if of_input else None,
        shapes.of_weight(t, grad_output, input) if of_weight else None,
        _summed(t, grad_output) if of_bias else None,
    )
    return tuple(x if x is None else t.cast(x, out.element) for x in found)


def _summed(t: Tracer, gradient: View) -> View:
    """Return sums over all axes but that of channels."""
    wide = t.cast(gradient, f32) if gradient.tensor.element.bitwidth < 32 else gradient
    axes = [0, *range(2, len(gradient.axes))]
    return t.reduce(ReduceKind.ADD, wide, axes)
