"""The padded extents: those of the option of `pad`, and those that suit a mesh."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from operator import mul
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.blocks import defined_in
from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import ceil_div, extents_of
from comet.dialects.errors import OpError
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.named_numbers import named_number
from comet.passes.sharding.distribute.auto import candidates

Extents: TypeAlias = Mapping[str, int]
"""The extent (elements) of each of some dimensions."""

MAX_PADDING = 0.25
"""The most padding that is tried, as a fraction of the true extent."""

LARGEST_PRIME = 64
"""A dimension whose extent has a larger prime factor has too few tilings."""


def parse_extents(text: str) -> dict[str, int]:
    """
    Return the extents of an option such as `N=272,K=128`.

    Raises PassFailedException for text that is no such entry, and for a dimension that
    is named twice.
    """
    extents: dict[str, int] = {}
    for word in text.split(","):
        if (entry := named_number(word)) is None:
            raise PassFailedException(
                f"pad: '{word.strip()}' is not of the form DIM=EXTENT, as in "
                '"N=272,K=128"'
            )
        dim, extent = entry
        if dim in extents:
            raise PassFailedException(f"pad: {dim} has two extents; name it once")
        extents[dim] = extent
    return extents


def extents_by_dim(func: FuncOp) -> dict[str, tuple[int, ...]]:
    """Return the different extents of each dimension of the values of a function."""
    found: dict[str, dict[int, None]] = {}
    for value in defined_in(func.body.block):
        for dim, extent in extents_of(value).items():
            found.setdefault(dim, {})[extent] = None
    return {dim: tuple(extents) for dim, extents in found.items()}


def check_extents(module: ModuleOp, wanted: Extents) -> None:
    """Raise PassFailedException for a dimension that no function of `module` has."""
    dims = {d for func in compute_functions(module) for d in extents_by_dim(func)}
    for dim in wanted:
        if dim not in dims:
            raise PassFailedException(
                f"pad: no value has the dimension {dim}; the dimensions of the module "
                f"are {', '.join(sorted(dims)) or 'not named, run decompose first'}"
            )


def new_extents(func: FuncOp, wanted: Extents) -> tuple[Extents, Extents]:
    """
    Return the true and the padded extents of the dimensions that become larger.

    A renamed dimension has the same extent under both names. Raises PassFailedException
    for extents that are smaller than the true ones, or that contradict each other.
    """
    name, extents = func.sym_name.data, extents_by_dim(func)
    padded = {dim: extent for dim, extent in wanted.items() if dim in extents}
    renames = [op for op in func.body.block.ops if isinstance(op, RenameOp)]
    views = [pair for op in renames for pair in op.renaming.items() if not op.reshapes]
    for old, new in (*views, *reversed(views)):
        for dim, other in ((old, new), (new, old)):
            if dim in padded and padded.setdefault(other, padded[dim]) != padded[dim]:
                raise OpError(
                    func,
                    f"pad: {dim} and {other} of @{name} are one dimension by two names "
                    f"and cannot be {padded[dim]} and {padded[other]}; name one of "
                    "them",
                )
    true = {dim: extents[dim][0] for dim in padded}
    for dim, extent in padded.items():
        if len(extents[dim]) > 1 or extent < true[dim]:
            has = " and ".join(map(str, extents[dim]))
            raise OpError(
                func,
                f"pad: {dim} = {has} of @{name} cannot be padded to {extent}; choose "
                "an extent that is as large, of a dimension that has one",
            )
    larger = {dim: extent for dim, extent in padded.items() if extent > true[dim]}
    return {dim: true[dim] for dim in larger}, larger


def suitable_extents(module: ModuleOp, system: SystemOp) -> tuple[Extents, ...]:
    """
    Return larger extents to try, those with the least padding first.

    Only for dimensions that may be sharded and that the number of instances does not
    divide, and for those with a large prime factor. They become multiples of the number
    of instances, or of twice that; if that needs too much padding, multiples of the
    number of instances along outer axes.
    """
    sizes = [*accumulate(system.axes.values(), mul)][::-1] or [1]
    sharded = {dim for dims in candidates(module) for dim in dims}
    extents = {
        dim: found[0]
        for func in compute_functions(module)
        for dim, found in extents_by_dim(func).items()
        if len(found) == 1 and found[0] > 1
    }
    uneven = {
        dim: extent
        for dim, extent in extents.items()
        if _largest_prime(extent) > LARGEST_PRIME
        or (dim in sharded and extent % sizes[0])
    }
    tried: dict[tuple[tuple[str, int], ...], Extents] = {}
    for tiles in (1, 2):
        found = {d: _rounded(n, (tiles * sizes[0], *sizes)) for d, n in uneven.items()}
        larger = {dim: n for dim, n in found.items() if n > extents[dim]}
        if larger:
            tried[*larger.items(),] = larger
    return tuple(tried.values())


def _rounded(extent: int, sizes: tuple[int, ...]) -> int:
    """Return the next multiple of the first of `sizes` that needs little padding."""
    limit = extent * (1 + MAX_PADDING)
    multiples = (ceil_div(extent, size) * size for size in sizes)
    return next((n for n in multiples if n <= limit), extent)


def _largest_prime(number: int) -> int:
    return max(_primes(number), default=1)


def _primes(number: int) -> Iterator[int]:
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            yield divisor
            number //= divisor
        divisor += 1
    if number > 1:
        yield number
