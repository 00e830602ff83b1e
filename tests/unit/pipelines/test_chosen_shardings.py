"""`triton-distributed{dim=auto}`: what ranks share is chosen, op by op."""

import re
from pathlib import Path

import pytest
from gpu_ranks import H200X8
from paths import ROOT
from rank_runs import outcomes
from semantics import parse_module, run_passes
from sharded_programs import MOVES, SIZES, Sizes
from triton_modules import emitted
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.cost import estimate_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.pipelines.triton_distributed.best_plans import best_shardings
from comet.passes.sharding.choose_shardings import (
    ChooseShardingsPass,
    alternatives,
)

WIDE: Sizes = {"T": 8, "D": 4096, "F": 16384}


@pytest.fixture
def slow_memory(tmp_path: Path) -> str:
    """GPUs whose memory is so slow that sharding pays even for tiny programs."""
    text = (ROOT / "samples" / "hardware" / "h200x8.yaml").read_text()
    path = tmp_path / "slow.yaml"
    path.write_text(re.sub(r"hbm_gb_per_s: \d+", "hbm_gb_per_s: 0.01", text))
    return f'attach-hardware{{path="{path}"}}'


@pytest.mark.parametrize(
    ("case", "ranks", "pattern"),
    [("tokens alone", 3, "bsp"), ("two branches", 2, "auto")],
)
def test_ranks_compute_the_right_result(
    case: str, ranks: int, pattern: str, slow_memory: str, tmp_path: Path
) -> None:
    write, _, _ = MOVES[case]
    options = f"ranks={ranks} dim=auto pattern={pattern}"
    source = emitted(
        write(SIZES[0], {}), f"{slow_memory},triton-distributed{{{options}}}"
    )
    assert "heap_bases" in source  # Ranks load or store memory of others.
    assert outcomes({"chosen": source}, tmp_path, seeds=1) == {"chosen": "right"}


def microseconds(text: str, options: str) -> float:
    """Return what the launch plan of a program takes on some H200."""
    passes = f"{H200X8},triton-distributed{{to=dataflow {options}}}"
    module = run_passes(parse_module(text), passes)
    cost = estimate_of(next(compute_functions(module)))
    assert cost is not None
    return cost.latency / 1000


def test_it_is_faster_than_one_rank_and_than_one_dimension() -> None:
    """Columns of one product are summed over by the next one."""
    text = MOVES["tokens alone"][0](WIDE, {}).replace("f32", "bf16")
    chosen = microseconds(text, "ranks=8 pattern=fused dim=auto")
    assert chosen < 0.6 * microseconds(text, "ranks=1")
    assert chosen <= microseconds(text, "ranks=8 pattern=fused dim=F")
    assert chosen < microseconds(text, "ranks=8 pattern=fused dim=T")


def test_launch_plans_of_several_shardings_are_compared() -> None:
    """Estimates are of ops; of equal plans the first is taken."""
    text = MOVES["tokens alone"][0](WIDE, {})
    module = run_passes(parse_module(text), f"{H200X8},select-ranks{{ranks=8}}")
    copies = [str(copy) for copy in alternatives(module, 3)]
    assert len(copies) > 1
    for trial, copy in enumerate(copies):
        passes = f"choose-shardings{{trial={trial}}}"
        assert copy == str(run_passes(module.clone(), passes))
    second = best_shardings(module, lambda copy: float(str(copy) != copies[1]))
    assert second == ChooseShardingsPass(trial=1)
    assert best_shardings(module, lambda _: 1.0) == ChooseShardingsPass()


def test_one_sharding_is_not_compared() -> None:
    """A small program is compiled once, computed by every rank."""
    text = MOVES["tokens alone"][0](SIZES[0], {})
    module = run_passes(parse_module(text), f"{H200X8},select-ranks{{ranks=8}}")

    def never(_: ModuleOp) -> float:
        raise AssertionError

    assert best_shardings(module, never) == ChooseShardingsPass()


def test_a_module_without_functions_stays_without() -> None:
    after = run_passes(
        parse_module("builtin.module {}"), f"{H200X8},triton-distributed{{ranks=2}}"
    )
    assert not list(compute_functions(after))


def test_the_first_is_taken_where_no_plan_has_a_price() -> None:
    """As where the pattern that plans are compared by does not apply."""
    text = MOVES["tokens alone"][0](WIDE, {})
    module = run_passes(parse_module(text), f"{H200X8},select-ranks{{ranks=8}}")

    def rejected(_: ModuleOp) -> float:
        raise PassFailedException

    assert best_shardings(module, rejected) == ChooseShardingsPass()
