"""
The option `dim` of the pipelines: which dimensions are sharded over the instances.

`H,M` names dimensions; each takes the remaining mesh axes, outermost first, as far as
they divide it. `M:cx,cy;N:kx,ky` names the axes, too, the major one first. One option
may have entries of both forms, with `;` between them. `M:cx=2,cy` uses two of the
instances along an axis of an accelerator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.compound.dims import extents_of, names_of
from comet.dialects.errors import OpError
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.named_numbers import format_numbers, named_number
from comet.passes.analysis.padding import is_border, unsliced

T = TypeVar("T")

ShardedDim: TypeAlias = tuple[str, tuple[str, ...]]
"""A dimension, and the mesh axes that it is sharded over."""

Parts: TypeAlias = Mapping[str, int]
"""The number of instances that are used, of some mesh axes."""


@dataclass(frozen=True)
class DimAxes:
    """One dimension of the option, with its mesh axes if the option names them."""

    dim: str
    axes: tuple[str, ...] | None = None
    """Major first; None for the remaining axes, outermost first, that divide it."""
    parts: tuple[tuple[str, int], ...] = ()
    """How many instances are used of those axes that are not used whole."""

    @property
    def texts(self) -> Iterator[str]:
        """Yield its axes as the option names them."""
        parts = dict(self.parts)
        for axis in self.axes or ():
            yield f"{axis}={parts[axis]}" if axis in parts else axis


Dims: TypeAlias = tuple[DimAxes, ...]
"""A value of the option."""

LikeAxes: TypeAlias = frozenset[tuple[str, tuple[tuple[str, int, int], ...]]]
"""Of each dimension, the level, extent and used instances of its axes."""


def parse_dims(words: Iterable[str]) -> Dims:
    """
    Parse the option, of which `words` are the texts between commas.

    An empty text names no dimension. Raises PassFailedException for an entry of another
    form, and for a dimension or an axis that is named twice.
    """
    text = ",".join(words)
    entries = text.split(";") if text.strip() else ()
    found = tuple(chain.from_iterable(map(_parse_entry, entries)))
    _check_distinct("dimension", [entry.dim for entry in found])
    _check_distinct("axis", [axis for entry in found for axis in entry.axes or ()])
    return found


def axes_of(
    system: SystemOp, groups: Iterable[tuple[T, Iterable[str]]]
) -> dict[T, tuple[str, ...]]:
    """Return for each item the axes that pairs assign to it, outermost first."""
    owner = {axis: item for item, axes in groups for axis in axes}
    return {
        item: tuple(axis for axis in system.axes if owner.get(axis) == item)
        for item in dict.fromkeys(owner.values())
    }


def like_axes(system: SystemOp, dims: Sequence[DimAxes]) -> LikeAxes:
    """
    Return a key that is equal for shardings which differ only in axes of equal extents.

    Axes of one level with as many instances are interchangeable: the models give equal
    prices to mappings along either. All entries of `dims` name their axes.
    """
    levels = system.axis_levels
    parts = dict(chain.from_iterable(entry.parts for entry in dims))
    return frozenset(
        (
            entry.dim,
            tuple(
                (levels[axis], extent, parts.get(axis, extent))
                for axis in entry.axes or ()
                for extent in (system.axes[axis],)
            ),
        )
        for entry in dims
    )


def format_dims(dims: Sequence[DimAxes]) -> str:
    """Return the option for `dims`."""
    separator = "," if all(entry.axes is None for entry in dims) else ";"
    return separator.join(
        entry.dim if entry.axes is None else f"{entry.dim}:{','.join(entry.texts)}"
        for entry in dims
    )


def _parse_entry(entry: str) -> Iterator[DimAxes]:
    head, colon, tail = entry.partition(":")
    found = [(text.strip(), named_number(text)) for text in tail.split(",")]
    parts = tuple(part for _, part in found if part)
    dims, axes = _names(head), tuple(part[0] if part else text for text, part in found)
    wrong_axes = colon and (len(dims) > 1 or not all(map(str.isidentifier, axes)))
    if wrong_axes or not all(map(str.isidentifier, dims)):
        raise PassFailedException(
            "the option 'dim' names dimensions, as in H,M, or says the mesh axes of "
            f"each, as in \"M:cx,cy;N:kx,ky\"; '{entry.strip()}' is neither"
        )
    for dim in dims:
        yield DimAxes(dim, axes if colon else None, parts)


def parse_parts(name: str, text: str) -> Parts:
    """
    Parse the instances that the option `axes` of a pass selects, as in `cx=2,cy=4`.

    Raises PassFailedException in the name of the pass for text of another form.
    """
    found = [named_number(word) for word in text.split(",")]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found) or len(dict(parts)) < len(parts):
        raise PassFailedException(
            f"{name}: the option 'axes' says how many instances of each mesh axis are "
            f"used, as in \"cx=2,cy=4\"; '{text}' does not"
        )
    return dict(parts)


def partial_axes(mesh: MeshOp, dims: Iterable[DimAxes]) -> Parts:
    """Return the axes of a mesh of which `dims` do not use all instances."""
    extents = mesh.axis_extents
    parts = dict(part for entry in dims for part in entry.parts)
    return {axis: n for axis, n in parts.items() if n != extents.get(axis)}


def check_parts(name: str, mesh: MeshOp, parts: Parts) -> None:
    """Raise PassFailedException for axes or instances that a mesh does not have."""
    if parts and (fault := mesh.fault(tuple(parts))):
        raise PassFailedException(f"{name}: {fault}")
    for axis, count in parts.items():
        if count > (extent := mesh.axis_extents[axis]):
            raise PassFailedException(
                f"{name}: the axis {axis} has {extent} instances and not {count}; use "
                "fewer"
            )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _check_distinct(what: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise PassFailedException(
                f"the option 'dim' names the {what} {name} twice; name it once"
            )


def assign_axes(
    name: str,
    module: ModuleOp,
    mesh: MeshOp,
    dims: Sequence[DimAxes],
    *,
    uneven: bool = False,
) -> tuple[ShardedDim, ...]:
    """
    Return the sharded dimensions, each with its mesh axes.

    Axes of one instance are left out. With `uneven` shards (of ranks) they are kept,
    named axes need not divide their dimension, and the last dimension takes all
    remaining axes. Raises PassFailedException in the name of a pass for a dimension
    that `module` does not have, an axis that `mesh` does not have, and axes, or used
    parts of axes, that do not divide their dimension.
    """
    parts = partial_axes(mesh, dims)
    if parts and uneven:
        raise PassFailedException(
            f"{name}: the option 'dim' uses a part of an axis, "
            f"{format_numbers(parts)}; GPUs use all of it: say how many with 'ranks'"
        )
    check_parts(f"{name}: in the option 'dim'", mesh, parts)
    mesh = MeshOp(mesh.sym_name.data, {**mesh.axis_extents, **parts})
    named = {axis for entry in dims for axis in entry.axes or ()}
    free_axes = tuple(axis for axis in mesh.axis_extents if axis not in named)
    shards: list[ShardedDim] = []
    for entry in dims:
        extents = _extents(name, module, entry.dim)
        if entry.axes is not None:
            _check_axes(name, mesh, entry, () if uneven else extents)
            shards.append((entry.dim, entry.axes))
            continue
        last = uneven and entry is dims[-1]
        axes = free_axes if last else _dividing(mesh, free_axes, extents)
        free_axes = free_axes[len(axes) :]
        shards.append((entry.dim, axes))
    extents = mesh.axis_extents
    if not uneven:
        shards = [(d, tuple(a for a in axes if extents[a] > 1)) for d, axes in shards]
    return tuple((dim, axes) for dim, axes in shards if axes)


def _dividing(
    mesh: MeshOp, axes: tuple[str, ...], extents: Sequence[int]
) -> tuple[str, ...]:
    """Return `axes` without the innermost ones, until they divide all `extents`."""
    while axes and any(extent % mesh.size(axes) for extent in extents):
        axes = axes[:-1]
    return axes


def _check_axes(name: str, mesh: MeshOp, dim: DimAxes, extents: Sequence[int]) -> None:
    """Check that a mesh has the axes of `dim`, and that they divide its `extents`."""
    axes = dim.axes or ()
    if axes and (fault := mesh.fault(axes)):
        raise PassFailedException(f"{name}: in the option 'dim', {fault}")
    for extent in extents:
        if extent % (size := mesh.size(axes)):
            raise PassFailedException(
                f"{name}: the {size} instances along {', '.join(axes)} do not divide "
                f"{dim.dim} = {extent}; name fewer axes, or {dim.dim} alone, which "
                "takes those that divide it"
            )


def check_dims(name: str, module: ModuleOp, dims: Dims) -> None:
    """Raise OpError in the name of a pass for a dimension that `module` has not."""
    for entry in dims:
        _extents(name, module, entry.dim)


def extents_along(module: ModuleOp, dim: str) -> list[int]:
    """Return the extents of the values of `module` along `dim`."""
    return [extents_of(v)[dim] for v in computed_values(module) if dim in names_of(v)]


def _extents(name: str, module: ModuleOp, dim: str) -> list[int]:
    """Return the extents of the values of `module` along `dim`, at least one."""
    if not (extents := extents_along(module, dim)):
        names = ", ".join(dims_in(module))
        way_out = (
            f"there are {names}; name them in the option 'dim'"
            if names
            else "the program has none"
        )
        raise OpError(
            next(compute_functions(module), None),
            f"{name}: there is no dimension {dim} to shard; {way_out}",
        )
    return extents


def dims_in(module: ModuleOp) -> tuple[str, ...]:
    """Return the dimensions that functions of `module` compute with, in order."""
    names = (name for value in computed_values(module) for name in names_of(value))
    return tuple(dict.fromkeys(names))


def computed_values(module: ModuleOp) -> list[SSAValue]:
    """Return the values that the functions of `module` compute with."""
    return [
        value
        for func in compute_functions(module)
        for op in func.body.block.ops
        if not is_border(op)
        for value in (*map(unsliced, op.operands), *op.results)
    ]
