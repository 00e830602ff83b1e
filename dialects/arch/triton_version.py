"""
Versions of Triton, which compiles the kernels of a GPU, and what they compile.

A version is its major and its minor number.
"""

from __future__ import annotations

import re
from typing import TypeAlias

Version: TypeAlias = tuple[int, int]

OLDEST_TRITON: Version = (3, 6)
"""All modules without newer forms are compiled by this version and by newer ones."""
CLUSTERS_SINCE: Version = (3, 8)
"""The oldest version that compiles row reductions of clusters."""
FULL_ROWS_STORED: Version = (3, 9)
"""
From this version on, the stores of a cluster have the layout of whole rows: threads
beyond the columns of a block hold the same ones as others.
"""


def read_version(text: str) -> Version | None:
    """Return the version that a text says, as in 3.8, None if it says none."""
    found = re.fullmatch(r"(\d+)\.(\d+)", text)
    return None if found is None else (int(found[1]), int(found[2]))


def version_text(version: Version) -> str:
    """Return a version as text: 3.8."""
    return ".".join(map(str, version))
