"""Launch plans that are compared more than once are compiled once, and no others."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from forgetting import forget_choices
from gpu_ranks import H200X8
from paths import ROOT
from semantics import parse_module, run_passes
from sharded_programs import MOVES, Sizes
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from comet.cost.gpu.taxes import PlanTime
from comet.passes.pipelines.triton_distributed import TritonDistributedPass, best_plans
from comet.passes.pipelines.triton_distributed.best_plans import time_of
from comet.passes.search import session

PRODUCT = """
!a = tensor<16x512xf16, #compound.dims<M, K>>
!b = tensor<512x64xf16, #compound.dims<K, N>>
!c = tensor<16x64xf32, #compound.dims<M, N>>
func.func @f(%a: !a {collective.shard = {K = ["rank"]}},
             %b: !b {collective.shard = {K = ["rank"]}}) -> !c {
  %c = compound.contract %a, %b : !a, !b -> !c
  func.return %c : !c
}
"""
BSP = TritonDistributedPass(ranks=4, pattern="bsp", strategy="none", split="none")
MI300X8 = f'attach-hardware{{path="{ROOT}/samples/hardware/mi300x8.yaml"}}'


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[ModuleOp]:
    """The modules that are compiled to be timed."""
    forget_choices(monkeypatch)
    found, time_after = list[ModuleOp](), best_plans.time_after

    def noting(
        ctx: Context, module: ModuleOp, passes: Iterator[ModulePass]
    ) -> PlanTime:
        found.append(module)
        return time_after(ctx, module, passes)

    monkeypatch.setattr(best_plans, "time_after", noting)
    return found


def timed(pipeline: TritonDistributedPass, text: str, hardware: str) -> float:
    """Return what a launch plan takes, in nanoseconds."""
    module, ctx = run_passes(parse_module(text), hardware), Context()
    passes = pipeline.passes(ctx, module)
    return round(1e9 * float(time_of(ctx, module, passes, pipeline.after_fusion)))


def test_equal_plans_are_compiled_once(compiled: list[ModuleOp]) -> None:
    """Options of passes before `fuse` show in the module alone."""
    said = replace(BSP, dim=("K",))
    first, again = (timed(each, PRODUCT, H200X8) for each in (BSP, said))
    assert first == again > 0
    assert len(compiled) == 1


@pytest.mark.parametrize(
    ("pipeline", "text", "hardware"),
    [
        (replace(BSP, pattern="push"), PRODUCT, H200X8),
        (replace(BSP, launches="none"), PRODUCT, H200X8),
        (replace(BSP, strategy="full"), PRODUCT, H200X8),
        (replace(BSP, kind="reduce_scatter_all_gather"), PRODUCT, H200X8),
        (BSP, PRODUCT.replace("512", "1024"), H200X8),
        (BSP, PRODUCT, MI300X8),
    ],
    ids=["pattern", "launches", "strategy", "all-reduces", "extents", "hardware"],
)
def test_other_plans_are_compiled(
    pipeline: TritonDistributedPass,
    text: str,
    hardware: str,
    compiled: list[ModuleOp],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timed(BSP, PRODUCT, H200X8)
    after_another = timed(pipeline, text, hardware)
    assert len(compiled) == 2
    forget_choices(monkeypatch)
    assert after_another == timed(pipeline, text, hardware)


def test_trials_of_one_module_have_plans_in_common(compiled: list[ModuleOp]) -> None:
    """
    A trial of a sharding ends with the plan of its fastest all-reduces; then strategies
    are compared with the one that trials have.
    """
    wide: Sizes = {"T": 8, "D": 4096, "F": 16384}
    module = parse_module(MOVES["tokens alone"][0](wide, {}))
    options = "ranks=8 pattern=bsp split=none"
    with session() as current:
        run_passes(module, f"{H200X8},triton-distributed{{{options}}}")
    rows = {choice.name: len(choice.rows) for choice in current.choices}
    trials, forms = rows["plans of shardings"], rows["all-reduces"]
    strategies = rows["kernels of ranks"]
    assert len(compiled) == trials - 1 + forms + strategies - 1
