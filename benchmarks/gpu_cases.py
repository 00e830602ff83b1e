"""The cases of benchmarks/gpu.py, what matters most first."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpu_by_hand import BY_HAND, by_hand
from gpu_candidates import MOST
from gpu_programs import (
    ODD,
    RANK_FORMS,
    SAMPLES,
    SMALLEST,
    Extents,
    Program,
    candidates,
    forms_of_one_rank,
    of_one_rank,
    of_ranks,
    with_extents,
)
from gpu_run.case import OURS, Case, Group, Task
from ladder_programs import PAPER, PATTERNS, SAMPLE_NAMES
from ladder_programs import TINY as TINY_SIZES
from ladder_programs import Sizes as SharedSizes

FIRST = (OURS, "grouped")
"""What is compared before anything is timed: what most will use, and what may hang."""

LARGE = 1024
"""Rows of products and of attention that are tiled by hand."""

RANKS_ONLY = {"gemm_all_reduce", "gemm_reduce_scatter", "ring_attention"}
"""Samples that differ from another one only in what ranks share."""

ROWS = ("gemm_softmax", "gemm_layernorm", "gemm_rmsnorm")
FORWARD = ("gemm", "gemm_gelu", "gated_mlp")
WAVES = (
    "machine",
    "right",
    "speed",
    "ladder",
    "exchanges",
    "tilings",
    "ranks",
    "forms",
    "compiled",
)
"""What is done in which order: what most depends on comes first."""

LIMITS: Mapping[Task, float] = {
    "calibrate": 60.0,
    "exchange": 60.0,
    "check": 30.0,
    "compare": 30.0,
    "time": 60.0,
}
"""Seconds that a case of a task may take: some ten times what it took on an H200."""
COMPILED = 180.0
"""The same where `torch.compile` tries its kernels."""


@dataclass(frozen=True)
class Wanted:
    """A case, and what has to be compiled for it, by alternative."""

    case: Case
    programs: Mapping[str, Program] = field(default_factory=dict[str, Program])


@dataclass(frozen=True)
class Sizes:
    """What is checked and timed at which sizes."""

    rows: Sequence[tuple[int, int, int]]
    """M, N and K of products with an operation on rows after them."""
    tokens: Sequence[int]
    """M of products in feed-forward networks."""
    hidden: int
    """K of the same, and the result of a gated MLP."""
    wide: int
    """N of the same."""
    squares: Sequence[int]
    """Extents of square products without anything after them."""
    attention: Sequence[tuple[str, int, int, int, int]]
    """Sample, B, H, M = N, D = E."""
    decode: Sequence[tuple[int, int]]
    """B and keys of flash decode on one rank."""
    shared: SharedSizes
    """What stays the same in programs of several ranks, and in flash decode."""
    ladder_rows: Sequence[int]
    """M of AG+GEMM."""
    exchange_rows: Sequence[int]
    """M of GEMM + all-reduce and GEMM + reduce-scatter."""
    ladder_decode: Sequence[tuple[int, int]]
    """B and keys of each rank."""
    ladder_ranks: Sequence[int]
    checked: Mapping[str, Sequence[str]]
    """The patterns of each sample that are checked at small sizes."""
    checked_ranks: Sequence[int]
    checked_extents: Sequence[Mapping[str, Extents]]
    """The small sizes of each sample for several ranks."""
    element_types: Sequence[tuple[str, Mapping[str, Extents]]]
    """The element types and small sizes of each sample for one rank."""
    in_all_forms: Collection[str]
    """The samples that are timed in every form, not only in that of comet's choice."""
    ranked: Sequence[tuple[str, Extents]]
    """The samples and sizes at which the model's best tilings are timed."""
    most_ranked: int
    """How many of these tilings."""
    row_samples: Sequence[str] = ROWS
    """The samples with an operation on rows."""


