"""Several ranks: what is emitted is right at sizes that divide by nothing."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from covering import EVERY_CASE, exhaustive, some
from gpu_ranks import H200X8, SHARED_TEXTS, TEXTS
from rank_runs import outcomes
from triton_modules import emitted

DECODE = """
func.func @f(%q: tensor<{M}x1x3x{K}xf16>,
             %k: tensor<{M}x1x{N}x{K}xf16> {{collective.shard = {{S = ["rank"]}}}},
             %v: tensor<{M}x1x{N}x4xf16> {{collective.shard = {{S = ["rank"]}}}},
             %lens: tensor<{M}xi32>) -> tensor<{M}x1x3x4xf16> {{
  %o = compound.flash_decode %q, %k, %v, %lens {{collective.shard = {{S = ["rank"]}}}}
    : (tensor<{M}x1x3x{K}xf16>, tensor<{M}x1x{N}x{K}xf16>, tensor<{M}x1x{N}x4xf16>,
       tensor<{M}xi32>) -> tensor<{M}x1x3x4xf16>
  func.return %o : tensor<{M}x1x3x4xf16>
}}
"""
TOTAL = """
func.func @f(%x: tensor<{M}x{N}xf16, #compound.dims<M, N>>)
    -> tensor<f16, #compound.dims<>> {{
  %sum = compound.reduce add %x : tensor<{M}x{N}xf16, #compound.dims<M, N>>
    -> tensor<f16, #compound.dims<>>
  func.return %sum : tensor<f16, #compound.dims<>>
}}
"""
TURNED = """
func.func @f(%x: tensor<{M}x{N}xf32, #compound.dims<M, N>>
               {{collective.shard = {{M = ["rank"]}}}})
    -> (tensor<{M}x{N}xf32, #compound.dims<M, N>>
          {{collective.shard = {{N = ["rank"]}}}}) {{
  %y = compound.map neg %x : tensor<{M}x{N}xf32, #compound.dims<M, N>>
    -> tensor<{M}x{N}xf32, #compound.dims<M, N>>
  func.return %y : tensor<{M}x{N}xf32, #compound.dims<M, N>>
}}
"""
WORKLOADS = {**TEXTS, **SHARED_TEXTS, "flash_decode": DECODE}
del WORKLOADS["attention"]  # takes long: six heads, of which no rank has a shard
FIXED = {**WORKLOADS, "total": TOTAL, "turned": TURNED}
"""With programs that are compiled in one way only."""
PATTERNS = ("bsp", "wait", "pull", "push", "fused", "auto")
STRATEGIES = ("none", "partial", "full", "auto")

FOUND = {
    "a rank has one column or none": ("ag_gemm", 4, 3, 3, 5, "bsp"),
    "a rank has two rows or none": ("ag_gemm_rows", 8, 1, 16, 5, "wait"),
    "only one rank has terms": ("gemm_all_reduce", 3, 2, 1, 4, "push"),
    "three ranks share four rows": ("gemm_reduce_scatter", 4, 5, 6, 3, "pull"),
    "only one rank has an expert": ("expert_gemm", 5, 1, 1, 3, "fused"),
    "each loads one row of all": ("ring_attention", 3, 3, 5, 3, "pull stream=false"),
    "what is gathered is split": ("ring_attention", 1, 3, 1, 3, 'wait split="N=3"'),
    "parts of a share": ("gemm_reduce_scatter", 3, 2, 8, 2, 'pull split="K=4"'),
    "each rank sends one number": ("total", 5, 3, 1, 2, "fused sources=all dim=M"),
    "the whole of one row is no shard": ("turned", 1, 2, 1, 3, "fused persistent=true"),
    "a rank sees no key": ("flash_decode", 1, 3, 2, 4, "fused"),
}
"""Programs that were wrong once: workload, M, N, K, ranks, pattern and more."""


def compiled(name: str, m: int, n: int, k: int, ranks: int, options: str) -> str:
    text = FIXED[name].format(M=m, N=n, K=k)
    pipeline = f"triton-distributed{{ranks={ranks} pattern={options}}}"
    return emitted(text, f"{H200X8},{pipeline}")


def drawn(random: Random) -> Iterator[tuple[str, int, int, int, int, str]]:
    """Yield a program for each workload, all but that at random."""
    for name in WORKLOADS:
        m, n, k = (random.randint(1, most) for most in (3, 5, 5))
        pattern, strategy = random.choice(PATTERNS), random.choice(STRATEGIES)
        options = f"{pattern} strategy={strategy}"
        yield name, m, n, k, random.choice((2, 3, 4)), options


def expect_right(sources: dict[str, str], folder: Path, seeds: int = 2) -> None:
    assert outcomes(sources, folder, seeds) == dict.fromkeys(sources, "right")


def test_programs_that_were_wrong_once(tmp_path: Path) -> None:
    sources = {
        why.replace(" ", "_"): compiled(*case) for why, case in some(FOUND.items(), 3)
    }
    expect_right(sources, tmp_path, seeds=2 if EVERY_CASE else 1)


@exhaustive
def test_programs_at_random(tmp_path: Path) -> None:
    cases = enumerate(drawn(Random(5)))
    sources = {f"case{i}_{case[0]}": compiled(*case) for i, case in cases}
    expect_right(sources, tmp_path)
