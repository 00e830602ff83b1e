"""Attention whose query heads share heads of keys and values."""

from pathlib import Path

from covering import EVERY_CASE, exhaustive
from gpu_ranks import H200X8
from rank_runs import outcomes
from triton_modules import emitted, hardware, wrong

K = "tensor<1x{H}x{N}x7xf16>"
V = "tensor<1x{H}x{N}x5xf16>"
GROUPED = "tensor<1x{H}x{G}x{M}x7xf16>", "tensor<1x{H}x{G}x{M}x5xf16>"
FLAT = "tensor<1x{HG}x{M}x7xf16>", "tensor<1x{HG}x{M}x5xf16>"
PATTERNS = ("bsp", "push", "pull", "fused", "wait")


def attention(
    heads: int, group: int, queries: int, keys: int, *, flat: bool, causal: bool
) -> str:
    """Return attention of `group` query heads to each of `heads` key heads."""
    sizes = {"H": heads, "G": group, "HG": heads * group, "M": queries, "N": keys}
    kinds = (FLAT if flat else GROUPED)[0], K, V, (FLAT if flat else GROUPED)[1]
    q, k, v, o = (kind.format(**sizes) for kind in kinds)
    return f"""
    func.func @main(%q: {q}, %k: {k}, %v: {v}) -> {o} {{
      %o = compound.attention %q, %k, %v {"causal" if causal else ""}
        : ({q}, {k}, {v}) -> {o}
      func.return %o : {o}
    }}"""


PROGRAMS = {
    "grouped": attention(2, 3, 37, 67, flat=False, causal=True),
    "flat": attention(2, 3, 21, 67, flat=True, causal=False),
    "one key head": attention(1, 5, 19, 35, flat=False, causal=True),
    "decode": attention(2, 4, 1, 67, flat=False, causal=True),
    "decode, one key head": attention(1, 8, 1, 67, flat=True, causal=True),
    "some tokens": attention(2, 8, 3, 67, flat=False, causal=True),
}


def test_kernels_agree_with_their_references(tmp_path: Path):
    """Of half of the programs on one machine, of one on the other."""
    for gpu in ("h200x1", "mi300x8"):
        pipeline = f"{hardware(f'{gpu}.yaml')},triton-distributed{{strategy=full}}"
        some = list(PROGRAMS)
        if not EVERY_CASE:
            some = some[::2] if gpu == "h200x1" else some[:1]
        sources = {name: emitted(PROGRAMS[name], pipeline) for name in some}
        assert not wrong(sources, tmp_path)


def test_decoded_query_heads_are_the_rows_of_one_product():
    pipeline = (
        f"{hardware('h200x1.yaml')},triton-distributed{{split=none strategy=full}}"
    )
    for name in ("decode", "decode, one key head"):
        assert "tl.dot" in emitted(PROGRAMS[name], pipeline)


@exhaustive
def test_ranks_share_heads_queries_or_keys(tmp_path: Path):
    sources: dict[str, str] = {}
    texts = {
        "grouped": attention(2, 2, 5, 9, flat=False, causal=True),
        "flat": attention(2, 2, 5, 9, flat=True, causal=True),
    }
    cases = [
        *(("grouped", 2, "G"), ("grouped", 4, "M"), ("grouped", 2, "N")),
        *(("flat", 1, "H"), ("flat", 2, "H"), ("flat", 8, "N")),
    ]
    for index, (name, ranks, dim) in enumerate(cases):
        if index % 2 and not EVERY_CASE:
            continue
        pattern = PATTERNS[index % len(PATTERNS)]
        options = f"ranks={ranks} dim={dim} pattern={pattern} strategy=full"
        pipeline = f"{H200X8},triton-distributed{{{options}}}"
        sources[f"{name} {ranks} {dim}"] = emitted(texts[name], pipeline)
    assert outcomes(sources, tmp_path, seeds=1) == dict.fromkeys(sources, "right")
