"""`triton-distributed{split=auto}` on several ranks: products of few results."""

from pathlib import Path

import pytest
from gpu_ranks import H200X8
from rank_runs import outcomes
from semantics import parse_module, run_passes
from triton_modules import emitted
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import attached_system
from comet.passes.graph.split import SplitPass
from comet.passes.graph.split.choose import products_by_operand
from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.passes.pipelines.triton_distributed.best_plans import best_splits

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


def chosen(text: str, ranks: int, options: str = "") -> list[SplitPass]:
    """Return the splits that the pipeline makes."""
    module = run_passes(parse_module(text), H200X8)
    pipeline = TritonDistributedPass(ranks, split=options or "auto", to="dataflow")
    found: list[SplitPass] = []
    for each in pipeline.passes(Context(), module):
        if each.name == "fuse":
            break
        each.apply(Context(), module)
        found += [each] if isinstance(each, SplitPass) else []
    return found


def test_products_that_a_rank_computes_alone_are_split() -> None:
    (found,) = chosen(PRODUCT.format(**FEW_RESULTS, **COLUMNS), 4)
    assert (found.dim, found.products) == ("K", "c")
    assert found.parts > 1


@pytest.mark.parametrize("shards", [GATHERED, SUMMED])
def test_products_with_an_exchange_are_not_split(shards: dict[str, str]) -> None:
    assert chosen(PRODUCT.format(**FEW_RESULTS, **shards), 4) == []


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
