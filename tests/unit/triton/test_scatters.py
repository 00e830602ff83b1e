"""Sums of rows that ids name, by every axis, between other ops, on GPUs."""

from pathlib import Path

import numpy as np
import pytest
from covering import covering, exhaustive, one_of, some
from gather_programs import tensor
from paths import ROOT
from rank_runs import outcomes
from scatter_programs import around, programs
from semantics import (
    assert_close,
    assert_same_meaning,
    parse_module,
    random_inputs,
    run_passes,
)
from triton_modules import compile_all, emitted, hardware, wrong
from view_programs import reference
from xdsl.dialects.builtin import StringAttr
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import PassFailedException

from comet.interpreter import run

ALONG_AXES, AROUND = dict(programs()), dict(around())
PROGRAMS = {**ALONG_AXES, **AROUND}
COVERED = [
    "_".join(each) for each in covering(tuple(name.split("_")) for name in ALONG_AXES)
]
"""Sums in which any two of axis, result, ids and what makes the values meet."""
SOME = {name: PROGRAMS[name] for name in (*COVERED[::2], *AROUND)}
H200 = hardware("h200x1.yaml")
ONE_GPU = f"{H200},triton-distributed{{ranks=1}}"
RANKS = f"{hardware('h200x8.yaml')},triton-distributed"


