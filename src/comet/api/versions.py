"""The versions of the packages and of the source on which answers depend."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("comet-compiler", "xdsl", "numpy")
"""The packages whose versions an answer names."""

DECIDING = (
    "comet.api",
    "comet.codegen",
    "comet.cost",
    "comet.dialects",
    "comet.hardware_file",
    "comet.passes",
    "comet.yaml_file",
)
"""The packages and modules that read, map and price programs."""


def versions() -> dict[str, str]:
    """Return the version of each package."""
    return {name: version(name) for name in PACKAGES}


@cache
def source_digest() -> str:
    """
    Return the SHA-256 of the source files on which answers depend, read once.

    These are comet's, and those of the packages that publish passes, dialects or
    targets: they may change without a new version.
    """
    specs = filter(None, map(find_spec, (*DECIDING, *publishers())))
    files = (Path(spec.origin) for spec in specs if spec.origin is not None)
    return digest_of(file.parent if file.stem == "__init__" else file for file in files)


def publishers() -> list[str]:
    """Return the packages, other than xDSL and comet, that publish parts of xDSL."""
    found = entry_points(group="xdsl.universe")
    packages = {entry.module.partition(".")[0] for entry in found}
    return sorted(packages - {"comet", "xdsl"})


def digest_of(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of Python files, or of those in folders, and their names."""
    found = sha256()
    for path in paths:
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        for file in files:
            name = file.relative_to(path.parent).as_posix().encode()
            for part in (name, file.read_bytes()):
                found.update(len(part).to_bytes(8) + part)
    return found.hexdigest()
