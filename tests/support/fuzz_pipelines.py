"""Pipelines for random programs and their parts, drawn at random."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache
from random import Random
from typing import get_type_hints

from xdsl.passes import ModulePass

from comet.universe import installed

PATTERNS = ("bsp", "wait", "pull", "push", "fused", "auto")
STRATEGIES = ("none", "partial", "full", "auto")
KINDS = ("allreduce", "reduce_scatter_all_gather", "reduce_broadcast", "gather", "auto")
BINDINGS = ("sequential", "sequential", "pipeline", "auto")
AXES = {"edge": ("cx", "cy", "kx", "ky"), "cloud": ("cx", "cy")}
WORDS = (
    *("auto", "none", "N", "M", "K", "Q", "1", "0", "-1", "3", "true", "false", "M=2"),
    *(
        "M=2 K=2",
        "gather: M=3",
        "p_dram: M=2",
        "p: M=2 warps=4",
        "S=0",
        "K=2",
        "cx,cy",
        "rank",
    ),
    *(
        "contract",
        "GB",
        "OB",
        "DRAM",
        "f16",
        "f32",
        "edge",
        "full",
        "99999999999999999999",
    ),
    *("M,N", '"M:cx,cy;N:kx,ky"', '"N:rank"', '"M:"', '"N:cx;"', '"N:cx;M:cx"'),
    *('"M=2; "', '"p_dram: M=2 N=2; c_ob: K=2"', "1.5", "{a=1}", '"', "a=b"),
)
"""Values of options, fitting and not."""

Specs = tuple[str, ...]


def attach(machine: str) -> str:
    """Return the pass that attaches a sample's hardware."""
    return f'attach-hardware{{path="samples/hardware/{machine}.yaml"}}'


def accelerator(random: Random, dims: Sequence[str], decompose: bool) -> Specs:
    """Return the passes to COMET files, one by one; `decompose` where ops are named."""
    machine = random.choice(("edge", "edge", "cloud"))
    axes = AXES[machine][: random.randint(0, len(AXES[machine]))]
    spread = f"distribute{{dim={random.choice(dims or ['M'])} axes={','.join(axes)}}}"
    return (
        attach(machine),
        *(("decompose{accumulator=input}",) if decompose else ()),
        *(("stream",) if random.random() < 0.2 else ()),
        *((spread,) if axes and dims else ()),
        "insert-collectives",
        f"place-collectives{{at=GB kind={random.choice(KINDS)}}}",
        f"fuse{{strategy={random.choice(('isolate_contractions', *STRATEGIES))}}}",
        "tile",
        f"bind{{kind={random.choice(BINDINGS)}}}",
        "annotate-cost",
        "lower-to-comet",
    )


def one_gpu(random: Random, dims: Sequence[str], decompose: bool) -> Specs:
    """Return the passes to the kernels of one GPU."""
    split = f"split{{dim={random.choice(dims or ['M'])} parts={random.choice((2, 3))}}}"
    return (
        attach("h200x1"),
        *(("decompose",) if decompose else ()),
        "lower-views",
        *(("stream",) if random.random() < 0.6 else ()),
        *((split,) if random.random() < 0.08 else ()),
        *_kernels(random),
        *("annotate-cost", *_copies(random), "lower-to-triton"),
    )


def many_ranks(random: Random, dims: Sequence[str], decompose: bool) -> Specs:
    """Return the passes to the kernels of two to four ranks."""
    dim = random.choice(dims or ["M"])
    pattern = random.choice(
        (*PATTERNS, "pull inputs=symmetric", f'push blocks="{dim}=2"')
    )
    return (
        attach(random.choice(("h200x8", "mi300x8"))),
        f"select-ranks{{ranks={random.choice((2, 3, 4))}}}",
        *(("decompose",) if decompose else ()),
        "lower-views",
        *(("stream",) if random.random() < 0.6 else ()),
        *((f"distribute{{dim={dim} axes=rank}}",) if random.random() < 0.9 else ()),
        *(("propagate-shardings",) if random.random() < 0.5 else ()),
        *("insert-collectives", "merge-collectives", "place-collectives"),
        "lower-reductions",
        *_kernels(random),
        f"bsp-to-dataflow{{pattern={pattern}}}",
        *("lower-channels", "verify-sync", "annotate-cost"),
        *(*_copies(random), "lower-to-triton"),
    )


