"""Pipelines for random programs and their parts, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
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
