"""Random options of `triton-distributed` and `comet-accelerator` that go together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from fuzz_pipelines import PATTERNS, STRATEGIES, Specs, attach
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import StringAttr
from xdsl.traits import SymbolTable

from comet.dialects.compound import ContractOp
from comet.dialects.dataflow import KernelOp
from comet.passes.schedule.plan_string import PLAN

OPTIONS: Mapping[str, Sequence[str]] = {
    "kind": ("allreduce", "reduce_scatter_all_gather"),
    "stream": ("false",),
    "scales": ("all", "none"),
    "exp": ("exp", "exp2"),
    "maxima": ("false",),
    "reciprocals": ("false",),
    "strategy": (*STRATEGIES, "priority"),
    "between": ("recompute", "spill"),
    "narrow": ("none",),
    "collapse": ("all", "all", "none"),
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
OF_RANKS = ("kind", "pattern", "sources", "persistent", "inputs", "tiles")
"""Options of what several ranks exchange."""
IN_NO_GROUPS = (*OF_RANKS, "merge", "launches", "share", "split", "collapse")
"""Options that do not go with groups of programs."""
BY_DESCRIPTORS = ("copies", "specialize", "stores")
"""Options that need descriptors."""
EXCHANGES: Mapping[str, Sequence[str]] = {
    "sources=each": PATTERNS,
    "sources=all": PATTERNS,
    "persistent=true": ("fused", "auto"),
    "persistent=false": ("fused", "auto"),
    "inputs=symmetric": ("pull", "auto"),
    "tiles=auto": PATTERNS,
}
"""Options of several ranks, with the patterns to which they apply."""
ON_ACCELERATORS: Mapping[str, Sequence[str]] = {
    "stream": ("true", "false", "auto"),
    "pad": ("none",),
    "at": ("GB",),
    "kind": ("allreduce", "reduce_scatter_all_gather", "gather", "auto"),
    "partials": ("reduce",),
    "strategy": (*STRATEGIES, "isolate_contractions"),
    "chunks": ("auto",),
    "loops": ("shared", "auto"),
    "bind": ("sequential", "pipeline", "parallel", "auto"),
    "model": ("paper", "tool"),
    "objective": ("latency", "energy", "edp"),
    "mappings": ("one", "merged", "auto"),
}
"""The same of `comet-accelerator`."""
ONLY_ON_GPUS = re.compile(r"index|gather|scatter|causal|decode|scan|map (log|sin|cos)")
"""What accelerators do not compute."""
EXCHANGED = re.compile(r"compound\.(reduce|gemm_(soft|layer|rms)|attention)")
"""Ops of which programs of a group may exchange parts."""


def with_options(
    random: Random, text: str, dims: Sequence[str], shared: bool = False
) -> Specs:
    """
    Return `triton-distributed` with some of its options.

    `shared` programs say themselves what ranks have.
    """
    extents = extents_of(text)
    ranks = random.choice((2, 3, 4) if shared else (1, 1, 2, 3, 4))
    machine = random.choice(("h200x8", "mi300x8")) if ranks > 1 else "h200x1"
    given = {"ranks": str(ranks), **_some(OPTIONS, random)}
    if machine == "mi300x8":
        given = {n: v for n, v in given.items() if n not in BY_DESCRIPTORS}
    if given.get("specialize") == "true" and given.get("copies") == "pointers":
        del given["copies"]
    if given.get("share") == "all" and given.get("merge") == "launch":
        del given["merge"]
    others = "kind" if ranks == 1 else "collapse"
    given = {n: v for n, v in given.items() if n != others}
    if ranks > 1:
        given |= _exchange(random)
    ctas = 1 if shared else random.choice((1,) * 9 + (2, 2, 3))
    wide = [dim for dim in dims if extents.get(dim, ctas) >= ctas]
    if ctas > 1 and wide and EXCHANGED.search(text):
        given = {n: v for n, v in given.items() if n not in IN_NO_GROUPS}
        given |= {"ctas": str(ctas), "dim": _shared_by(random, wide, ranks)}
    elif ranks > 1 and random.random() < 0.2:
        given["dim"] = "auto"
    elif ranks > 1 and not shared:
        given["dim"] = random.choice(wide or dims or ["M"])
    if "ctas" not in given and random.random() < 0.15:
        given["split"] = _split(random, extents)
    options = " ".join(f"{name}={value}" for name, value in given.items())
    return attach(machine), f"triton-distributed{{{options}}}"


def _exchange(random: Random) -> dict[str, str]:
    """Return a pattern, and perhaps an option that applies to it."""
    given = {"pattern": (pattern := random.choice(PATTERNS))}
    if random.random() < 0.4:
        applying = [text for text, takes in EXCHANGES.items() if pattern in takes]
        name, value = random.choice(applying).split("=")
        given[name] = value
    return given


def _shared_by(random: Random, dims: Sequence[str], ranks: int) -> str:
    """Return the dimension that ranks and programs share, or one for each."""
    one, *others = random.sample(dims, min(len(dims), 2))
    if ranks > 1 and others and random.random() < 0.6:
        return f'"{one}:rank;{others[0]}:cta"'
    return one


def _split(random: Random, extents: Mapping[str, int]) -> str:
    """Return a dimension and a number of parts that divides it."""
    pairs = [(d, n) for d, e in extents.items() for n in (2, 3, 4) if e % n == 0]
    if not pairs or random.random() < 0.3:
        return "none"
    dim, parts = random.choice(pairs)
    return f'"{dim}={parts}"'


def _some(options: Mapping[str, Sequence[str]], random: Random) -> dict[str, str]:
    """Return values of a few options."""
    chosen = [name for name in options if random.random() < 0.2]
    return {name: random.choice(options[name]) for name in chosen}


def extents_of(text: str) -> dict[str, int]:
    """Return the extents of dimensions by name, as types of a program say them."""
    found: dict[str, int] = {}
    for shape, dims in re.findall(
        r"tensor<([\dx]*)\w+, #compound.dims<([^>]*)>>", text
    ):
        names = [name.split()[0] for name in dims.split(",") if name.strip()]
        found |= zip(names, map(int, shape.split("x")[:-1]), strict=False)
    return found


def on_accelerator(random: Random, text: str, dims: Sequence[str]) -> Specs:
    """Return `comet-accelerator` with some of its options."""
    given = _some(ON_ACCELERATORS, random)
    if random.random() < 0.4:
        one, two = random.choice(dims or ["M"]), random.choice(dims or ["M"])
        shares = one, f"{one},{two}", f'"{one}:cx,cy;{two}:kx,ky"', "auto"
        given["dim"] = random.choice(shares if one != two else (one, f'"{one}:cx"'))
    if random.random() < 0.15:
        extents = extents_of(text)
        if (dim := random.choice(dims or ["M"])) in extents:
            given["pad"] = f'"{dim}={-(-extents[dim] // 4) * 4}"'
    if random.random() < 0.1 and given.get("bind", "sequential") == "sequential":
        given |= {"search": "exact", "time_limit": "3"}
    options = " ".join(f"{name}={value}" for name, value in given.items())
    return attach(random.choice(("edge", "edge", "cloud"))), (
        f"comet-accelerator{{{options}}}"
    )


# Options that name what a first compilation has found.


@dataclass(frozen=True)
class Found:
    """The launch plan of a program."""

    plan: str
    """The loops of its kernels."""
    kernels: tuple[str, ...]
    stored: tuple[tuple[str, ...], ...]
    """The values that each of them stores, by name."""
    products: tuple[str, ...]


def first_compiled(text: str, hardware: str, compile_: str) -> Found | None:
    """Return what a pipeline makes of @main; None if it refuses it."""
    try:
        to_plan = f"{hardware},{compile_[:-1]} to=dataflow}}"
        module = run_passes(parse_module(text), to_plan)
    except Exception:
        return None
    main = SymbolTable.lookup_symbol(module, "main")
    assert main is not None
    chosen = main.attributes.get(PLAN)
    kernels = [op for op in main.walk() if isinstance(op, KernelOp)]
    stored = [
        tuple(r.name_hint for r in op.results if r.name_hint is not None)
        for op in kernels
    ]
    products = [op.result.name_hint for op in main.walk() if isinstance(op, ContractOp)]
    return Found(
        chosen.data if isinstance(chosen, StringAttr) else "",
        tuple(kernel.sym_name.data for kernel in kernels),
        tuple(stored),
        tuple(dict.fromkeys(name for name in products if name is not None)),
    )


def naming(random: Random, found: Found, compile_: str, text: str) -> str:
    """Return options that name kernels, values or loops; none that are given."""
    given: dict[str, str] = {}
    kernels, one = list(found.kernels), random.choice(found.kernels or ("none",))
    if random.random() < 0.6 and found.plan:
        given["factors"] = with_other_numbers(found.plan, extents_of(text), random)
    elif random.random() < 0.4 and any(found.stored):
        names = [" ".join(stored) for stored in found.stored if stored]
        given["kernels"] = "".join(f"{n}{random.choice((' ', '; '))}" for n in names)
    if random.random() < 0.2 and found.products:
        given["narrow"] = " ".join(random.sample(found.products, 1))
    if random.random() < 0.2 and kernels and "ctas" not in compile_:
        groups = [f"{name}{random.choice((' ', '; '))}" for name in kernels]
        given["launches"] = "".join(groups)
    if random.random() < 0.2 and kernels:
        number = random.choice(("", "=1", "=2", "=7"))
        given["persist"] = f"{one}{number}"
    return "".join(
        f' {name}="{value.strip(" ;")}"'
        for name, value in given.items()
        if f" {name}=" not in compile_
    )


NUMBERS = {
    "warps": (1, 2, 4, 8),
    "stages": (1, 2, 3, 4),
    "group": (1, 2, 3, 8),
    "cluster": (1, 1, 2),
    "subtiles": (1, 2, 4),
    "parts": (1, 2),
}
"""Launch numbers of kernels."""


def with_other_numbers(plan: str, extents: Mapping[str, int], random: Random) -> str:
    """Return a plan with other loops, and with other launch numbers of its kernels."""

    def other(found: re.Match[str]) -> str:
        name, now = found[1], int(found[2])
        if random.random() < 0.4:
            return found[0]
        if name in NUMBERS:
            return f"{name}={random.choice(NUMBERS[name])}"
        whole = extents.get(name, now)
        tiles = [n for n in range(1, whole + 1) if whole % n == 0] or [now]
        # A few more tiles than before, so that programs stay small enough to run.
        tiles = [n for n in tiles if n <= 8 * now] or [now]
        return f"{name}={random.choice(tiles)}"

    return re.sub(r"(\w+)=(\d+)", other, plan)