def _kernels(random: Random) -> Specs:
    between = random.choice(("auto", "recompute", "spill"))
    strategy = random.choice(STRATEGIES)
    fuse = f"fuse{{strategy={strategy} between={between}}}"
    return "lower-views", fuse, "tile", "outline-kernels"


def _copies(random: Random) -> Specs:
    """Return passes before `lower-to-triton`, which does without them too."""
    passes = (
        "materialize-copies",
        "hoist-copies",
        "place-waits",
        "pad-blocks",
        "map-grid",
        "mask-copies",
    )
    return passes[: random.choice((0, 1, 2, 3, 4, 5, 6, 6))]


def in_one(random: Random, dims: Sequence[str]) -> tuple[Specs, str]:
    """Return a pipeline that is one pass, and the target that it leads to."""
    dim = random.choice(dims or ["M"])
    if random.random() < 0.3:
        strategy = random.choice(("isolate_contractions", *STRATEGIES))
        shared = random.choice(("", *_shared_on_edge(random, dims or ["M"])))
        options = f"strategy={strategy}{shared}"
        return (attach("edge"), f"comet-accelerator{{{options}}}"), "comet"
    ranks = random.choice((1, 2, 3, 4))
    options = f"strategy={random.choice(STRATEGIES)}"
    if ranks > 1:
        axes = random.choice((dim, dim, f'"{dim}:rank"'))
        options += f" pattern={random.choice(PATTERNS)} dim={axes}"
    machine = "h200x1" if ranks == 1 else "h200x8"
    return (attach(machine), f"triton-distributed{{ranks={ranks} {options}}}"), "triton"


OPTIONS: Mapping[str, Sequence[str]] = {
    "kind": ("allreduce", "reduce_scatter_all_gather"),
    "stream": ("false",),
    "scales": ("all", "none"),
    "exp": ("exp", "exp2"),
    "maxima": ("false",),
    "reciprocals": ("false",),
    "strategy": STRATEGIES,
    "between": ("recompute", "spill"),
    "narrow": ("none",),
    "merge": ("launch", "last"),
    "launches": ("none",),
    "share": ("all", "none"),
    "order": ("longest", "index"),
    "unmask": ("all", "none"),
    "persist": ("all", "all", "none", "auto"),
    "copies": ("pointers", "descriptors", "descriptors"),
    "specialize": ("true", "true", "false"),
    "stores": ("all",),
}
"""Options of `triton-distributed` with values that ask for something."""
EXCHANGES: Mapping[str, Sequence[str]] = {
    "sources=each": PATTERNS,
    "sources=all": PATTERNS,
    "persistent=true": ("fused", "auto"),
    "persistent=false": ("fused", "auto"),
    "inputs=symmetric": ("pull", "auto"),
}
"""Options of several ranks, with the patterns to which they apply."""


