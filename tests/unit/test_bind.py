"""`bind`: kinds, dependence, and the choice by cost."""

import pytest
from programs import graph_text
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import attached_system
from comet.dialects.schedule_attributes import BindingAttr, BindingKind
from comet.passes.annotate_cost import lowered_estimate
from comet.passes.functions import compute_functions

TILED = (
    'attach-hardware{path="samples/hardware/edge.yaml"},decompose{accumulator=input},'
    "distribute{dim=N axes=cx,cy,kx,ky},insert-collectives,place-collectives{at=GB},"
    'fuse{strategy=full},tile{factors="DRAM: M=2"}'
)


@pytest.fixture(scope="module")
def tiled() -> ModuleOp:
    return run_passes(parse_module(graph_text("gemm_softmax", (24, 12, 64))), TILED)


def kinds(module: ModuleOp) -> list[BindingKind]:
    found = (op.attributes.get("schedule.bind") for op in module.walk())
    return [attr.data for attr in found if isinstance(attr, BindingAttr)]


@pytest.mark.parametrize("kind", ["sequential", "pipeline"])
def test_every_sibling_but_the_last_is_bound(tiled: ModuleOp, kind: str):
    bound = run_passes(tiled, f"bind{{kind={kind}}}")
    bound.verify()
    assert set(kinds(bound)) == {BindingKind(kind)}
    assert len(kinds(bound)) == 7
    assert_same_meaning(tiled, bound, "main")


def test_dependent_siblings_cannot_run_in_parallel(tiled: ModuleOp):
    with pytest.raises(PassFailedException, match="they cannot run in parallel"):
        run_passes(tiled, "bind{kind=parallel}")


def test_auto_is_never_worse_than_sequential(tiled: ModuleOp):
    latencies = [_latency(run_passes(tiled, f"bind{{kind={kind}}}")) for kind in KINDS]
    assert latencies[1] <= latencies[0]


KINDS = ("sequential", "auto")


def _latency(module: ModuleOp) -> float:
    func = next(iter(compute_functions(module)))
    system = attached_system(module)
    return lowered_estimate(func, system, "paper", absorb=True).latency
