"""
Functions of the schedule level for any size, from the templates in `schedules/`.

A template names the scopes of its tile tree in its first line, `// scopes: row M; ..`,
each with the dimensions that are split there. `$row(MN, f16, HBM)` is a tensor type of
the tiles of that scope (f32 and REG where not given); `$whole(..)` has the extents,
`$ref(..)` no level. `$count(N)` is the number of tiles, `$extent(N)` the extent. A
small letter is a second split of a dimension, into `$inner(M)` parts.
"""

import re
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "schedules"
TOKEN = re.compile(r"\$(\w+)\(([A-Z]*)(?:, (\w+))?(?:, (\w+))?\)")


def even(extent: int, parts: int) -> int:
    """Return the quotient, rounded up: tiles from factors, and factors from tiles."""
    return -(-extent // parts)


def schedule(name: str, extents: Mapping[str, int], tiles: Mapping[str, int]) -> str:
    """Return the module of a template at these extents and tiles, in elements."""
    text = (FOLDER / f"{name}.mlir").read_text()
    scopes = _scopes(text.splitlines()[0], extents, tiles)

    def spelled(token: re.Match[str]) -> str:
        scope, names, element, level = token.groups()
        if scope == "extent":
            return str(extents[names])
        if scope == "count":
            return str(even(extents[names], _tile(names, extents, tiles)))
        if scope == "inner":
            return str(even(_tile(names, extents, tiles), tiles[names.lower()]))
        place = "" if scope == "ref" else f" @{level or 'REG'}"
        shape = "".join(f"{scopes[scope][dim]}x" for dim in names)
        dims = ", ".join(names)
        return f"tensor<{shape}{element or 'f32'}, #compound.dims<{dims}{place}>>"

    return TOKEN.sub(spelled, text)


def _tile(dim: str, extents: Mapping[str, int], tiles: Mapping[str, int]) -> int:
    outer = extents[dim.upper()]
    return min(outer, tiles.get(dim.upper(), outer), tiles.get(dim, outer))


def _scopes(
    header: str, extents: Mapping[str, int], tiles: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """Read the scopes of a template; return the tiles of each."""
    scopes = {"whole": dict(extents), "ref": dict(extents)}
    for entry in header.removeprefix("// scopes: ").split(";"):
        name, *split = entry.split()
        inside = {dim.upper(): _tile(dim, extents, tiles) for dim in split}
        scopes[name] = {**extents, **inside}
    return scopes
