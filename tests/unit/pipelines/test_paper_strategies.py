"""The four strategies of the COMET paper, each a set of options of one pipeline."""

from functools import cache
from itertools import product

import pytest
from comet_rules import check
from covering import covering, fraction, one_of
from programs import graph_text
from semantics import assert_same_meaning, parse_module, run_passes
from tile_trees import tiled
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.comet import write_files
from comet.dialects.arch import attached_system
from comet.dialects.collective import GatherOp
from comet.dialects.comet import CollectiveOp, TileOp
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import Combiner
from comet.kinds import CollectiveKind
from comet.passes.explore.config import ShardingConfig
from comet.passes.pipelines.comet_accelerator import CometAcceleratorPass
from comet.passes.sharding.dim_axes import DimAxes

STRATEGIES = {
    "unfused": CometAcceleratorPass(strategy="none"),
    "fused-dist": CometAcceleratorPass(strategy="isolate_contractions"),
    "fused-GEMM-dist": CometAcceleratorPass(strategy="full"),
    "fused-GEMM-root": CometAcceleratorPass(
        strategy="full", op="contract", kind="gather"
    ),
}
OPS = ("gemm_softmax", "gemm_layernorm")
HARDWARE = ("edge", "cloud")
SIZES = (6, 8, 256)
"""(M, K, N): the cores of both machines share N whole."""

every = pytest.mark.parametrize("strategy", STRATEGIES)
both = pytest.mark.parametrize("op", OPS)
machines = pytest.mark.parametrize("hardware", HARDWARE)


def attach(op: str, hardware: str) -> ModuleOp:
    module = parse_module(graph_text(op, SIZES))
    return run_passes(
        module,
        f'attach-hardware{{path="samples/hardware/{hardware}.yaml"}},'
        "decompose{accumulator=input}",
    )


def stages(options: CometAcceleratorPass, module: ModuleOp) -> list[str]:
    """Return the passes of the pipeline after `decompose`."""
    config = ShardingConfig(None, False, (DimAxes("N"),), {})
    sharding = options.sharding_passes(module, attached_system(module), config)
    return [str(part) for part in (*sharding, *options.mapping_passes())]


def after(module: ModuleOp, stage: str) -> ModuleOp:
    """Return the module after a pass; loops are given, as their search takes long."""
    tiles = stage.startswith("tile")
    return tiled(module, map="M=2") if tiles else run_passes(module, stage)


@cache
def compiled(op: str, hardware: str, strategy: str, last: str) -> ModuleOp:
    """Return the module after the pass `last` of the pipeline."""
    module = attach(op, hardware)
    for stage in stages(STRATEGIES[strategy], module):
        module = after(module, stage)
        if stage.startswith(last):
            break
    return module


@one_of(4)
@pytest.mark.parametrize(
    ("op", "strategy", "hardware"), covering(product(OPS, STRATEGIES, HARDWARE))
)
def test_every_pass_keeps_the_meaning(op: str, hardware: str, strategy: str):
    before = module = attach(op, hardware)
    for stage in stages(STRATEGIES[strategy], module):
        if stage.startswith("annotate-cost"):
            break
        module = after(module, stage)
        assert_same_meaning(before, module, "main")


@one_of(2)
@pytest.mark.parametrize(("op", "strategy"), fraction(OPS, [*STRATEGIES]))
def test_the_files_break_no_rule(op: str, strategy: str):
    module = compiled(op, "cloud", strategy, "lower-to-comet")
    assert check(write_files(module)) == []


@one_of(2)
@both
@pytest.mark.parametrize(
    ("strategy", "nests"),
    [
        ("unfused", {"gemm_softmax": 6, "gemm_layernorm": 12}),
        ("fused-dist", {"gemm_softmax": 2, "gemm_layernorm": 2}),
        ("fused-GEMM-dist", {"gemm_softmax": 1, "gemm_layernorm": 1}),
        ("fused-GEMM-root", {"gemm_softmax": 1, "gemm_layernorm": 1}),
    ],
)
def test_what_is_fused(op: str, strategy: str, nests: dict[str, int]):
    tree = compiled(op, "edge", strategy, "fuse")
    found = [
        node
        for node in tree.walk()
        if isinstance(node, TemporalOp) and not isinstance(node.parent_op(), SpatialOp)
    ]
    assert len(found) == nests[op]


@machines
@both
def test_the_product_reaches_one_cluster_by_a_gather(op: str, hardware: str):
    tree = compiled(op, hardware, "fused-GEMM-root", "fuse")
    (gather,) = [node for node in tree.walk() if isinstance(node, GatherOp)]
    assert gather.axis_names == ("cx", "cy")
    clusters = [
        node
        for node in tree.walk()
        if isinstance(node, SpatialOp)
        and {row.axis for row in node.loops} == {"cx", "cy"}
    ]
    assert [node.combiners for node in clusters] == [(Combiner.ROOT,)]


@one_of(2)
@machines
@both
def test_what_one_cluster_writes_has_no_copies(op: str, hardware: str):
    """The result leaves one cluster; the operands of the product enter all."""
    lowered = compiled(op, hardware, "fused-GEMM-root", "lower-to-comet")
    (clusters,) = [
        node
        for node in lowered.walk()
        if isinstance(node, TileOp)
        and not node.is_temporal
        and node.entries[0].target == "DRAM"
    ]
    copies = {
        (entry.tag, entry.wb_output): entry.factor("N") for entry in clusters.entries
    }
    count = {"edge": 4, "cloud": 16}[hardware]
    assert {n for (_, written), n in copies.items() if written} == {1}
    assert copies["GEMM", False] == count


@both
def test_the_files_say_the_gather_along_n(op: str):
    lowered = compiled(op, "edge", "fused-GEMM-root", "lower-to-comet")
    (gather,) = [node for node in lowered.walk() if isinstance(node, CollectiveOp)]
    assert gather.kind.data is CollectiveKind.GATHER
    assert gather.dimension is not None
    assert gather.dimension.data == "N"


def test_a_product_apart_is_for_accelerators():
    module = parse_module(graph_text("gemm_softmax", SIZES))
    pipeline = 'attach-hardware{path="samples/hardware/h200x1.yaml"},decompose'
    with pytest.raises(
        PassFailedException, match="strategy=isolate_contractions is for accelerators"
    ):
        run_passes(module, f"{pipeline},fuse{{strategy=isolate_contractions}}")
