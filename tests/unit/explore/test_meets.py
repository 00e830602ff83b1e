"""Which constraints the passes of a mapping do not meet."""

from functools import cache

import pytest
from programs import graph_text
from semantics import comet_context, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp

from comet.api.saved import mapping_passes
from comet.passes.explore.constraints import read_constraints
from comet.passes.explore.meets import unmet

PASSES = (
    'decompose{accumulator=input},pad{to="M=16"},distribute{dim=M axes=cx,cy},'
    "insert-collectives,place-collectives{at=GB kind=allreduce},fuse{strategy=full},"
    'tile{factors="y_dram: N=2 K=4"}'
)


@cache
def gemm() -> ModuleOp:
    attach = 'attach-hardware{path="samples/hardware/edge.yaml"}'
    return run_passes(parse_module(graph_text("gemm", (13, 8, 16))), attach)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", None),
        ("stream: false", None),
        ("stream: true", "stream"),
        ("strategy: [none, full]", None),
        ("strategy: none", "strategy"),
        ("chunks: root", "chunks"),
        ("loops: separate", "loops"),
        ('pad: "M=16"', None),
        ('pad: "M=32"', "pad"),
        ("pad: none", "pad"),
        ('dim: [N, "M:cx,cy"]', None),
        ("dim: M", "dim"),
        ('dim: ["", "M:kx,ky", "K:cx,cy"]', "dim"),
        ("kind: [auto, reduce_broadcast]", None),
        ("kind: reduce_broadcast", "kind"),
        ("at: OB", "at"),
        ("at: all", None),
        ('factors: "y_dram: K=4 M=1"', None),
        ('factors: "y_dram: K=2"', "factors"),
    ],
)
def test_unmet(text: str, key: str | None):
    limits = read_constraints(text, "limits.yaml")
    assert unmet(mapping_passes(PASSES), limits, comet_context(), gemm()) == key
