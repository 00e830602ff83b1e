"""The choice between two kernels and groups of programs that exchange."""

import re

import pytest
from covering import one_of
from gpu_ranks import H200X8, TEXTS
from group_programs import H200
from semantics import comet_context, parse_module, run_passes
from xdsl.utils.exceptions import PassFailedException

from comet.passes.pipelines.triton_distributed.over_ranks import group_sizes
from comet.passes.search.record import session
from comet.passes.sharding.dim_axes import DimAxes


def chosen(rows: int, columns: int, options: str = "") -> str:
    """Return the launch plan for so many rows and columns."""
    text = TEXTS["softmax"].format(M=rows, N=columns, K=1024)
    pipeline = f"{H200},triton-distributed{{ctas=auto to=dataflow {options}}}"
    return str(run_passes(parse_module(text), pipeline))


def test_long_rows_are_shared_and_short_ones_are_not():
    assert "coresident 4" in chosen(4096, 1024)
    assert "coresident" not in chosen(16384, 256)


def test_groups_are_of_one_rank_on_a_machine_with_more():
    text = TEXTS["softmax"].format(M=64, N=256, K=32)
    passes = f"{H200X8},triton-distributed{{ctas=2 to=dataflow}}"
    made = str(run_passes(parse_module(text), passes))
    assert "collective.mesh @h200x8 {rank = 1, cta = 2}" in made
    assert "dataflow.push root" not in made


@one_of(2)
@pytest.mark.parametrize(("terms", "stages"), [(4, 2), (2, 1)])
def test_one_stage_is_left_where_two_do_not_fit(terms: int, stages: int):
    """Tiles of 512 terms are 64 and 128 KiB; programs that exchange have 3 or 2."""
    text = TEXTS["softmax"].format(M=64, N=256, K=1024)
    plan = f"p: M=1; p_m: M=1; c_k: K={terms}; m_n: N=1; m_cta_part: cta_part=1"
    options = f'ctas=2 strategy=full to=dataflow factors="{plan}"'
    made = run_passes(parse_module(text), f"{H200},triton-distributed{{{options}}}")
    found = re.findall(r"#schedule.launch<warps = \d+, stages = (\d)", str(made))
    assert found == [str(stages)]


def test_groups_whose_shares_are_padded_run_at_the_same_time():
    """Shards of 188 columns are blocks of 256, of which twelve have all columns."""
    text = TEXTS["softmax"].format(M=5000, N=3000, K=96)
    passes = f"{H200},triton-distributed{{ctas=16 to=dataflow}}"
    made = str(run_passes(parse_module(text), passes))
    (groups,) = re.findall(r"on grid \[g0: M = (\d+)\]", made)
    assert int(groups) * 16 <= 132


def test_the_choice_is_explained():
    with session() as record:
        chosen(4096, 1024)
    (choice,) = (each for each in record.choices if each.name == "groups")
    labels = [row.label for row in choice.rows]
    assert labels == ["ctas=1", "ctas=4", "ctas=8", "ctas=16"]
    costs = [row.cost for row in choice.rows if row.cost is not None]
    assert len(costs) == len(labels)
    assert choice.chosen == 1


@pytest.mark.parametrize("shards", ['{M = ["rank"]}', "{}"])
def test_groups_take_no_shards_from_functions_of_several_ranks(shards: str):
    text = TEXTS["softmax"].format(M=64, N=256, K=32)
    stated = f"(tensor<64x256xf16> {{collective.shard = {shards}}}) {{"
    module = parse_module(text.replace("tensor<64x256xf16> {", stated, 1))
    chosen = f"{H200X8},triton-distributed{{ranks=2 ctas=auto to=dataflow}}"
    assert "cta = " not in str(run_passes(module.clone(), chosen))
    with pytest.raises(PassFailedException, match=r'say it by dim="M:rank;N:cta"$'):
        run_passes(module, f"{H200X8},triton-distributed{{ranks=2 ctas=2}}")


def test_the_hardware_file_bounds_the_shares_of_rows():
    text = TEXTS["softmax"].format(M=4096, N=4096, K=1024)
    module = str(run_passes(parse_module(text), H200))
    found: list[list[int]] = []
    for most in (256, 128):
        figures = f"most_group_elements = {most}, clock_ghz"
        hardware = parse_module(module.replace("clock_ghz", figures))
        dims = (DimAxes("N", None),)
        sizes = group_sizes(comet_context(), hardware, dims, 1, named=True)
        found.append(list(sizes))
    assert found == [[16, 32, 64], [32, 64]]


def latency(exchange: float) -> int:
    """Return the nanoseconds of a kernel if an exchange takes so many microseconds."""
    text = TEXTS["softmax"].format(M=4096, N=4096, K=1024)
    module = run_passes(parse_module(text), H200)
    hardware = re.sub(
        r"exchange_us = [0-9.]+", f"exchange_us = {exchange}", str(module)
    )
    pipeline = "triton-distributed{ctas=16 to=dataflow}"
    made = str(run_passes(parse_module(hardware), pipeline))
    found = re.search(r"comet.cost = #cost.estimate<paper, ns, latency = (\d+)", made)
    assert found is not None
    return int(found.group(1))


def test_four_turns_wait_for_four_exchanges():
    assert latency(2.0) - latency(0.0) == pytest.approx(4 * 2000, abs=2)