_HEADS = {"B": 4, "H": 32, "M": 4096, "N": 4096, "D": 128, "E": 128}
_DECODE = {
    "H": PAPER.heads,
    "G": PAPER.queries,
    "D": PAPER.head_size,
    "E": PAPER.head_size,
}

REAL = Sizes(
    rows=(
        (4096, 4096, 4096),
        (16384, 1024, 4096),
        (32768, 512, 1024),
        (65536, 256, 256),
        (8192, 8192, 1024),
    ),
    tokens=(16, 256, 4096),
    hidden=4096,
    wide=14336,
    squares=(4096,),
    attention=(
        ("attention", 4, 32, 4096, 128),
        ("attention_causal", 4, 32, 4096, 128),
        ("attention", 16, 16, 1024, 64),
        ("attention_causal", 1, 32, 16384, 128),
    ),
    decode=((1, 131072), (16, 32768), (4, 65536)),
    shared=PAPER,
    ladder_rows=(16, 64, 256, 1024, 4096),
    exchange_rows=(16, 256, 4096),
    ladder_decode=((1, 8192), (1, 32768), (16, 8192)),
    ladder_ranks=(4, 8),
    checked=dict.fromkeys(SAMPLE_NAMES, tuple(PATTERNS)),
    checked_ranks=(2, 4, 8),
    checked_extents=(SAMPLES, ODD),
    element_types=(("float16", SAMPLES), ("bfloat16", ODD)),
    in_all_forms=SAMPLES,
    ranked=(
        ("gemm", {"M": 4096, "N": 4096, "K": 4096}),
        ("gemm_softmax", {"M": 65536, "N": 256, "K": 256}),
        ("gemm_softmax", {"M": 32768, "N": 512, "K": 1024}),
        ("gemm_softmax", {"M": 8192, "N": 8192, "K": 1024}),
        ("gemm_layernorm", {"M": 32768, "N": 512, "K": 1024}),
        ("gemm_rmsnorm", {"M": 16384, "N": 1024, "K": 4096}),
        ("gemm_gelu", {"M": 256, "N": 14336, "K": 4096}),
        ("gated_mlp", {"M": 256, "N": 14336, "K": 4096, "L": 4096}),
        ("attention", _HEADS),
        ("attention_causal", _HEADS),
        ("flash_decode", {**_DECODE, "B": 4, "S": 65536}),
    ),
    most_ranked=MOST,
)

GOALS = replace(
    REAL,
    row_samples=("gemm_softmax", "gemm_layernorm"),
    tokens=(16, 256),
    attention=[each for each in REAL.attention if each[4] == 128],
    ladder_ranks=(8,),
    ladder_decode=(),
    exchange_rows=(),
    checked={},
    element_types=(),
    ranked=[
        each for each in REAL.ranked if each[0] not in ("gemm_rmsnorm", "gemm_gelu")
    ],
)
"""What the goals are about, with what decides them first: for ten minutes on a GPU."""

TINY = Sizes(
    rows=((16, 32, 16),),
    tokens=(8,),
    hidden=16,
    wide=32,
    squares=(),
    attention=(("attention", 1, 2, 16, 16), ("attention_causal", 1, 2, 16, 16)),
    decode=((2, 32),),
    shared=TINY_SIZES,
    ladder_rows=(16,),
    exchange_rows=(),
    ladder_decode=((1, 32),),
    ladder_ranks=(2,),
    checked={"gemm_softmax": ("push",), "ring_attention": ("fused",)},
    checked_ranks=(2,),
    checked_extents=(SMALLEST,),
    element_types=(("bfloat16", SMALLEST),),
    in_all_forms=("gemm", "flash_decode"),
    ranked=(("gemm", {"M": 16, "N": 32, "K": 16}),),
    most_ranked=2,
)


def cases(sizes: Sizes) -> list[Wanted]:
    """Return all cases, in the order of their waves."""
    found = [
        *_machine(),
        *_timed_ones(sizes),
        *_small(sizes),
        *_small_ranks(sizes),
        *_ladder(sizes),
        *_ranked(sizes),
        *_by_hand(sizes),
    ]
    return sorted(found, key=lambda wanted: wanted.case.wave)


