"""
What launch plans decide: all-reduces send all terms or shards, and fewer kernels.
"""

from pathlib import Path

import pytest
from covering import one_of
from gpu_graphs import H200, LAYERNORM
from gpu_ranks import H200X8, SHARED_TEXTS
from semantics import parse_module, run_passes
from triton_modules import emitted, wrong
from xdsl.utils.exceptions import PassFailedException

from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.passes.search.record import Choice, session

SHARDS = "reduce_scatter_all_gather"


def compiled(rows: int, ranks: int, options: str = "") -> tuple[str, list[Choice]]:
    """Return the launch plan of a product of so many rows, and the choice of sums."""
    text = SHARED_TEXTS["gemm_all_reduce"].format(M=rows, N=2048, K=64)
    pipeline = f"triton-distributed{{ranks={ranks} to=dataflow {options}}}"
    with session() as record:
        plan = run_passes(parse_module(text), f"{H200X8},{pipeline}")
    return str(plan), [each for each in record.choices if each.name == "all-reduces"]


@one_of(2)
@pytest.mark.parametrize("pattern", ["bsp", "fused"])
def test_many_rows_are_summed_in_shards(pattern: str):
    plan, (choice,) = compiled(512, 8, f"pattern={pattern}")
    costs = {row.label: row.cost for row in choice.rows}
    one, shards = costs["allreduce"], costs[SHARDS]
    assert one is not None
    assert shards is not None
    assert shards.latency < one.latency
    assert plan == compiled(512, 8, f"pattern={pattern} kind={SHARDS}")[0]


@pytest.mark.parametrize(("rows", "ranks"), [(16, 4), (512, 2)])
def test_nothing_is_tried_that_saves_less_than_an_exchange(rows: int, ranks: int):
    plan, choices = compiled(rows, ranks, "pattern=fused")
    assert not choices
    assert plan == compiled(rows, ranks, "pattern=fused kind=allreduce")[0]


def test_one_op_stays_where_shards_take_longer():
    plan, (choice,) = compiled(64, 4, "pattern=bsp")
    assert choice.chosen == 0
    assert plan == compiled(64, 4, "pattern=bsp kind=allreduce")[0]


def test_sums_in_shards_are_right(tmp_path: Path):
    sources = {
        f"{pattern}_{ranks}_{m}": emitted(
            SHARED_TEXTS["gemm_all_reduce"].format(M=m, N=n, K=19),
            f"{H200X8},triton-distributed{{ranks={ranks} kind={SHARDS} {options}}}",
        )
        for pattern, ranks, (m, n), options in (
            ("push", 3, (7, 5), "pattern=push"),
            ("persistent", 4, (3, 9), "pattern=fused persistent=true"),
            ("pull", 3, (1, 17), "pattern=pull"),
        )
    }
    assert wrong(sources, tmp_path) == []


def test_groups_exchange_parts_of_reductions_in_one_way():
    with pytest.raises(PassFailedException, match=r"'kind' asks for reduce_sc.*ctas=1"):
        TritonDistributedPass(ranks=2, ctas=2, kind=SHARDS)


RING = """
!q = tensor<1x16x{M}x64xbf16>
func.func @f(%q: !q {{collective.shard = {{M = ["rank"]}}}},
             %k: !q {{collective.shard = {{N = ["rank"]}}}},
             %v: !q {{collective.shard = {{N = ["rank"]}}}})
    -> (!q {{collective.shard = {{M = ["rank"]}}}}) {{
  %o = compound.attention %q, %k, %v {{collective.shard = {{M = ["rank"]}}}}
      : (!q, !q, !q) -> !q
  func.return %o : !q
}}
"""


def kernels_of_ranks(rows: int, options: str) -> tuple[str, list[Choice]]:
    """Return the launch plan of attention on 8 ranks, and the choice of kernels."""
    pipeline = f"triton-distributed{{ranks=8 to=dataflow {options}}}"
    with session() as record:
        plan = run_passes(parse_module(RING.format(M=rows)), f"{H200X8},{pipeline}")
    found = [each for each in record.choices if each.name == "kernels of ranks"]
    return str(plan), found


def test_ranks_launch_fewer_kernels_where_their_launch_plan_is_faster():
    """Alone, the scores of 4096 tokens are a faster kernel; with its exchange not."""
    plan, (choice,) = kernels_of_ranks(4096, "pattern=fused")
    costs = {row.label: row.cost.latency for row in choice.rows if row.cost}
    assert set(costs) == {"auto", "priority", "full"}
    best = min(costs, key=costs.__getitem__)
    assert costs[best] < costs["auto"]
    assert plan == kernels_of_ranks(4096, f"pattern=fused strategy={best}")[0]


def test_a_region_with_one_product_has_no_other_kernels_to_compare():
    text = SHARED_TEXTS["gemm_all_reduce"].format(M=16, N=64, K=64)
    with session() as record:
        run_passes(parse_module(text), f"{H200X8},triton-distributed{{ranks=2}}")
    assert not [each for each in record.choices if each.name == "kernels of ranks"]


def test_groups_with_many_bytes_have_nothing_to_choose():
    """Mean and variance of 65,536 rows: an exchange between ranks would gain."""
    text = LAYERNORM.format(M=65536, K=256, N=256)
    options = "ctas=4 to=dataflow"
    with session() as record:
        _ = run_passes(parse_module(text), f"{H200},triton-distributed{{{options}}}")
    assert not [each for each in record.choices if each.name == "all-reduces"]
