"""The families of cases: what `make fuzz` draws at random."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random

import fuzz_elementary
import fuzz_graphs
from fuzz_case import COST_FILES, FOLDER, ROOT, Case
from fuzz_corpus import small_program, some_seed
from fuzz_ir import edited, generic_text
from fuzz_named import named_op
from fuzz_options import (
    ONLY_ON_GPUS,
    first_compiled,
    naming,
    on_accelerator,
    with_options,
)
from fuzz_pipelines import accelerator, attach, many_ranks, one_gpu, some_pass
from fuzz_text import NUMBERS, mutated
from gpu_ranks import SHARED_TEXTS
from semantics import parse_module, run_passes
from sync_mutations import mutants
from xdsl.utils.exceptions import PassFailedException

COMPILED = 0.1
"""The fraction of programs whose kernels are also compiled for their GPU."""
SAMPLES = ("edge", "cloud", "h200x1", "h200x8", "mi300x8")


def mlir(random: Random) -> Case:
    """A text of any level with mistakes in it, and passes."""
    seed, other = some_seed(random), some_seed(random)
    text = seed.text
    if random.random() < 0.7:
        try:
            text = edited(text, random)
        except Exception:
            text = mutated(text, random, other.text)
    else:
        text = mutated(text, random, other.text)
    passes = list(seed.passes)
    if random.random() < 0.2:
        passes.insert(random.randint(0, len(passes)), some_pass(random))
    target = seed.target if random.random() < 0.5 else "mlir"
    return Case("mlir", {"in.mlir": text}, ",".join(passes), target)


def bomb(random: Random) -> str:
    """Return YAML of exponential size, or deeply nested."""
    depth = random.choice((3, 30, 300, 5000))
    if random.random() < 0.5:
        return f"x: {'[' * depth}{']' * depth}\n"
    lines = [
        "- &a0 [1, 1]",
        *(f"- &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, depth)),
    ]
    return "bomb:\n" + "\n".join(lines) + "\n"


def yaml_text(text: str, random: Random) -> str:
    """Return YAML with mistakes in it."""
    if random.random() < 0.04:
        return random.choice((text + bomb(random), bomb(random) + text))
    if random.random() < 0.1:
        lines = text.splitlines(keepends=True)
        number = random.choice(
            (*NUMBERS, "[]", "{}", "~", "!!python/object:x {}", "&a [*a]")
        )
        at = random.randrange(len(lines))
        key, colon, _ = lines[at].partition(":")
        lines[at] = f"{key}{colon} {number}\n"
        return "".join(lines)
    return mutated(text, random, text)


def hardware(random: Random) -> Case:
    """A hardware file with mistakes in it, and a program for it."""
    machine = random.choice(SAMPLES)
    text = (ROOT / "samples" / "hardware" / f"{machine}.yaml").read_text()
    files = {"hw.yaml": yaml_text(text, random), "in.mlir": small_program().text}
    passes = f'attach-hardware{{path="{FOLDER}/hw.yaml"}}'
    then = "comet-accelerator" if machine in ("edge", "cloud") else "triton-distributed"
    if random.random() < 0.5:
        passes += f",{then}"
    return Case("hardware", files, passes)


@cache
def _file_sets() -> list[dict[str, str]]:
    data = ROOT / "tests" / "data" / "cost"
    archs: dict[str, str] = json.loads((data / "archs.json").read_text())
    items: list[dict[str, str]] = json.loads((data / "runs.json").read_text())["items"]
    return [{**item, "arch": archs[item["arch"]]} for item in items[::7]]


def cost(random: Random) -> Case:
    """A set of COMET files with mistakes in one: priced, or read as IR."""
    chosen = random.choice(_file_sets())
    texts = {kind: chosen[kind] for kind in COST_FILES}
    kind = random.choice(
        ("arch", "problem", "problem", "mapping", "mapping", "constants")
    )
    texts[kind] = yaml_text(texts[kind], random)
    if random.random() < 0.6:
        return Case("cost", {f"{kind}.yaml": text for kind, text in texts.items()})
    stream = "".join(f"//--- {kind}.yaml\n{text}\n" for kind, text in texts.items())
    if random.random() < 0.2:
        stream = mutated(stream, random)
    passes = random.choice(
        ("", "", "annotate-cost", "raise-comet", "raise-comet,tile,bind")
    )
    return Case("cost", {"in.yaml": stream}, passes)


def pipeline(random: Random) -> Case:
    """Any passes with any options on a small program, or a text that is no pipeline."""
    seed = some_seed(random) if random.random() < 0.3 else small_program()
    specs = [some_pass(random) for _ in range(random.choice((1, 1, 2, 3, 4)))]
    chain = random.choice((accelerator, one_gpu, many_ranks))(
        random, ("M", "N", "K"), True
    )
    if random.random() < 0.6:
        start = random.randint(0, len(chain))
        specs = [*chain[:start], *specs, *chain[start : start + random.randint(0, 3)]]
    text = ",".join(specs)
    if random.random() < 0.5:
        text = mutated(text, random, ",".join(chain))
    return Case("pipeline", {"in.mlir": seed.text}, text)


PLANS = (
    "p_dram: M=2 N=2; c_ob: K=2; s_ob: N=2",
    "p: M=2 N=2 warps=4 stages=2 group=1; c_k: K=2; l_n: N=4",
    "OB/contract: K=2; p_gb: M=8; c_ob: K=4",
)


def plan(random: Random) -> Case:
    """Factors for tiles with mistakes in them, as an option or as an attribute."""
    text = random.choice(PLANS)
    text = (
        mutated(text, random, random.choice(PLANS)).replace('"', "").replace("\n", "")
    )
    for_gpu = "warps" in text or random.random() < 0.3
    fuse = f"decompose,fuse{{strategy={random.choice(('none', 'partial', 'full'))}}}"
    parts = [attach("h200x1" if for_gpu else "edge"), fuse]
    target = (
        ",annotate-cost,outline-kernels,lower-to-triton"
        if for_gpu
        else ",bind,lower-to-comet"
    )
    passes = f'{",".join(parts)},tile{{factors="{text}"}}{target}'
    if "{" in text or "}" in text or random.random() < 0.2:
        module = str(run_passes(parse_module(small_program().text), ",".join(parts)))
        module = module.replace("func.func @main", "func.func @main", 1)
        head, arrow, rest = module.partition("{\n    %")
        if "attributes" not in head.rpartition("func.func @main")[2]:
            module = f'{head}attributes {{comet.plan = "{text}"}} {arrow}{rest}'
        return Case("plan", {"in.mlir": module}, f"tile{target}")
    return Case("plan", {"in.mlir": small_program().text}, passes)


def _program(family: str, random: Random, text: str, dims: tuple[str, ...]) -> Case:
    chains = {"comet": accelerator, "triton": random.choice((one_gpu, many_ranks))}
    target = random.choice(("comet", "triton", "triton"))
    specs = chains[target](random, dims, family == "named")
    compiles = target == "triton" and random.random() < COMPILED
    return Case(family, {"in.mlir": text}, ",".join(specs), target, compiles)


def elementary(random: Random) -> Case:
    """A program of elementary ops, to any target."""
    return _program("elementary", random, *fuzz_elementary.program(random))


def shared(random: Random) -> Case:
    """A program of elementary ops that says only what ranks have at its ends."""
    text, dims = fuzz_elementary.program(random, shared=True)
    chain = many_ranks(random, dims, False)
    specs = [spec for spec in chain if not spec.startswith(("distribute", "propagate"))]
    specs.insert(specs.index("insert-collectives"), "propagate-shardings")
    return Case("shared", {"in.mlir": text}, ",".join(specs), "triton")


def options(random: Random) -> Case:
    """A program that a pipeline compiles, with some of its options."""
    kind = random.choice(("elementary", "shared", "named", "mixed"))
    text, dims = _text(kind, random)
    on_gpus = kind == "shared" or ONLY_ON_GPUS.search(text) is not None
    if not on_gpus and random.random() < 0.4:
        specs = ",".join(on_accelerator(random, text, dims))
        return Case("options", {"in.mlir": text}, specs, "comet")
    hardware, compile_ = with_options(random, text, dims, kind == "shared")
    if random.random() < 0.6 and (found := first_compiled(text, hardware, compile_)):
        compile_ = f"{compile_[:-1]}{naming(random, found, compile_, text)}}}"
    passes, compiles = f"{hardware},{compile_}", random.random() < COMPILED
    return Case("options", {"in.mlir": text}, passes, "triton", compiles)


def _text(kind: str, random: Random) -> tuple[str, tuple[str, ...]]:
    """Return a program of a kind, and its dimensions."""
    if kind == "named":
        return fuzz_graphs.graph(random)
    if kind == "mixed":
        return fuzz_elementary.program(random, more=[named_op])
    return fuzz_elementary.program(random, shared=kind == "shared")


def several(random: Random) -> Case:
    """A module of two or three functions, to the last level that holds several."""
    texts: list[str] = []
    names: tuple[str, ...] = ()
    kind = random.choice(("elementary", "named", "mixed"))
    for number in range(random.choice((2, 2, 3))):
        text, dims = _text(kind, random)
        names = tuple(dim for dim in dims if not number or dim in names)
        texts.append(text.replace("@main", f"@main{number or ''}"))
    if random.random() < 0.5:
        hardware, compile_ = with_options(random, "".join(texts), names)
        specs = [hardware, f"{compile_[:-1]} to=dataflow}}"]
    else:
        chain = random.choice((accelerator, one_gpu, many_ranks))
        specs = chain(random, names, True)[:-1]
    return Case("several", {"in.mlir": "".join(texts)}, ",".join(specs))


def named(random: Random) -> Case:
    """A program of named ops, or of both kinds, to any target."""
    kind = random.choice(("named", "named", "mixed"))
    return _program("named", random, *_text(kind, random))


def sync(random: Random) -> Case:
    """A lowered program of several ranks with a mistake in its synchronisation."""
    text = random.choice(list(SHARED_TEXTS.values())).format(
        M=random.choice((4, 6, 8)), N=random.choice((4, 8)), K=random.choice((4, 6, 12))
    )
    while True:
        chain = many_ranks(random, ("M",), True)
        chain = chain[: chain.index("verify-sync")]
        specs = [spec for spec in chain if not spec.startswith("distribute")]
        try:
            module = run_passes(parse_module(text), ",".join(specs))
            break
        except PassFailedException:
            continue
    changed = list(mutants(module))
    name, mutant = random.choice(changed)
    text = f"// {name}\n{generic_text(mutant)}"
    return Case(
        "sync", {"in.mlir": text}, "verify-sync,annotate-cost,lower-to-triton", "triton"
    )


FAMILIES: dict[str, Callable[[Random], Case]] = {
    "mlir": mlir,
    "hardware": hardware,
    "cost": cost,
    "pipeline": pipeline,
    "plan": plan,
    "elementary": elementary,
    "shared": shared,
    "named": named,
    "options": options,
    "several": several,
    "sync": sync,
}
SHARES = {
    "mlir": 8,
    "elementary": 3,
    "shared": 2,
    "options": 4,
    "several": 1,
    "named": 2,
    "sync": 1,
    "cost": 2,
    "hardware": 2,
    "pipeline": 2,
}
"""How often each is drawn; once where nothing is said."""


def case_of(family: str, seed: str) -> Case:
    """Return the case of a family that a seed stands for."""
    return FAMILIES[family](Random(f"{family} {seed}"))