def _machine() -> Iterator[Wanted]:
    """Yield the rates of the machine, and what its programs wait for."""
    tasks: tuple[Task, ...] = ("calibrate", "exchange")
    for seed, task in enumerate(tasks):
        id = f"machine/{task}"
        yield Wanted(Case(id, "machine", task, 0, LIMITS[task], seed=seed))


def _small(sizes: Sizes) -> Iterator[Wanted]:
    """Yield every named op at small sizes, on one rank."""
    for dtype, extents in sizes.element_types:
        for sample in SAMPLES:
            if sample in RANKS_ONLY:
                continue
            own = extents[sample]
            about = f"{spelt(own)} {dtype}"
            case = _case("correctness", "check", "right", sample, about)
            case = replace(case, extents=own, dtype=dtype)
            yield Wanted(case, {OURS: of_one_rank(sample, own, dtype)})


def _small_ranks(sizes: Sizes) -> Iterator[Wanted]:
    """Yield every workload, pattern and number of ranks at small sizes."""
    for extents in sizes.checked_extents:
        for sample, patterns in sizes.checked.items():
            own, text = extents[sample], with_extents(sample, extents[sample])
            for ranks in sizes.checked_ranks:
                programs = of_ranks(text, ranks)
                for pattern in patterns:
                    about = f"{ranks} ranks {spelt(own)} {pattern}"
                    case = _case("correctness", "check", "ranks", sample, about)
                    case = replace(case, extents=own, dtype="float16", ranks=ranks)
                    yield Wanted(case, {pattern: programs[pattern]})


def _timed_ones(sizes: Sizes) -> Iterator[Wanted]:
    """Yield the timed sizes of one rank: compared with torch, then timed."""
    for sample, extents in _sizes_of_one(sizes):
        programs = {OURS: of_one_rank(sample, extents, "bfloat16")}
        if sample in sizes.in_all_forms:
            programs |= forms_of_one_rank(sample, extents, "bfloat16")
        ragged = sample == "flash_decode"
        for name, program in programs.items():
            about = spelt(extents) + f" {name}" * (name != OURS)
            wave = "right" if name in FIRST else "forms"
            case = replace(
                _case("correctness", "compare", wave, sample, about),
                extents=extents,
                dtype="bfloat16",
                ragged=ragged,
            )
            yield Wanted(case, {name: program})
        for lengths in (False, True) if ragged else (False,):
            about = spelt(extents) + " ragged" * lengths
            timed = _case("speed", "time", "speed", sample, about)
            timed = replace(timed, extents=extents, dtype="bfloat16", ragged=lengths)
            yield Wanted(replace(timed, baselines="quick"), programs)
        if sample in (*ROWS, *FORWARD):
            about = f"{spelt(extents)} compiled"
            timed = _case("speed", "time", "compiled", sample, about)
            timed = replace(timed, extents=extents, dtype="bfloat16", limit=COMPILED)
            yield Wanted(replace(timed, baselines="compiled"), programs)


def _sizes_of_one(sizes: Sizes) -> Iterator[tuple[str, Extents]]:
    """Yield the sample and the extents of all that one rank is timed at."""
    for size in sizes.squares:
        yield "gemm", {"M": size, "N": size, "K": size}
    for m, n, k in sizes.rows:
        extents = {"M": m, "N": n, "K": k}
        yield from ((sample, extents) for sample in sizes.row_samples)
    for sample, b, h, m, d in sizes.attention:
        yield sample, {"B": b, "H": h, "M": m, "N": m, "D": d, "E": d}
    shared = sizes.shared
    heads = {"H": shared.heads, "G": shared.queries}
    size = {"D": shared.head_size, "E": shared.head_size}
    for b, keys in sizes.decode:
        yield "flash_decode", {"B": b, **heads, "S": keys, **size}
    for sample in FORWARD:
        for m in sizes.tokens:
            extents = {"M": m, "N": sizes.wide, "K": sizes.hidden}
            last = {"L": sizes.hidden} if sample == "gated_mlp" else {}
            yield sample, extents | last


