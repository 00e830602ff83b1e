"""Where collectives between clusters pay, and where they must not be used."""

from collections.abc import Sequence
from pathlib import Path

from covering import exhaustive
from programs import graph_text
from semantics import comet_context, parse_module, run_passes

from comet.passes.explore.constraints import Constraints
from comet.passes.explore.search import Exploration
from comet.passes.explore.space import StructureSpace
from comet.passes.explore.state import Best
from comet.passes.search import Cost, Goal
from comet.passes.sharding.dim_axes import Dims, parse_dims

SAMPLE = Path("samples/gemm_softmax.mlir").read_text()
ROW = graph_text("gemm_softmax", (1, 128, 1024))
ONE_CLUSTER = ("", "N:kx,ky", "M:kx,ky", "K:kx,ky")
CLUSTERS = ("N", "N:cx,cy", "N:cx,cy;K:kx,ky", "K:cx,cy;N:kx,ky", "K:cx,cy")


def space_of(text: str, dims: Sequence[str], limits: Constraints) -> StructureSpace:
    module = run_passes(
        parse_module(text), 'attach-hardware{path="samples/hardware/edge.yaml"}'
    )
    given: tuple[Dims, ...] = tuple(
        parse_dims(each.split(",")) if each else () for each in dims
    )
    limits = Constraints(
        dim=given, pad="none", kind=limits.kind, strategy=limits.strategy
    )
    return StructureSpace(comet_context(), module, Goal(), limits)


def least_bound(space: StructureSpace) -> float:
    """Return the cycles that no mapping of a space is below, without any search."""
    return min(space.goal.order(each.bound)[0] for each in space.structures())


def quick(space: StructureSpace) -> float:
    """Return the cycles of a mapping that comet-accelerator finds at once."""
    found = space.default()
    assert found is not None
    return found.cost.latency


@exhaustive
def test_a_collective_beats_every_mapping_on_one_cluster():
    """N over the clusters, whose row statistics are reduced between them."""
    limits = Constraints(kind=("reduce_broadcast",), strategy=("full",))
    spread = quick(space_of(SAMPLE, ["N:cx,cy;M:kx,ky"], limits))
    alone = Exploration(space_of(SAMPLE, ONE_CLUSTER, Constraints()))
    known = Best("1.5 times as long", (), Cost(1.5 * spread))
    alone.best = known
    alone.run()
    assert alone.proven
    assert alone.best is known


def test_one_row_must_not_be_spread_over_clusters():
    """All mappings that exchange between clusters are slower than one on one."""
    limits = Constraints(strategy=("isolate_contractions",))
    alone = quick(space_of(ROW, ["N:kx,ky"], limits))
    assert least_bound(space_of(ROW, CLUSTERS, Constraints())) > 1.1 * alone
