"""The versions of the packages that decide about answers."""

from __future__ import annotations

from importlib.metadata import version

PACKAGES = ("comet-compiler", "xdsl", "numpy")
"""The packages whose versions an answer names."""


def versions() -> dict[str, str]:
    """Return the version of each package."""
    return {name: version(name) for name in PACKAGES}
