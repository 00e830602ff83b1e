"""Consumers that visit all sources of what they gather at once, after one wait."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest
from covering import covering, exhaustive, one_of
from gpu_ranks import H200X8
from rank_runs import outcomes_in
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import compile_all, emitted
from xdsl.dialects.builtin import ModuleOp, StringAttr

from comet.dialects.cost import estimate_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.search.record import session

TEXT = """
func.func @f(%a: tensor<{m}x{k}xf16> {{collective.shard = {{{dim} = ["rank"]}}}}, %b: tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16> {{
  %c = compound.ag_gemm %a, %b : (tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16>
  func.return %c : tensor<{m}x{n}xf16>
}}
"""  # noqa: E501
ODD = {"m": 37, "k": 75, "n": 19}


def text(dim: str, sizes: Mapping[str, int]) -> str:
    """Return a product of a matrix that is sharded in a dimension."""
    return TEXT.format(dim=dim, **sizes)


def compiled(dim: str, sizes: Mapping[str, int], options: str) -> ModuleOp:
    """Return the launch plan of such a product."""
    pipeline = f"{H200X8},triton-distributed{{to=dataflow {options}}}"
    return run_passes(parse_module(text(dim, sizes)), pipeline)


CASES = covering(product("MK", (2, 4, 8), ("bsp", "wait", "push", "pull", "fused")))


@one_of(6)
@pytest.mark.parametrize(("dim", "ranks", "pattern"), CASES)
def test_they_compute_the_same(dim: str, ranks: int, pattern: str):
    before = run_passes(
        parse_module(text(dim, ODD)), f"{H200X8},decompose{{accumulator=f32}}"
    )
    how = f"ranks={ranks} pattern={pattern} sources=all"
    assert_same_meaning(before, compiled(dim, ODD, how), "f")


SMALL = covering(product((16, 32, 64, 128), (4, 8)), strength=1)


def nanoseconds(module: ModuleOp) -> float:
    """Return the estimated time of a module."""
    found = map(estimate_of, compute_functions(module))
    return sum(each.latency for each in found if each is not None)


@one_of(2)
@pytest.mark.parametrize(("rows", "ranks"), SMALL)
def test_few_rows_of_each_rank_are_one_tile(rows: int, ranks: int):
    sizes = {"m": rows, "k": 4096, "n": 4096}
    one, all_ = (
        compiled("M", sizes, f"ranks={ranks} pattern=fused sources={sources}")
        for sources in ("each", "all")
    )
    assert nanoseconds(all_) < nanoseconds(one)


@exhaustive
def test_the_cheaper_one_is_chosen_and_explained():
    sizes = {"m": 64, "k": 1024, "n": 1024}
    with session() as record:
        chosen = compiled("M", sizes, "ranks=4 pattern=auto")
    each = compiled("M", sizes, "ranks=4 pattern=auto sources=each")
    (function,) = compute_functions(chosen)
    pattern = function.attributes["comet.pattern"]
    assert isinstance(pattern, StringAttr)
    assert 'sources="all"' in pattern.data
    assert nanoseconds(chosen) < nanoseconds(each)
    (choice,) = (found for found in record.choices if found.name == "pattern")
    assert any("all sources at once" in row.label for row in choice.rows)


def module(dim: str, pattern: str, blocks: str = "", factors: str = "auto") -> str:
    """Return an emitted module for four ranks."""
    how = f'ranks=4 pattern={pattern} sources=all blocks="{blocks}"'
    how += f' factors="{factors}"'
    return emitted(
        text(dim, {"m": 64, "k": 64, "n": 32}), f"{H200X8},triton-distributed{{{how}}}"
    )


WAIT = "wait_all(a_flags_ptr + block, epoch, 2, WORLD)"


@one_of(2)
@pytest.mark.parametrize(
    ("pattern", "memory"),
    [
        ("pull", "rebase_among(a_message, rank, source, heap_bases, WORLD)"),
        ("push", "a_message + source * M * K_SHARD"),
    ],
)
def test_a_tile_of_one_source_has_one_address(pattern: str, memory: str):
    """Its elements then follow each other in the memory of that source."""
    found = module("K", pattern, factors="c_k: K=4")
    assert "source = k // K_SHARD" in found
    assert memory in found
    assert "% K_SHARD" in module("K", pattern, factors="c_k: K=1")


MUTATIONS = {
    "no wait": (WAIT, "pass"),
    "only one block of each source": (WAIT, WAIT.replace("block", "0")),
    "one source": (WAIT, "wait(a_flags_ptr + rank * 2 + block, epoch)"),
}


@exhaustive
def test_they_wait_for_every_block_of_every_source(tmp_path: Path):
    right = module("M", "push", "M=2")
    columns = {way: module("K", way, factors="c_k: K=4") for way in ("fused", "pull")}
    sources = {"right": right, **columns}
    for name, (old, new) in MUTATIONS.items():
        assert old in right
        imported = right.replace("    wait_all,\n", "    wait,\n    wait_all,\n")
        sources[name] = imported.replace(old, new)
    named = {f"module_{index}": source for index, source in enumerate(sources.values())}
    became = outcomes_in(named, tmp_path, [(0, None), (2, 2)])
    found = dict(zip(sources, became.values(), strict=True))
    assert found["right"] == found["fused"] == found["pull"] == "right"
    assert {found[name] for name in MUTATIONS} == {"RaceError"}


@exhaustive
def test_they_compile_without_faults(tmp_path: Path):
    kernels = compile_all({"rows": module("M", "fused")}, tmp_path)
    assert all(not kernel["faults"] and not kernel["spills"] for kernel in kernels)