def with_options(random: Random, dims: Sequence[str], shared: bool = False) -> Specs:
    """
    Return `triton-distributed` with some of its options.

    `shared` programs say themselves what ranks have.
    """
    ranks = random.choice((2, 3, 4) if shared else (1, 1, 2, 3, 4))
    ctas = 1 if shared else random.choice((1, 1, 1, 1, 1, 1, 2, 2, 3, 4))
    given = {"ranks": str(ranks), **_some(OPTIONS, random)}
    if ranks > 1:
        given["pattern"] = pattern = random.choice(PATTERNS)
        applying = [text for text, takes in EXCHANGES.items() if pattern in takes]
        if random.random() < 0.4:
            name, value = random.choice(applying).split("=")
            given[name] = value
    if max(ranks, ctas) > 1 and not shared:
        given["dim"] = _shared_by(random, dims or ["M"], ranks, ctas)
    if ctas > 1:
        given = {n: v for n, v in given.items() if n != "kind"} | {"ctas": str(ctas)}
    elif random.random() < 0.15:
        parts = f'"{random.choice(dims or ["M"])}={random.choice((2, 3, 4))}"'
        given["split"] = random.choice(("none", parts, parts))
    options = " ".join(f"{name}={value}" for name, value in given.items())
    machine = random.choice(("h200x8", "mi300x8")) if ranks > 1 else "h200x1"
    return attach(machine), f"triton-distributed{{{options}}}"


NUMBERS = {
    "warps": (1, 2, 4, 8),
    "stages": (1, 2, 3, 4),
    "group": (1, 2, 3, 8),
    "cluster": (1, 1, 2),
    "subtiles": (1, 2, 4),
    "parts": (1, 2),
}
"""Launch numbers of kernels."""


def with_other_numbers(plan: str, random: Random) -> str:
    """Return a plan with other loops, and with other launch numbers of its kernels."""

    def other(found: re.Match[str]) -> str:
        if random.random() < 0.4:
            return found[0]
        numbers = NUMBERS.get(found[1], (1, 2, 2, 2, 3, 4, 5))
        return f"{found[1]}={random.choice(numbers)}"

    return re.sub(r"(\w+)=(\d+)", other, plan)


def _some(options: Mapping[str, Sequence[str]], random: Random) -> dict[str, str]:
    """Return values of a few options."""
    chosen = [name for name in options if random.random() < 0.2]
    return {name: random.choice(options[name]) for name in chosen}


def _shared_by(random: Random, dims: Sequence[str], ranks: int, ctas: int) -> str:
    """Return the dimension that ranks or programs share, or one for each."""
    one, *others = random.sample(dims, min(len(dims), 2))
    if min(ranks, ctas) > 1 and others and random.random() < 0.6:
        return f'"{one}:rank;{others[0]}:cta"'
    return one


def _shared_on_edge(random: Random, dims: Sequence[str]) -> Sequence[str]:
    """Return ways to say what clusters and cores share."""
    one, two = random.choice(dims), random.choice(dims)
    return (f" dim={one}", f" dim={one},{two}", f' dim="{one}:cx,cy;{two}:kx,ky"')


@cache
def passes() -> dict[str, type[ModulePass]]:
    """Return the passes of comet by name."""
    found = {n: make() for n, make in installed().all_passes.items()}
    return {
        n: kind for n, kind in found.items() if kind.__module__.startswith("comet.")
    }


def some_pass(random: Random) -> str:
    """Return any pass, with any options."""
    name = random.choice([*passes(), "canonicalize", "cse", "dce"])
    if name == "attach-hardware":
        return attach(random.choice(("edge", "cloud", "h200x1", "h200x8", "mi300x8")))
    made = passes().get(name)
    options = () if made is None else fields(made)
    types = {} if made is None else get_type_hints(made)
    given = [
        field for field in options if field.name != "name" and _is_given(field, random)
    ]
    if not given:
        return name
    texts = [f"{field.name}={_value(types[field.name], random)}" for field in given]
    return f"{name}{{{' '.join(texts)}}}"


def _is_given(field: Field[object], random: Random) -> bool:
    return random.random() < (0.9 if field.default is MISSING else 0.3)


def _value(kind: object, random: Random) -> str:
    """Return a value for an option; mostly one of those that its type lists."""
    listed = str(kind).partition("Literal[")[2].partition("]")[0]
    words = [word.strip(" '\"") for word in listed.split(",") if word.strip(" '\"")]
    return random.choice(words if words and random.random() < 0.8 else WORDS)
