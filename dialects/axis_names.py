"""The names of mesh axes, which the text of a mesh writes without quotes."""

from __future__ import annotations

from collections.abc import Iterable


def misnamed_axis(names: Iterable[str]) -> str:
    """Return an error about the first name that is no identifier, '' without one."""
    for name in names:
        if not (name.isascii() and name.isidentifier()):
            return (
                f"has the axis name {name!a}, which is not an identifier; write "
                "letters, digits and underscores"
            )
    return ""