def _ladder(sizes: Sizes) -> Iterator[Wanted]:
    """Yield all programs of several ranks that are timed on one GPU."""
    for wave, sample, extents, ranks in _rungs(sizes):
        text = with_extents(sample, extents)
        programs = of_ranks(text, ranks) | of_ranks(text, ranks, RANK_FORMS)
        facts = {"extents": extents, "dtype": "float16", "ranks": ranks}
        facts["ragged"] = sample == "flash_decode"
        about = f"{ranks} ranks {spelt(extents)}"
        for pattern, program in programs.items():
            own = f"{about} {pattern}"
            case = _case("correctness", "compare", wave, sample, own)
            yield Wanted(replace(case, **facts), {pattern: program})
        timed = _case("ladder", "time", wave, sample, about)
        facts["ragged"] = False
        yield Wanted(replace(timed, baselines="all", **facts), programs)


def _ranked(sizes: Sizes) -> Iterator[Wanted]:
    """Yield the tilings that the model ranks first, all of an op in one case."""
    for sample, extents in sizes.ranked:
        programs = candidates(sample, extents, sizes.most_ranked)
        yield from _tilings(sample, extents, "candidates", programs)


def _by_hand(sizes: Sizes) -> Iterator[Wanted]:
    """Yield the tilings that a user would try, where products are large enough."""
    for sample, extents in sizes.ranked:
        if sample not in BY_HAND or extents["M"] < LARGE:
            continue
        if programs := by_hand(sample, extents):
            yield from _tilings(sample, extents, "by hand", programs)


def _tilings(
    sample: str, extents: Extents, what: str, programs: Mapping[str, Program]
) -> Iterator[Wanted]:
    """Yield what compares and what times some tilings of an op."""
    tasks: tuple[tuple[Group, Task], ...] = (
        ("correctness", "compare"),
        ("candidates", "time"),
    )
    for group, task in tasks:
        case = _case(group, task, "tilings", sample, f"{spelt(extents)} {what}")
        yield Wanted(replace(case, extents=extents, dtype="bfloat16"), programs)


def _rungs(sizes: Sizes) -> Iterator[tuple[str, str, Extents, int]]:
    """Yield the wave, the sample, the extents and the number of ranks."""
    shared = sizes.shared
    product = {"N": shared.columns, "K": shared.depth}
    for ranks in sizes.ladder_ranks:
        for m in sizes.ladder_rows:
            yield "ladder", "ag_gemm", {"M": m, **product}, ranks
        for b, keys in sizes.ladder_decode:
            heads = {"B": b, "H": shared.heads, "G": shared.queries}
            head = {"D": shared.head_size, "E": shared.head_size}
            yield (
                "exchanges",
                "flash_decode",
                {**heads, "S": keys * ranks, **head},
                ranks,
            )
        for m in sizes.exchange_rows:
            for sample in ("gemm_all_reduce", "gemm_reduce_scatter"):
                yield "exchanges", sample, {"M": m, **product}, ranks


def _case(group: Group, task: Task, wave: str, kind: str, about: str) -> Case:
    """Return a case with a stable id, and a seed that follows from it."""
    id = "/".join((group, task, kind, about.replace(" ", "-")))
    seed = zlib.crc32(id.encode()) % 10**6
    place, limit = WAVES.index(wave), LIMITS[task]
    return Case(id, group, task, place, limit, kind, about, seed=seed)


def spelt(extents: Extents) -> str:
    """Return extents as tables show them; products as M x N x K."""
    if set(extents) == {"M", "N", "K"}:
        return f"{extents['M']}x{extents['N']}x{extents['K']}"
    return " ".join(f"{name}{size}" for name, size in extents.items())
