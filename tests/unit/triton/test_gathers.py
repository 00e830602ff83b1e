"""Gathers along every axis, by ids of every rank, through views, on GPUs."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from covering import EVERY_CASE, covering, exhaustive, one_of, some
from gather_programs import EMBEDDING, OF_RANKS, paged, programs, through_views
from interpreting import interpreted, write_modules
from large_tables import sums_of_rows
from paths import SAMPLES
from rank_runs import outcomes
from semantics import (
    assert_close,
    assert_same_meaning,
    parse_module,
    random_inputs,
    run_passes,
)
from triton_modules import compile_all, emitted, hardware, wrong
from view_programs import reference

from comet.interpreter import run

ALONG_AXES, THROUGH_VIEWS = dict(programs()), dict(through_views())
PROGRAMS = {**ALONG_AXES, **THROUGH_VIEWS}
COVERED = [
    "_".join(each)
    for each in covering((tuple(name.split("_")) for name in ALONG_AXES), 1)
]
"""Gathers along each axis of each table, by each kind of ids and for each use."""
SOME = {name: PROGRAMS[name] for name in (*COVERED, *THROUGH_VIEWS)}
ONE_GPU = f"{hardware('h200x1.yaml')},triton-distributed{{ranks=1 strategy=full}}"


@one_of(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_printed_reference_means_what_the_interpreter_says(name: str):
    module = parse_module(PROGRAMS[name])
    inputs = random_inputs(module, "main")
    found = reference(PROGRAMS[name])(*inputs)
    assert_close(list(map(np.asarray, found)), run(module, "main", inputs))


def test_lowered_views_mean_the_same():
    for text in PROGRAMS.values():
        before = parse_module(text)
        assert_same_meaning(before, run_passes(before, "lower-views"), "main")


def test_one_gpu_gathers(tmp_path: Path):
    sources = {name: emitted(text, ONE_GPU) for name, text in some(SOME.items(), 3)}
    assert not wrong(sources, tmp_path)


LONG = {name: text.replace("i32", "i64") for name, text in SOME.items()}
"""The same with ids of 64 bits."""


@exhaustive
def test_ids_may_have_64_bits(tmp_path: Path):
    """Every sixth program; the positions in their small tables have 32 bits."""
    sources = {name: emitted(LONG[name], ONE_GPU) for name in list(LONG)[::6]}
    assert not wrong(sources, tmp_path)
    assert any(".to(tl.int32)" in source for source in sources.values())


RANKS = f"{hardware('h200x8.yaml')},triton-distributed"
ON_RANKS = {
    "V_of_PVD_grid_given": ("P", "B", "D", "W"),
    "P_of_PVD_list_computed": ("T", "V"),
    "D_of_VD_list_given": ("T",),
    "D_of_D_one_given": (),
    "split_rows": ("D",),
    "ids_of_ids": ("S", "D"),
    "computed_ids": ("T",),
}
"""The dimensions that ranks split of some programs."""
SHARDED = [(name, dim) for name, dims in ON_RANKS.items() for dim in dims]


@one_of(2)
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=exhaustive), 3])
def test_ranks_gather_shards(ranks: int, tmp_path: Path):
    sources = {
        f"{name}_{dim}": emitted(
            PROGRAMS[name], f"{RANKS}{{ranks={ranks} dim={dim} strategy=full}}"
        )
        for name, dim in some(SHARDED, 4)
    }
    assert not wrong(sources, tmp_path)


def test_each_rank_takes_its_part_of_what_all_have(tmp_path: Path):
    """Ids that are the number of a rank are no load."""
    source = emitted(OF_RANKS, f"{RANKS}{{ranks=4}}")
    assert source.count("@triton.jit") == source.count("tl.load(") == 1
    assert not wrong({"parts": source}, tmp_path)


def embedding(**extents: int) -> str:
    """Return rows of a table, chosen and multiplied."""
    return EMBEDDING.format(**{"V": 37, "T": 13, "D": 24, "N": 40} | extents)


def test_a_product_loads_the_chosen_rows_itself():
    source = emitted(embedding(V=640, T=4096, D=4096, N=4096), ONE_GPU)
    assert source.count("@triton.jit") == 1
    before, loop = source.split(" in range(0, end, BLOCK_D):")
    assert "ids_tile = tl.load(ids_ptr + offs_t)" in before
    assert "tl.load(table_ptr + ids_tile[:, None] * D + offs_d[None, :])" in loop


@exhaustive
def test_chosen_rows_compile_to_pipelined_products(tmp_path: Path):
    source = emitted(embedding(V=640, T=4096, D=4096, N=4096), ONE_GPU)
    for facts in compile_all({"embedding": source}, tmp_path, "sm_90"):
        assert facts["spills"] == 0
        assert not facts["faults"]
        assert not facts["slow"]


def test_large_tables_have_addresses_of_64_bits():
    source = emitted(embedding(V=2**20, D=4096), ONE_GPU)
    assert "ids_tile[:, None].to(tl.int64) * D" in source
    assert "int64" not in emitted(embedding(), ONE_GPU)


def test_long_ids_address_large_tables_as_they_are():
    """2**33 rows of 4 numbers: neither ids nor addresses fit 32 bits."""
    text = embedding(V=2**33, D=4).replace("i32", "i64")
    source = emitted(text, ONE_GPU)
    assert "ids_tile[:, None] * D" in source
    assert ".to(tl.int32)" not in source


@exhaustive
@pytest.mark.parametrize("ids", ["i32", "i64"])
def test_rows_beyond_32_bits_are_read(ids: str, tmp_path: Path):
    """The table has 2**31 + 4096 numbers; its last row is beyond 2**31."""
    text = embedding(V=2**19 + 1, D=4096, T=3, N=16).replace("i32", ids)
    (path,) = write_modules({"large": emitted(text, ONE_GPU)}, tmp_path)
    found = interpreted(sums_of_rows, path, [2**19, 0, 2**19 - 1])
    assert found == [4096.0, 2 * 4096.0, 3 * 4096.0]


def test_checks_draw_positions_of_the_smallest_table():
    text = """
    func.func @main(%x: tensor<9xf32, #compound.dims<V>>,
        %y: tensor<5xf32, #compound.dims<W>>, %i: tensor<7xi32, #compound.dims<T>>)
        -> tensor<7xf32, #compound.dims<T>> {
      %r = compound.gather %x, %i along "V" : tensor<9xf32, #compound.dims<V>>,
        tensor<7xi32, #compound.dims<T>> -> tensor<7xf32, #compound.dims<T>>
      %s = compound.gather %y, %i along "W" : tensor<5xf32, #compound.dims<W>>,
        tensor<7xi32, #compound.dims<T>> -> tensor<7xf32, #compound.dims<T>>
      %p = compound.map mult %r, %s : tensor<7xf32, #compound.dims<T>>,
        tensor<7xf32, #compound.dims<T>> -> tensor<7xf32, #compound.dims<T>>
      func.return %p : tensor<7xf32, #compound.dims<T>>
    }"""
    source = emitted(text, ONE_GPU)
    assert 'Tensor((7,), "int32", at_least=0, at_most=4)' in source
    assert source.count("tl.load(i_ptr") == 1


@exhaustive
def test_ranks_exchange_products_of_chosen_rows(tmp_path: Path):
    """A rank that has columns of the table has a term of each product."""
    sources = {
        f"{pattern}_{dim}": emitted(
            embedding(), f"{RANKS}{{ranks=2 dim={dim} pattern={pattern} strategy=full}}"
        )
        for pattern, dim in some(product(("bsp", "pull", "push", "fused"), "DT"), 3)
    }
    assert outcomes(sources, tmp_path, seeds=1) == dict.fromkeys(sources, "right")


def test_the_sample_is_one_kernel_that_computes_embeddings(tmp_path: Path):
    """At a sixth of its tokens and columns."""
    text = (SAMPLES / "embedding.mlir").read_text()
    text = text.replace("128", "20").replace("256", "44")
    module = parse_module(text)
    table, ids, gamma, w = random_inputs(module, "embedding")
    rows = table[ids.astype(int)]
    normal = rows / np.sqrt(np.mean(rows**2, axis=1, keepdims=True) + 1e-5)
    expected = (normal * gamma) @ w
    assert_close(run(module, "embedding", [table, ids, gamma, w]), [expected])
    sources = {"one": emitted(text, ONE_GPU)}
    assert sources["one"].count("@triton.jit") == 1
    for dim in some(("T", "D", "N"), 2):
        sources[dim] = emitted(text, f"{RANKS}{{ranks=4 dim={dim} strategy=full}}")
    assert not wrong(sources, tmp_path)


@exhaustive
def test_attention_to_pages_is_one_kernel(tmp_path: Path):
    text = paged(3, 2, 4, 16, 8, 7, 17)
    module = parse_module(text)
    q, keys, values, pages, _ = random_inputs(module, "main")
    lens = np.array([56.0, 1.0, 33.0])
    (found,) = run(module, "main", [q, keys, values, pages, lens])
    for b, length in enumerate(lens.astype(int)):
        of_b = pages[b].astype(int)
        k, v = (pool[of_b].reshape(56, 2, 16)[:length] for pool in (keys, values))
        scores = np.einsum("hgd,shd->hgs", q[b], k) / 4
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        assert_close([found[b]], [np.einsum("hgs,shd->hgd", weights, v)])
    sources = {"one": emitted(text, ONE_GPU)}
    assert sources["one"].count("@triton.jit") == 1
    assert sources["one"].count("tl.load(pages_ptr + b * J + offs_s // R") == 1
    sources["split"] = emitted(text, ONE_GPU.replace("ranks=1", 'ranks=1 split="S=4"'))
    for dim in ("B", "H", "S") if EVERY_CASE else ("S",):
        sources[dim] = emitted(text, f"{RANKS}{{ranks=2 dim={dim} strategy=full}}")
    assert not wrong(sources, tmp_path)


@exhaustive
def test_few_sequences_share_out_their_pages():
    source = emitted(paged(4, 8, 4, 128, 512, 16, 8192), ONE_GPU)
    assert source.count("@triton.jit") == 1
    assert "arrive_last(" in source
    assert "tl.load(pages_ptr + b * S_part * J_in + s_part * J_in + offs_s_in // R" in (
        " ".join(source.replace("\n", " ").split()).replace("( ", "(")
    )


@exhaustive
def test_loops_over_pages_load_ahead(tmp_path: Path):
    source = emitted(paged(32, 8, 4, 128, 256, 16, 8192), ONE_GPU)
    for facts in compile_all({"paged": source}, tmp_path, "sm_90"):
        assert facts["spills"] == 0
        assert not facts["faults"]
        assert not facts["slow"]


@pytest.mark.parametrize("parts", [2, 4, 20])
def test_merged_pages_in_parts_mean_the_same(parts: int):
    before = run_passes(parse_module(paged(2, 2, 1, 4, 20, 3, 9)), "lower-views")
    after = run_passes(before, f"split{{dim=S parts={parts}}}")
    assert_same_meaning(before, after, "main")
