"""`propagate-shardings`: meaning, collectives and kernels from signatures alone."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from covering import EVERY_CASE, fraction, one_of
from gpu_ranks import H200X8
from graph_text import Program
from programs import mesh_text
from rank_runs import outcomes
from sample_blocks import BLOCKS
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import emitted
from xdsl.dialects.builtin import ModuleOp

from comet.dialects.collective import CollectiveOp

Sizes = Mapping[str, int]
Sharded = Mapping[str, str]
"""The dimension that ranks share of each argument and result."""
Write = Callable[[Sizes, Sharded], str]

RANKS = (1, 2, 3, 4, 8)
SIZES = (
    {"T": 7, "D": 5, "F": 13},
    {"T": 1, "D": 3, "F": 2},
    {"T": 28, "D": 16, "F": 32},
)


def mlp(sizes: Sizes, sharded: Sharded) -> str:
    """Return a residual MLP with a norm by the maximum of rows, and a bias."""
    p = Program(sizes, sharded=sharded)
    x = p.argument("x", "TD")
    h = p.map("h", "sub", x, p.reduce("top", "max", x, "D"))
    up = p.contract("up", h, p.argument("w1", "DF"), "TF")
    biased = p.map("biased", "add", up, p.argument("b", "F"))
    a = p.map("a", "tanh", biased)
    d = p.contract("d", a, p.argument("w2", "FD"), "TD")
    return p.returning(p.map("z", "add", x, d))


def parallel(sizes: Sizes, sharded: Sharded) -> str:
    """Return two MLPs of one input, with one residual."""
    p = Program(sizes, sharded=sharded)
    x = p.argument("x", "TD")
    z = x
    for branch in ("p", "q"):
        up = p.contract(f"up{branch}", x, p.argument(f"u{branch}", "DF"), "TF")
        a = p.map(f"a{branch}", "tanh", up)
        d = p.contract(f"d{branch}", a, p.argument(f"d{branch}_w", "FD"), "TD")
        z = p.map(f"z{branch}", "add", z, d)
    return p.returning(z)


def gradient(sizes: Sizes, sharded: Sharded) -> str:
    """Return the gradient of a weight: a sum over tokens."""
    p = Program(sizes, sharded=sharded)
    x, d = p.argument("x", "TD"), p.argument("d", "TF")
    return p.returning(p.contract("z", x, d, "DF"))


def normed(sizes: Sizes, sharded: Sharded) -> str:
    """Return a softmax of a product."""
    p = Program(sizes, sharded=sharded)
    c = p.contract("c", p.argument("x", "TD"), p.argument("w", "DF"), "TF")
    e = p.map("e", "exp", p.map("s", "sub", c, p.reduce("m", "max", c, "F")))
    return p.returning(p.map("z", "div", e, p.reduce("l", "add", e, "F")))


SPLIT_WEIGHTS = {"w1": "F", "w2": "F", "b": "F"}
BRANCHES = {"up": "F", "uq": "F", "dp_w": "F", "dq_w": "F"}
MOVES: dict[str, tuple[Write, Sharded, list[str]]] = {
    "tokens and columns": (
        mlp,
        {"x": "T", "z": "T"} | SPLIT_WEIGHTS,
        ["all_gather", "reduce_scatter"],
    ),
    "tokens alone": (mlp, {"x": "T", "z": "T"}, []),
    "the result alone": (mlp, {"z": "T"}, []),
    "two branches": (
        parallel,
        {"x": "T", "zq": "T"} | BRANCHES,
        ["all_gather", "reduce_scatter", "reduce_scatter"],
    ),
    "a gradient": (gradient, {"x": "T", "d": "T", "z": "F"}, ["reduce_scatter"]),
    "columns of a softmax": (normed, {"w": "F", "z": "F"}, ["all_reduce"] * 2),
    "rows to columns": (normed, {"x": "T", "z": "F"}, ["all_to_all"]),
}
"""A program, what its ranks share, and the collectives that this needs."""


def collectives(module: ModuleOp) -> list[str]:
    """Return the names of all collectives, in order."""
    found = (op for op in module.walk() if isinstance(op, CollectiveOp))
    return [op.name.removeprefix("collective.") for op in found]


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
