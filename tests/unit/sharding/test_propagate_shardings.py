"""`propagate-shardings`: meaning, collectives and kernels from signatures alone."""

from pathlib import Path

import pytest
from covering import EVERY_CASE, fraction, one_of
from gpu_ranks import H200X8
from graph_text import Program
from programs import mesh_text
from rank_runs import outcomes
from sample_blocks import BLOCKS
from semantics import assert_same_meaning, parse_module, run_passes
from sharded_programs import MOVES, SIZES, collectives, parallel
from triton_modules import emitted

RANKS = (1, 2, 3, 4, 8)


@one_of(4)
@pytest.mark.parametrize(("case", "ranks"), fraction(MOVES, RANKS))
def test_meaning_and_collectives(case: str, ranks: int):
    write, sharded, expected = MOVES[case]
    for sizes in SIZES:
        before = parse_module(mesh_text({"rank": ranks}) + write(sizes, sharded))
        after = run_passes(before, "propagate-shardings,insert-collectives")
        assert_same_meaning(before, after, "main")
        if sizes == SIZES[-1] and ranks > 1:
            assert collectives(after) == expected


def test_a_fold_is_split_where_keys_are_and_the_result_is_whole():
    """Partial results are fewer than keys and values."""
    text = f"""{mesh_text({"rank": 2})}
    func.func @main(%q: tensor<1x2x1x4xf16>,
        %k: tensor<1x2x64x4xf16> {{collective.shard = {{N = ["rank"]}}}},
        %v: tensor<1x2x64x4xf16> {{collective.shard = {{N = ["rank"]}}}})
        -> (tensor<1x2x1x4xf16> {{collective.shard = {{}}}}) {{
      %o = compound.attention %q, %k, %v : (tensor<1x2x1x4xf16>, tensor<1x2x64x4xf16>,
        tensor<1x2x64x4xf16>) -> tensor<1x2x1x4xf16>
      func.return %o : tensor<1x2x1x4xf16>
    }}"""
    before = parse_module(text)
    passes = "decompose,stream,propagate-shardings,insert-collectives"
    after = run_passes(before, passes)
    assert_same_meaning(before, after, "main")
    assert collectives(after) == ["all_gather"] * 3


LLAMA = {"x": "M", "z": "M", "w1": "F", "w2": "F", "w3": "F"} | dict.fromkeys(
    ("wq1", "wq2", "wk1", "wk2", "wv", "wo"), "K"
)
"""Tokens between the halves of the block, heads and columns in them."""


def llama() -> str:
    """Return the tiny block of Llama with sharded arguments and a sharded result."""
    block = BLOCKS["llama"]
    p = Program(block.tiny, sharded=LLAMA)
    return p.returning(block.write(p), function="f")


def test_emitted_modules_are_right_on_the_scheduler(tmp_path: Path):
    sources = {
        f"{name}_{ranks}_{pattern}": emitted(
            text,
            f"{H200X8},triton-distributed{{ranks={ranks} pattern={pattern} "
            "strategy=none}",
        )
        for index, (name, text) in enumerate(
            (
                ("branches", parallel(SIZES[0], MOVES["two branches"][1])),
                ("llama", llama()),
            )
        )
        for number, (ranks, pattern) in enumerate(
            ((2, "bsp"), (2, "fused"), (4, "push"))
        )
        if EVERY_CASE or (index, number) in ((0, 2),)
    }
    assert set(outcomes(sources, tmp_path, seeds=1).values()) == {"right"}


def test_a_whole_block_gathers_tokens_twice():
    before = parse_module(mesh_text({"rank": 2}) + llama())
    after = run_passes(before, "stream,propagate-shardings,insert-collectives")
    assert_same_meaning(before, after, "f")
    assert collectives(after) == ["all_gather", "reduce_scatter"] * 2
