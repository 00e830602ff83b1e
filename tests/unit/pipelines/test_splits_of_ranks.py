"""`triton-distributed{split=auto}` on several ranks: products of few results."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from forgetting import forget_choices
from gpu_ranks import H200X8
from paths import ROOT
from rank_runs import outcomes
from semantics import parse_module, run_passes
from triton_modules import emitted
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import attached_system
from comet.passes.graph.split import SplitPass, choose
from comet.passes.graph.split.choose import Trials, products_by_operand
from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.passes.pipelines.triton_distributed.best_plans import best_splits

MI300X8 = f'attach-hardware{{path="{ROOT}/samples/hardware/mi300x8.yaml"}}'
PRODUCT = """
!a = tensor<{M}x{K}xf16, #compound.dims<M, K>>
!b = tensor<{K}x{N}xf16, #compound.dims<K, N>>
!c = tensor<{M}x{N}xf32, #compound.dims<M, N>>
func.func @f(%a: !a {{collective.shard = {{{A}}}}},
             %b: !b {{collective.shard = {{{B}}}}})
             -> (!c {{collective.shard = {{{C}}}}}) {{
  %c = compound.contract %a, %b : !a, !b -> !c
  func.return %c : !c
}}
"""
COLUMNS = {"A": "", "B": 'N = ["rank"]', "C": 'N = ["rank"]'}
GATHERED = {**COLUMNS, "C": ""}
SUMMED = {"A": 'K = ["rank"]', "B": 'K = ["rank"]', "C": ""}
FEW_RESULTS = {"M": 16, "N": 512, "K": 8192}


@dataclass(frozen=True)
class Case:
    """A program, and how it is compiled."""

    text: str
    ranks: int = 4
    merge: str = "auto"
    hardware: str = H200X8


FEW = Case(PRODUCT.format(**FEW_RESULTS, **COLUMNS))


def chosen(case: Case) -> list[SplitPass]:
    """Return the splits that the pipeline makes."""
    module = run_passes(parse_module(case.text), case.hardware)
    pipeline = TritonDistributedPass(case.ranks, merge=case.merge, to="dataflow")
    found: list[SplitPass] = []
    for each in pipeline.passes(Context(), module):
        if each.name == "fuse":
            break
        each.apply(Context(), module)
        found += [each] if isinstance(each, SplitPass) else []
    return found


def test_products_that_a_rank_computes_alone_are_split() -> None:
    (found,) = chosen(FEW)
    assert (found.dim, found.products) == ("K", "c")
    assert found.parts > 1


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Trials]:
    """The trials of splits of products."""
    forget_choices(monkeypatch)
    found, fastest = list[Trials](), choose.fastest_splits

    def noting(
        trials: Trials, options: Sequence[Sequence[SplitPass]]
    ) -> list[SplitPass]:
        if trials.names:
            found.append(trials)
        return fastest(trials, options)

    monkeypatch.setattr(choose, "fastest_splits", noting)
    return found


def test_products_of_equal_modules_are_tried_once(tried: list[Trials]) -> None:
    first, again = (chosen(FEW) for _ in range(2))
    assert first == again != []
    assert len(tried) == 1


@pytest.mark.parametrize(
    "other",
    [
        replace(FEW, text=FEW.text.replace("8192", "4096")),
        replace(FEW, text=FEW.text.replace("%c", "%d")),
        replace(FEW, ranks=2),
        replace(FEW, merge="launch"),
        replace(FEW, hardware=MI300X8),
    ],
    ids=["extents", "names", "ranks", "merge", "hardware"],
)
def test_other_products_are_tried(other: Case, tried: list[Trials]) -> None:
    """Also if only passes that follow are others."""
    chosen(FEW)
    chosen(other)
    assert len(tried) == 2


@pytest.mark.parametrize("shards", [GATHERED, SUMMED])
def test_products_with_an_exchange_are_not_split(shards: dict[str, str]) -> None:
    assert chosen(Case(PRODUCT.format(**FEW_RESULTS, **shards))) == []


def test_terms_are_exchanged_whoever_needs_their_sums() -> None:
    text = PRODUCT.format(**FEW_RESULTS, **SUMMED)
    unstated = text.replace("(!c {collective.shard = {}})", "!c")
    assert unstated != text
    module = run_passes(
        parse_module(unstated), f"{H200X8},select-ranks{{ranks=4}},propagate-shardings"
    )
    assert not list(products_by_operand(module))


def test_programs_are_those_of_a_shard() -> None:
    """A quarter of the columns leaves programs for four times as many parts."""
    text = PRODUCT.format(M=64, N=16384, K=8192, **COLUMNS)
    most: list[int] = []
    for ranks in (1, 4):
        prepared = f"{H200X8},select-ranks{{ranks={ranks}}},propagate-shardings"
        module = run_passes(parse_module(text), prepared)
        (group,) = products_by_operand(module)
        gpu = device_of(attached_system(module))
        most.append(max(split.parts for split in group.splits(gpu)))
    assert most[1] == 4 * most[0]


@pytest.mark.parametrize("shards", [COLUMNS, GATHERED])
def test_ranks_compute_the_right_result(shards: dict[str, str], tmp_path: Path) -> None:
    text = PRODUCT.format(M=3, N=20, K=64, **shards)
    options = 'ranks=2 split="K=4: c" merge=last pattern=auto'
    source = emitted(text, f"{H200X8},triton-distributed{{{options}}}")
    # The last program to arrive adds up the parts, but of what ranks exchange.
    assert ("arrive_last(" in source) == (shards is COLUMNS)
    assert outcomes({"split": source}, tmp_path, seeds=2) == {"split": "right"}


def test_splits_are_left_out_where_the_launch_plan_is_slower() -> None:
    module = run_passes(parse_module(PRODUCT.format(M=3, N=4, K=8, **COLUMNS)), H200X8)
    splits = (SplitPass("K", 2, "c"),)
    assert best_splits(module, splits, lambda tried: float(len(tried))) == ()
    assert best_splits(module, splits, lambda tried: -float(len(tried))) == splits


def test_there_are_none_where_no_plan_has_a_price() -> None:
    def rejected(_: object) -> float:
        raise PassFailedException

    module = run_passes(parse_module(PRODUCT.format(M=3, N=4, K=8, **COLUMNS)), H200X8)
    assert best_splits(module, (SplitPass("K", 2, "c"),), rejected) == ()


def test_without_splits_no_launch_plan_is_priced() -> None:
    def never(_: object) -> float:
        raise AssertionError

    assert best_splits(ModuleOp([]), (), never) == ()
