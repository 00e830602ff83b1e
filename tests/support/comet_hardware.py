"""The architecture file, as the rules need it; read straight from the YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, isqrt
from typing import Any, cast

import plain_yaml

UNITS = ("SystolicArray", "VSIMD", "GEMM", "MAC", "intmac")
"""The compute tiles whose names the tool has a model for."""

MESHES = ((1, 1), (2, 2), (4, 4), (16, 16))
"""The mesh shapes whose hop counts the tool knows."""

Attributes = Mapping[str, Any]


@dataclass
class Level:
    """A memory level or compute unit, with the links from all its parents merged."""

    name: str
    kind: str
    is_compute: bool
    attributes: Attributes
    """What the memory or compute type says."""
    link: Attributes
    """What the hierarchy says of the network from the parent."""
    children: list[str] = field(default_factory=list[str])
    instances: int = 1

    @property
    def capacity(self) -> int:
        """Bytes that one instance holds."""
        return self.attributes.get("width", 1) * self.attributes.get("depth", 1)

    def mesh_for(self, copies: int) -> tuple[int, int]:
        """Return the mesh that the tool lays `copies` receivers out on."""
        edge = isqrt(copies - 1) + 1 if copies > 1 else 1
        x, y = self.link.get("meshX", 0), self.link.get("meshY", 0)
        if not x or (x >= edge and y >= edge):
            return edge, edge
        if x >= edge:
            return ceil(copies / y), y
        if y >= edge:
            return y, ceil(copies / y)
        return x, y


def read_levels(text: str) -> dict[str, Level]:
    """Return all levels of an architecture file by name."""
    file = cast(dict[str, Any], plain_yaml.load(text))
    kinds: dict[str, Attributes] = {
        kind["name"]: kind.get("attributes", {})
        for kind in (*file["ComputeTiles"], *file["MemoryTypes"])
    }
    levels: dict[str, Level] = {}
    for node in file["Hierarchy"]:
        for _ in _add(levels, kinds, node):
            pass
    return levels


def _add(
    levels: dict[str, Level], kinds: Mapping[str, Attributes], node: dict[str, Any]
) -> Iterator[str]:
    name = str(node["name"]).split("[")[0]
    link = cast(Attributes, node.get("attributes", {}))
    level = levels.setdefault(
        name,
        Level(name, node["type"], "is_compute" in node, kinds[node["type"]], link),
    )
    mesh = link.get("mesh", (link.get("meshX", 1), link.get("meshY", 1)))
    level.instances = mesh[0] * mesh[1]
    for path in ("connects", "drains", "fills"):
        for child in node.get(path, ()):
            level.children.extend(_add(levels, kinds, child))
    yield name
