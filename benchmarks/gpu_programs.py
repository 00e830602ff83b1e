"""The programs of benchmarks/gpu.py: which sizes of which samples, by what passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ladder_programs import PATTERNS, resized

from comet.passes.pipelines.triton_distributed import TritonDistributedPass

Extents = Mapping[str, int]
"""The size of each dimension of an op, by its name."""

PRODUCT = {"M": 128, "K": 64, "N": 256}
ATTENTION = {"B": 1, "H": 8, "M": 128, "N": 256, "D": 64, "E": 32}
SHARED = {"M": 64, "K": 128, "N": 96}

SAMPLES: Mapping[str, Extents] = {
    "gemm": PRODUCT,
    "gemm_softmax": PRODUCT,
    "gemm_layernorm": PRODUCT,
    "gemm_rmsnorm": PRODUCT,
    "gemm_gelu": PRODUCT,
    "gemm_silu": PRODUCT,
    "gemm_bias_relu": PRODUCT,
    "gemm_gemm": PRODUCT | {"L": 32},
    "gated_mlp": PRODUCT | {"L": 32},
    "attention": ATTENTION,
    "attention_causal": ATTENTION,
    "attention_grouped": ATTENTION | {"H": 2, "G": 4},
    "attention_flat": ATTENTION | {"H": 2, "HG": 8},
    "flash_decode": {"B": 4, "H": 2, "G": 3, "S": 256, "D": 32, "E": 16},
    "ssm_scan": {"H": 8, "T": 128, "D": 64, "S": 16},
    "ag_gemm": SHARED,
    "gemm_all_reduce": SHARED,
    "gemm_reduce_scatter": SHARED,
    "expert_gemm": {"E": 8, "T": 32, "D": 64, "F": 48},
    "ring_attention": {"B": 1, "H": 4, "M": 64, "N": 128, "D": 32, "E": 16},
}
"""The samples, and the extents that are in them."""

ODD_PRODUCT = {"M": 37, "K": 45, "N": 83}
ODD_ATTENTION = {"B": 2, "H": 3, "M": 21, "N": 51, "D": 23, "E": 11}

ODD: Mapping[str, Extents] = dict.fromkeys(SAMPLES, ODD_PRODUCT) | {
    "gemm_gemm": ODD_PRODUCT | {"L": 19},
    "gated_mlp": ODD_PRODUCT | {"L": 19},
    "attention": ODD_ATTENTION,
    "attention_causal": ODD_ATTENTION,
    "attention_grouped": ODD_ATTENTION | {"H": 2, "G": 3},
    "attention_flat": ODD_ATTENTION | {"H": 3, "HG": 6},
    "ring_attention": ODD_ATTENTION,
    "flash_decode": {"B": 3, "H": 2, "G": 5, "S": 99, "D": 23, "E": 11},
    "ssm_scan": {"H": 3, "T": 29, "D": 13, "S": 5},
    "expert_gemm": {"E": 5, "T": 13, "D": 21, "F": 35},
}
"""Extents that divide by nothing, and that no number of ranks shares evenly."""


SMALLEST: Mapping[str, Extents] = {
    sample: {name: -(-size // 8) for name, size in extents.items()}
    for sample, extents in ODD.items()
}
"""Extents for a dry run."""

ELEMENTS = {"float16": "f16", "bfloat16": "bf16"}
"""The types of MLIR by those of torch."""


@dataclass(frozen=True)
class Program:
    """A function at one size, and the pass that compiles it to a launch plan."""

    text: str
    hardware: str
    """Of samples/hardware."""
    compiler: TritonDistributedPass
    place: int = 0
    """The place of its tiling in the order of the model, from 1; 0: comet's choice."""


def with_extents(sample: str, extents: Extents) -> str:
    """Return the text of a sample with other extents."""
    names = {size: extents[name] for name, size in SAMPLES[sample].items()}
    return resized(sample, names)


def of_one_rank(sample: str, extents: Extents, dtype: str) -> Program:
    """Return a sample at some size, of float16 or bfloat16, for one GPU."""
    text = with_extents(sample, extents).replace("xf16>", f"x{ELEMENTS[dtype]}>")
    return Program(text, "h200x1", TritonDistributedPass(to="dataflow"))


FORMS = {
    "wide": {"narrow": "none"},
    "descriptors": {"copies": "descriptors"},
    "specialized": {"copies": "descriptors", "specialize": True},
    "looped": {"persist": "all"},
    "rows_ahead": {"persist": "auto"},
    "ahead": {"copies": "descriptors", "specialize": True, "persist": "all"},
    "staged": {"copies": "descriptors", "persist": "all", "stores": "all"},
    "grouped": {"ctas": "auto"},
    "two_launches": {"merge": "launch"},
    "unsplit": {"split": "none"},
    "masked": {"unmask": "none"},
    "by_index": {"order": "index"},
    "exp": {"exp": "exp"},
    "divided": {"reciprocals": False},
    "scaled_maxima": {"maxima": False},
    "scaled": {"scales": "none"},
    "plain": {"copies": "pointers", "specialize": False, "persist": "none"},
    "shared": {"share": "all"},
    "shared_16": {"share": "all", "split": "S=16"},
    "split_16": {"split": "S=16"},
}
"""What is compared with the kernels that comet takes by default, by its options."""


def forms_of_one_rank(sample: str, extents: Extents, dtype: str) -> dict[str, Program]:
    """Return a sample at some size in each form that applies, by name."""
    default = of_one_rank(sample, extents, dtype)
    forms = {
        name: replace(default.compiler, **options)
        for name, options in FORMS.items()
        if str(options.get("split", "none")).partition("=")[0] in ("none", *extents)
    }
    return {name: replace(default, compiler=form) for name, form in forms.items()}


def candidates(sample: str, extents: Extents, count: int) -> dict[str, Program]:
    """Return a sample with each of the tilings that the model ranks first, by name."""
    first = of_one_rank(sample, extents, "bfloat16")
    places = range(1, count + 1)
    return {f"candidate_{place}": replace(first, place=place) for place in places}


RANK_FORMS = {
    "push_each": TritonDistributedPass(ranks=2, pattern="push", sources="each"),
    "push_all": TritonDistributedPass(ranks=2, pattern="push", sources="all"),
    "in_place_all": TritonDistributedPass(
        ranks=2, pattern="pull", inputs="symmetric", sources="all"
    ),
    "auto": TritonDistributedPass(ranks=2, pattern="auto", inputs="symmetric"),
}
"""
Waits for each source or for all of them at a time, and what comet would choose, for
two ranks.
"""


def of_ranks(
    text: str, ranks: int, forms: Mapping[str, TritonDistributedPass] = PATTERNS
) -> dict[str, Program]:
    """Return a function for so many ranks, by every pattern or in other forms."""
    return {
        name: Program(text, "h200x8", replace(compiler, ranks=ranks, to="dataflow"))
        for name, compiler in forms.items()
    }
