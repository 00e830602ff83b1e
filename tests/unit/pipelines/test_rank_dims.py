"""Several ranks share any dimension: each addresses memory as it lies there."""

from collections.abc import Iterator
from pathlib import Path

from covering import EVERY_CASE, exhaustive
from gpu_ranks import H200X8
from named_ops import NAMED_OPS, NamedOp
from rank_runs import outcomes
from triton_modules import emitted

EXTENTS = {
    **{"M": 3, "N": 5, "K": 4, "L": 3},
    **{"B": 2, "H": 2, "G": 2, "S": 3, "T": 4, "D": 3, "E": 4, "F": 3},
}
STRATEGIES = ("full", "partial", "none")
PATTERNS = ("bsp", "push", "pull", "fused", "wait")
VARIED = ("expert_gemm", "gemm_layernorm", "flash_decode", "ssm_scan")
"""Ops with batches, statistics, folds and scans."""


def dims_of(op: NamedOp) -> list[str]:
    dims = [dim for names in (*op.operands, op.result) for dim in names]
    return list(dict.fromkeys(dims))


def cases() -> Iterator[tuple[NamedOp, str]]:
    """Yield every dimension that ranks can share, of ops that vary; a part is run."""
    for op in NAMED_OPS:
        if op.title in VARIED:
            yield from ((op, dim) for dim in dims_of(op))


def test_ranks_share_any_dimension(tmp_path: Path) -> None:
    sources: dict[str, str] = {}
    for index, (op, dim) in enumerate(cases()):
        if index % 8 and not EVERY_CASE:
            continue
        pattern = PATTERNS[index % len(PATTERNS)]
        options = f"ranks={2 + index % 3} dim={dim} pattern={pattern}"
        options += f" strategy={STRATEGIES[index // 2 % 3]}"
        pipeline = f"{H200X8},triton-distributed{{{options}}}"
        sources[f"{op.title}_{dim}"] = emitted(op.text(EXTENTS), pipeline)
    assert outcomes(sources, tmp_path, seeds=1) == dict.fromkeys(sources, "right")


@exhaustive
def test_ranks_share_both_sides_of_one_tensor(tmp_path: Path) -> None:
    """Each side has its own sharding, of one element or more, odd or not."""
    sources: dict[str, str] = {}
    for extent in (1, 2, 3):
        text = f"""
func.func @square(%x: tensor<{extent}x{extent}xf16>) -> tensor<{extent}x{extent}xf16> {{
  %y = compound.gemm %x, %x
      : (tensor<{extent}x{extent}xf16>, tensor<{extent}x{extent}xf16>)
      -> tensor<{extent}x{extent}xf16>
  func.return %y : tensor<{extent}x{extent}xf16>
}}
"""
        pipeline = f"{H200X8},triton-distributed{{ranks=2 dim=K}}"
        sources[f"square_{extent}"] = emitted(text, pipeline)
    assert outcomes(sources, tmp_path, seeds=1) == dict.fromkeys(sources, "right")