@one_of(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_printed_reference_means_what_the_interpreter_says(name: str):
    module = parse_module(PROGRAMS[name])
    inputs = random_inputs(module, "main")
    found, expected = reference(PROGRAMS[name])(*inputs), run(module, "main", inputs)
    arrays = found if len(expected) > 1 else [found]
    assert_close([np.asarray(array) for array in arrays], expected)


@one_of(6)
@pytest.mark.parametrize("name", AROUND)
def test_passes_keep_the_meaning(name: str):
    module = parse_module(AROUND[name])
    for last in ("lower-views", "fuse", "fuse,tile,outline-kernels,merge-launches"):
        passes = f"{H200},lower-views,{last}"
        assert_same_meaning(module, run_passes(module, passes), "main")


def test_one_gpu_adds(tmp_path: Path):
    """Also ids that name one row several times: the seven of 9, 11 or 5 rows do."""
    sample = (ROOT / "samples/embedding_gradient.mlir").read_text()
    texts = {**dict(some(SOME.items(), 5)), "sample": sample}
    sources = {name: emitted(text, ONE_GPU) for name, text in texts.items()}
    assert not wrong(sources, tmp_path)


@one_of(3)
@pytest.mark.parametrize(
    "strategy", ["none", pytest.param("full", marks=exhaustive), "priority"]
)
def test_no_strategy_reads_sums_before_they_are_complete(strategy: str, tmp_path: Path):
    names = ("beside_their_values", "into_chosen", "by_computed_ids", "twice")
    passes = f"{H200},triton-distributed{{ranks=1 strategy={strategy}}}"
    sources = {name: emitted(AROUND[name], passes) for name in names}
    assert all(text.count("@triton.jit") > 1 for text in sources.values())
    assert not wrong(sources, tmp_path)


def test_kernels_given_by_hand_scatter():
    text, ranks = AROUND["beside_their_values"], "triton-distributed{ranks=1"
    found = run_passes(parse_module(text), f"{H200},{ranks} strategy=priority}}")
    func = SymbolTable.lookup_symbol(found, "main")
    assert func is not None
    assert func.attributes["comet.kernels"] == StringAttr("s u; y")
    by_hand = emitted(text, f'{H200},{ranks} kernels="s u; y"}}')
    assert by_hand == emitted(text, f"{H200},{ranks} strategy=priority}}")
    with pytest.raises(PassFailedException, match="reads sums that it scatters"):
        emitted(text, f'{H200},{ranks} kernels="s u y"}}')
    with pytest.raises(PassFailedException, match="name both in one kernel"):
        emitted(text, f'{H200},{ranks} kernels="e; s u; y"}}')


@exhaustive
def test_ranks_exchange_sums_of_their_rows(tmp_path: Path):
    sources = {
        f"{name}_{dim}_{pattern}": emitted(
            AROUND[name], f"{RANKS}{{ranks=2 dim={dim} pattern={pattern}}}"
        )
        for name, dim, pattern in (
            ("of_a_product", "T", "push"),
            ("read_by_a_product", "D", "pull"),
            ("twice", "T", "bsp"),
            ("by_chosen_ids", "D", "auto"),
        )
    }
    assert outcomes(sources, tmp_path, seeds=1) == dict.fromkeys(sources, "right")


def test_ranks_load_their_shard_of_what_ids_name(tmp_path: Path):
    """All have the whole table of sums, of which each reads its rows."""
    source = emitted(AROUND["read_by_a_product"], f"{RANKS}{{ranks=2 dim=V}}")
    assert "first_v_shard = rank * V_shard" in source
    assert outcomes({"table": source}, tmp_path, seeds=1) == {"table": "right"}


def test_a_constant_is_not_scattered():
    ids, sums = tensor({"T": 7}, "i32"), tensor({"V": 9}, "i32")
    text = f"""
    func.func @main(%i: {ids}) -> {sums} {{
      %one = compound.fill 1 : {ids}
      %n = compound.scatter_add %one, %i into "V" : {ids}, {ids} -> {sums}
      func.return %n : {sums}
    }}"""
    with pytest.raises(PassFailedException, match="adds a constant, and programs"):
        emitted(text, ONE_GPU)


def test_groups_of_programs_do_not_scatter():
    with pytest.raises(PassFailedException, match="are complete when all have ended"):
        emitted(AROUND["of_a_product"], f"{H200},triton-distributed{{ctas=2 dim=N}}")


def product(tokens: int, depth: int, width: int, rows: int) -> str:
    """Return products in f32 that are added to rows."""
    a = f"tensor<{tokens}x{depth}xbf16, #compound.dims<T, K>>"
    w = f"tensor<{depth}x{width}xbf16, #compound.dims<K, D>>"
    i = f"tensor<{tokens}xi32, #compound.dims<T>>"
    p = f"tensor<{tokens}x{width}xf32, #compound.dims<T, D>>"
    r = f"tensor<{rows}x{width}xf32, #compound.dims<V, D>>"
    return f"""
    func.func @main(%a: {a}, %w: {w}, %i: {i}) -> {r} {{
      %p = compound.contract %a, %w : {a}, {w} -> {p}
      %r = compound.scatter_add %p, %i into "V" : {p}, {i} -> {r}
      func.return %r : {r}
    }}"""


@exhaustive
def test_a_product_adds_its_rows_itself(tmp_path: Path):
    source = emitted(product(4096, 1024, 4096, 32000), ONE_GPU)
    assert source.count("@triton.jit") == 1
    before, loop = source.split(" in range(0, end, BLOCK_K):")
    assert "i_tile = tl.load(i_ptr + offs_t)" in before
    assert "r_ptr + i_tile[:, None] * D + offs_d[None, :], p, sem=" in loop
    plan = source.split("def main(")[1]
    assert plan.index("r.zero_()") < plan.index("main_kernel[")
    for facts in compile_all({"product": source}, tmp_path, "sm_90"):
        assert facts["spills"] == 0
        assert not facts["faults"]
        assert not facts["slow"]


@exhaustive
def test_the_tile_of_a_product_that_adds_fits_shared_memory(tmp_path: Path):
    """It goes through shared memory as a whole, of which gfx942 has 64 KiB."""
    system = hardware("mi300x8.yaml")
    text = product(4096, 1024, 4096, 32000)
    source = emitted(text, f"{system},triton-distributed{{ranks=1}}")
    for facts in compile_all({"product": source}, tmp_path, "gfx942"):
        assert not facts["faults"]


@exhaustive
def test_single_floats_are_added_without_spills(tmp_path: Path):
    """Along the last axis nothing is contiguous: each element has an address."""
    x = "tensor<4096x4096xf32, #compound.dims<T, D>>"
    i, r = (
        "tensor<4096xi32, #compound.dims<D>>",
        "tensor<4096x99xf32, #compound.dims<T, V>>",
    )
    text = f"""
    func.func @main(%x: {x}, %i: {i}) -> {r} {{
      %r = compound.scatter_add %x, %i into "V" : {x}, {i} -> {r}
      func.return %r : {r}
    }}"""
    systems = {"sm_90": H200, "gfx942": hardware("mi300x8.yaml")}
    for target, system in systems.items():
        source = emitted(text, f"{system},triton-distributed{{ranks=1}}")
        (facts,) = compile_all({target: source}, tmp_path, target)
        assert (facts["spills"], facts["faults"]) == (0, [])


SENT = """
!x = tensor<8xbf16, #compound.dims<K>>
!y = tensor<8xf32, #compound.dims<K>>
!i = tensor<8xi32, #compound.dims<K>>
!t = tensor<7xf32, #compound.dims<R>>
func.func @main(%x: !x {collective.shard = {K = ["rank"]}},
                %i: !i {collective.shard = {}}) -> (!t {collective.shard = {}}) {
  %v = compound.cast %x : !x -> !y
  %s = compound.scatter_add %v, %i into "R" : !y, !i -> !t
  func.return %s : !t
}
"""


def test_what_ranks_send_is_stored_and_not_recomputed(tmp_path: Path):
    module = emitted(SENT, f"{RANKS}{{ranks=4 strategy=priority}}")
    assert outcomes({"sent": module}, tmp_path) == {"sent": "right"}
