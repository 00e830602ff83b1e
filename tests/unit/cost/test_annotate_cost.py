"""`annotate-cost`: where estimates stand, whose they are, and what is rejected."""

import pytest
from accelerators import attached
from covering import fraction, one_of
from semantics import parse_module, run_passes
from tile_trees import fused, only_function, ops_of, tiled
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import ModelName
from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.collective import CollectiveOp
from comet.dialects.comet import CollectiveOp as CometCollectiveOp
from comet.dialects.comet import MappingOp, TileOp
from comet.dialects.cost import estimate_of
from comet.dialects.schedule.node import NodeOp

MODELS: tuple[ModelName, ...] = ("tool", "paper", "ideal")
LOOPS = {"DRAM": "M=3", "contract": "K=2", "map": "N=2"}


@pytest.mark.parametrize(
    ("strategy", "model"), fraction(("none", "partial", "full"), MODELS)
)
def test_the_whole_costs_what_its_files_cost(strategy: str, model: ModelName):
    tree = tiled(fused(strategy), **LOOPS)
    annotated = run_passes(tree, f"annotate-cost{{model={model}}}")
    figures = estimate_of(only_function(annotated))
    assert figures is not None
    lowered = estimate_module(run_passes(tree, "lower-to-comet"), model)
    assert figures.latency == pytest.approx(lowered.latency)
    assert figures.energy == pytest.approx(lowered.energy)
    assert figures.model == model


@one_of(2)
@pytest.mark.parametrize("strategy", ["partial", "full"])
def test_every_node_has_an_estimate(strategy: str):
    module = run_passes(tiled(fused(strategy), **LOOPS), "annotate-cost")
    nodes = [*ops_of(module, NodeOp), *ops_of(module, CollectiveOp)]
    figures = [estimate_of(op) for op in nodes]
    assert all(each is not None and each.latency >= 0 for each in figures)
    whole, (root, *_) = estimate_of(only_function(module)), figures
    assert whole is not None
    assert root is not None
    assert root.latency > 0


def test_nests_at_the_root_leave_it_to_the_function():
    module = run_passes(tiled(fused("none"), **LOOPS), "annotate-cost")
    func = only_function(module)
    nests = [op for op in func.body.block.ops if isinstance(op, NodeOp)]
    others = [op for op in ops_of(module, NodeOp) if op not in nests]
    assert [estimate_of(op) for op in nests] == [None] * 6
    assert all(estimate_of(op) is not None for op in others)


def test_a_mapping_is_annotated_too():
    module = run_passes(tiled(fused("full"), **LOOPS), "lower-to-comet,annotate-cost")
    (mapping,) = [op for op in module.walk() if isinstance(op, MappingOp)]
    nodes = [op for op in module.walk() if isinstance(op, TileOp | CometCollectiveOp)]
    assert all(estimate_of(op) is not None for op in (mapping, *nodes))


def test_a_second_run_replaces_the_figures():
    tree = tiled(fused("full"), **LOOPS)
    again = run_passes(tree, "annotate-cost{model=ideal},annotate-cost{model=paper}")
    figures = estimate_of(only_function(again))
    assert figures is not None
    assert figures.model == "paper"


def test_a_bound_stays_below_the_models():
    tree = tiled(fused("full"), **LOOPS)
    latencies: dict[str, float] = {}
    for model in MODELS:
        module = run_passes(tree, f"annotate-cost{{model={model}}}")
        figures = estimate_of(only_function(module))
        assert figures is not None
        latencies[model] = figures.latency
    assert latencies["ideal"] <= latencies["paper"]


def test_rejects_a_function_without_a_tree():
    text = "func.func @f() {\n  func.return\n}"
    module = run_passes(parse_module(text), attached(1))
    with pytest.raises(PassFailedException, match="@f has no tile tree; run fuse and"):
        run_passes(module, "annotate-cost")


def test_rejects_what_does_not_fit():
    module = fused("full", sizes=(2**14, 4, 32))
    with pytest.raises(PassFailedException, match="annotate-cost: "):
        run_passes(module, "annotate-cost")
