"""Accelerators like the edge sample, with any number of clusters and cores."""

import atexit
from collections.abc import Mapping, Sequence
from functools import cache
from os import getpid
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import plain_yaml
import yaml
from paths import HARDWARE

EDGE = HARDWARE / "edge.yaml"
CORES: Mapping[str, tuple[int, int]] = {"IB": (2, 2), "WB": (2, 2), "OB": (2, 2)}

MACHINES: Mapping[int, tuple[tuple[int, int], tuple[int, int]]] = {
    1: ((1, 1), (1, 1)),
    2: ((2, 1), (1, 1)),
    4: ((2, 1), (1, 2)),
    8: ((2, 2), (2, 1)),
    16: ((2, 2), (2, 2)),
}
"""Clusters and cores per cluster, each (X, Y), by the number of cores in all."""


@cache
def edge_like(clusters: tuple[int, int], cores: tuple[int, int]) -> str:
    """
    Return the path of a hardware file: the edge sample with other mesh shapes.

    The stem names the machine, so the mesh is called @edge.
    """
    fields = plain_yaml.load(EDGE.read_text())
    shapes = {"GB": clusters, **dict.fromkeys(CORES, cores)}
    _reshape(fields["Hierarchy"], shapes)
    folder = mkdtemp(prefix="comet-test-")
    atexit.register(_remove, folder, getpid())
    path = Path(folder) / "edge.yaml"
    path.write_text(yaml.safe_dump(fields, sort_keys=False))
    return str(path)


def _remove(folder: str, maker: int) -> None:
    """Remove `folder`; processes that were forked from its maker leave it alone."""
    if getpid() == maker:
        rmtree(folder, ignore_errors=True)


def _reshape(nodes: Sequence[dict[str, Any]], shapes: Mapping[str, Any]) -> None:
    for node in nodes:
        name = node["name"].partition("[")[0]
        if name in shapes:
            x, y = shapes[name]
            node["name"] = f"{name}[0..{x * y - 1}]"
            node["attributes"] |= {"meshX": x, "meshY": y}
        for below in ("connects", "fills", "drains"):
            _reshape(node.get(below, ()), shapes)


def attached(machine: int) -> str:
    """Return the pass that attaches the machine with that many cores."""
    return f'attach-hardware{{path="{edge_like(*MACHINES[machine])}"}}'
