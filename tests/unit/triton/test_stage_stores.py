"""`stage-stores`: results that descriptors store in parts: legal, right, and priced."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from covering import one_of, some
from gpu_graphs import H200, SOFTMAX
from gpu_ranks import H200X8, SHARED_TEXTS
from named_ops import NAMED_OPS
from paths import SAMPLES
from semantics import parse_module, run_passes
from triton_modules import check_all, compile_all, emitted

from comet.cost.gpu.persistent import staged_work
from comet.cost.gpu.work import KernelWork, ProgramNeeds
from comet.dialects.schedule import CopyOp

GEMM = """
func.func @f(%a: tensor<{M}x{K}xf16>, %b: tensor<{K}x{N}xf16>) -> tensor<{M}x{N}xf16> {{
  %c = compound.gemm %a, %b : (tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>)
      -> tensor<{M}x{N}xf16>
  func.return %c : tensor<{M}x{N}xf16>
}}
"""
LARGE = GEMM.format(M=4096, N=4096, K=4096)
WIDE = 'factors="c: M=32 N=16 warps=8 stages=4 group=8; c_k: K=64"'


def staged(text: str, options: str) -> str:
    """Return the emitted module of a program, some of whose results are staged."""
    return emitted(text, f"{H200},triton-distributed{{{options}}}")


def parts(text: str, options: str) -> list[int]:
    """Return the parts of each copy that a descriptor stores."""
    passes = (
        f"{H200},triton-distributed{{to=dataflow {options}}},materialize-copies,"
        "pad-blocks,map-grid,mask-copies,use-descriptors{kernels=specialized}"
    )
    module = run_passes(parse_module(text), passes)
    copies = [op for op in module.walk() if isinstance(op, CopyOp) and op.descriptor]
    return [1 if op.parts is None else op.parts.value.data for op in copies]


def test_a_number_has_no_rows_to_store():
    scalar = "tensor<f32, #compound.dims<>>"
    text = f"""
    func.func @f(%x: {scalar}) -> {scalar} {{
      %y = compound.map exp %x : {scalar} -> {scalar}
      func.return %y : {scalar}
    }}"""
    assert parts(text, "stores=all") == []


@one_of(2)
@pytest.mark.parametrize(
    ("extents", "found"),
    [
        ({"M": 64, "K": 64, "N": 64}, [1]),
        ({"M": 37, "K": 40, "N": 24}, [1]),
        ({"M": 37, "K": 40, "N": 25}, []),
        # A descriptor stores 256 columns at a time.
        ({"M": 64, "K": 64, "N": 512}, [2]),
    ],
)
def test_rows_begin_at_multiples_of_16_bytes(
    extents: Mapping[str, int], found: list[int]
):
    assert parts(GEMM.format(**extents), 'stores=all factors="c: M=2 N=1"') == found


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("persist=all", [2]),
        ("persist=none", [1]),
        ('persist=all stores="f_kernel=4"', [4]),
    ],
)
def test_the_fewest_parts_that_fit(options: str, found: list[int]):
    """Four stages of 48 KiB and a tile of 64 KiB: a loop over tiles keeps all."""
    stores = "" if "stores" in options else "stores=all"
    assert parts(LARGE, f"{options} {stores} {WIDE}") == found


AG_GEMM = SHARED_TEXTS["ag_gemm"].format(M=64, K=64, N=64)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        pytest.param(AG_GEMM, "ranks=2 pattern=push", id="ranks"),
        pytest.param(AG_GEMM, "ranks=2 pattern=fused", id="two nodes"),
        pytest.param(
            SOFTMAX.format(M=512, N=512, K=64),
            "ctas=2 dim=N",
            id="groups of programs",
        ),
        pytest.param(
            (SAMPLES / "embedding_gradient.mlir").read_text(),
            "persist=all",
            id="sums of rows",
        ),
        pytest.param(
            GEMM.format(M=16, N=64, K=4096), 'split="K=4" merge=auto', id="arrivals"
        ),
    ],
)
def test_other_stores_stay(text: str, options: str):
    machine = H200X8 if "ranks" in options else H200
    source = emitted(text, f"{machine},triton-distributed{{{options} stores=all}}")
    assert "_out.store(" not in source


def test_the_bytes_are_beside_the_pipeline_of_a_loop_over_tiles():
    work = KernelWork(1, needs=ProgramNeeds(shared=1000))
    assert staged_work(work, 400, beside=True).needs.shared == 1400
    assert staged_work(work, 400, beside=False).needs.shared == 1000
    assert staged_work(work, 1400, beside=False).needs.shared == 1400


def test_meaning(tmp_path: Path):
    """Odd extents, several programs with several tiles each, in the interpreter."""
    tiles = 'factors="c: M=3 N=2 warps=4 stages=2 group=2; c_k: K=3"'
    gemm = GEMM.format(M=37, K=45, N=104)
    sources = {
        f"gemm {count} {programs}": staged(
            gemm, f'{tiles} stores="f_kernel={count}" persist="{programs}"'
        )
        for count, programs in some(
            ((1, "none"), (2, "f_kernel=2"), (4, "f_kernel=5"), (8, "none")), 2
        )
    }
    rows = SOFTMAX.format(M=37, K=24, N=152)
    sources["softmax"] = staged(rows, 'strategy=full stores="f_kernel=2"')
    op = next(each for each in NAMED_OPS if each.title == "attention")
    extents = {"B": 2, "H": 3, "M": 37, "N": 45, "D": 16, "E": 24}
    heads = 'factors="y: B=2 H=3 M=3 warps=4 stages=2 group=2"'
    sources["attention"] = staged(
        op.text(extents), f'{heads} strategy=full stores="main_kernel=2" persist=all'
    )
    for name, source in sources.items():
        assert "_out.store((" in source, name
        assert ("tl.split" in source) == ("gemm 1" not in name), name
    for facts in check_all(sources, tmp_path).values():
        assert facts["ok"], facts


def test_a_further_stage_fits_in_halves(tmp_path: Path):
    """Compiled for sm_90: the bytes that the model expects, copies and no spills."""
    loops = f"copies=descriptors persist=all {WIDE}"
    sources = {
        count: staged(LARGE, f'stores="f_kernel={count}" {loops}') for count in "124"
    }
    kept = 4 * (128 + 256) * 64 * 2
    for count, facts in zip(
        "124", compile_all(sources, tmp_path, "sm_90"), strict=True
    ):
        shared = facts["shared"]
        assert isinstance(shared, int)
        assert 0 <= shared - kept - 128 * 256 * 2 / int(count) < 64
        assert (shared <= 232448) == (count != "1")
        assert facts["spills"] == 0
        assert not facts["slow"]


SUMS = """
!A = tensor<256x4096xbf16, #compound.dims<M, K>>
!B = tensor<4096x512xbf16, #compound.dims<K, N>>
!C = tensor<256x512xf32, #compound.dims<M, N>>
func.func @f(%a: !A, %b: !B) -> !C {
  %c = compound.contract %a, %b : !A, !B -> !C
  func.return %c : !C
}
"""
"""A product in f32, which its loop sums as it is stored."""


def test_a_sum_is_beside_the_pipeline_of_its_loop(tmp_path: Path):
    """A tile of 128 KiB does not fit beside three stages of 48 KiB; its halves do."""
    tiles = 'split=none factors="c: M=2 N=2 warps=8 stages=3 group=1; c_k: K=64"'
    assert parts(SUMS, f"stores=all {tiles}") == [2]
    sources = {
        str(n): staged(SUMS, f"stores={stores} {tiles}")
        for n, stores in enumerate(('"f_kernel=1"', "all"))
    }
    pipeline, tile = 3 * (128 + 256) * 64 * 2, 128 * 256 * 4
    expected = [pipeline + tile, max(pipeline, tile // 2)]
    compiled = compile_all(sources, tmp_path, "sm_90")
    for shared, facts in zip(expected, compiled, strict=True):
        found = facts["shared"]
        assert isinstance(found, int)
        assert 0 <= found - shared < 64


def test_a_second_program_that_no_longer_fits_is_not_launched():
    """Two programs of 112 KiB run at a time, and one that stores by descriptor."""
    causal = next(each for each in NAMED_OPS if each.title == "attention_causal")
    text = causal.text({"B": 4, "H": 32, "M": 4096, "N": 4096, "D": 128, "E": 128})
    tiles = 'factors="y: B=4 H=32 M=64 warps=4 stages=3 group=8; m_n: N=64"'
    for stores, programs in (("none", 264), ("all", 132)):
        options = f"to=dataflow persist=all specialize=false stores={stores} {tiles}"
        passes = f"{H200},triton-distributed{{{options}}}"
        assert f"persistent = {programs}" in str(run_passes(parse_module(text), passes))


def test_the_choice_is_written():
    module = run_passes(
        parse_module(LARGE),
        f"{H200},triton-distributed{{to=dataflow persist=all stores=all {WIDE}}}",
    )
    text = str(module)
    assert 'comet.staged = "f_kernel=2"' in text
    assert re.search(r"#schedule.launch<[^>]*persistent = 132, parts = 2>", text)
