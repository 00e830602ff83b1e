"""
What a change of structure may not change: `make oracle`.

    python tests/support/oracle.py            # compare with tests/data/oracle.json
    python tests/support/oracle.py --freeze   # write that file
    python tests/support/oracle.py --only triton/h200/ag_gemm

Each cell is one run of a pipeline, or one recorded mapping under one cost model. The
file holds a digest of the emitted text, one of the same text without comments, and the
estimated cost, so that a difference is named: other text, other comments, another
price. A program that the compiler refuses is recorded as refused.
"""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from io import StringIO
from itertools import product
from typing import Literal, TypeAlias

import rank_matrix
from paths import ROOT
from semantics import comet_context, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.comet import CometTarget
from comet.codegen.comet.reader import read_files
from comet.codegen.triton import TritonTarget
from comet.cost.accelerator.model import price
from comet.cost.estimate import CostError, ModelName
from comet.cost.from_ir.mapping import problem_of, system_hardware
from comet.dialects.cost import estimate_of

FROZEN = ROOT / "tests" / "data" / "oracle.json"
RECORDS = ROOT / "tests" / "data" / "cost"

Digest: TypeAlias = str
Cells: TypeAlias = Mapping[str, "Frozen"]
Difference: TypeAlias = Literal["same", "comments", "text", "price", "outcome", "new"]

GPUS = {"h200": ("h200x1", "h200x8"), "mi300": ("mi300x8", "mi300x8")}
"""Hardware files for one rank and for several."""
RANKS = (2, 4, 8)
PATTERNS = {**rank_matrix.PATTERNS, "auto": "pattern=auto"}
ACCELERATORS = ("edge", "cloud")
STRATEGIES = ("none", "isolate_contractions", "partial", "full", "auto")
MODELS: tuple[ModelName, ...] = ("tool", "paper", "ideal")


@dataclass(frozen=True)
class Frozen:
    """What one cell gave: digests of text and code, and the price; or a refusal."""

    text: Digest = ""
    code: Digest = ""
    """Of the text without comments."""
    price: float = 0.0
    """Cycles of an accelerator, nanoseconds of GPUs."""

    @property
    def refused(self) -> bool:
        """Whether the compiler had no program."""
        return not self.text


REFUSED = Frozen()


def keys() -> list[str]:
    """Return the names of all cells."""
    return [*_triton_keys(), *_comet_keys(), *_prices()]


def _samples() -> list[str]:
    return sorted(path.stem for path in (ROOT / "samples").glob("*.mlir"))


def _triton_keys() -> Iterator[str]:
    for gpu, sample in product(GPUS, _samples()):
        yield f"triton/{gpu}/{sample}/1"
        for ranks, pattern in product(RANKS, PATTERNS):
            yield f"triton/{gpu}/{sample}/{ranks}/{pattern}"


def _comet_keys() -> Iterator[str]:
    for machine, sample, strategy in product(ACCELERATORS, _samples(), STRATEGIES):
        yield f"comet/{machine}/{sample}/{strategy}"


def _prices() -> dict[str, Callable[[], Frozen]]:
    """Return what prices each recorded mapping under each model, by its cell."""
    return {
        f"price/{index}/{model}": partial(_price, record, model)
        for index, record in enumerate(_records())
        for model in MODELS
    }


@cache
def _records() -> list[dict[str, str]]:
    return json.loads((RECORDS / "runs.json").read_text())["items"]


def compute(key: str) -> Frozen:
    """Run one cell. Raises KeyError where `key` names none."""
    kind, *where = key.split("/")
    try:
        match kind:
            case "triton":
                return _triton(*where)
            case "comet":
                return _comet(*where)
            case _:
                return _prices()[key]()
    except (PassFailedException, CostError):
        return REFUSED


def _triton(gpu: str, sample: str, ranks: str, pattern: str = "") -> Frozen:
    hardware = GPUS[gpu][ranks != "1"]
    options = f"ranks={ranks} {PATTERNS.get(pattern, '')}".strip()
    if ranks != "1" and "collective.shard" not in _text(sample):
        options += " dim=N"
    module = _compiled(sample, hardware, f"triton-distributed{{{options}}}")
    output = StringIO()
    TritonTarget().emit(comet_context(), module, output)
    text = output.getvalue()
    return Frozen(_digest(text), _digest(_without_comments(text)), _price_of(module))


def _comet(machine: str, sample: str, strategy: str) -> Frozen:
    pipeline = f"comet-accelerator{{strategy={strategy}}}"
    module = _compiled(sample, machine, pipeline)
    output = StringIO()
    CometTarget().emit(comet_context(), module, output)
    lines = output.getvalue().splitlines()
    code = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    return Frozen(_digest("\n".join(lines)), _digest(code), _price_of(module))


def _price(record: Mapping[str, str], model: ModelName) -> Frozen:
    archs: dict[str, str] = json.loads((RECORDS / "archs.json").read_text())
    names = ("problem", "mapping", "constants")
    files = {f"{name}.yaml": record[name] for name in names}
    module = read_files({"arch.yaml": archs[record["arch"]], **files})
    estimate = price(problem_of(module), system_hardware(module), model)
    digest = _digest(repr((estimate.latency, estimate.energy)))
    return Frozen(digest, digest, estimate.latency)


def _text(sample: str) -> str:
    return (ROOT / "samples" / f"{sample}.mlir").read_text()


def _compiled(sample: str, hardware: str, pipeline: str) -> ModuleOp:
    path = ROOT / "samples" / "hardware" / f"{hardware}.yaml"
    module = parse_module(_text(sample))
    return run_passes(module, f'attach-hardware{{path="{path}"}},{pipeline}')


def _price_of(module: ModuleOp) -> float:
    """Return the latency of the outermost op that has an estimate."""
    found = (estimate_of(op) for op in module.walk())
    return next((float(each.latency) for each in found if each is not None), 0.0)


def _without_comments(text: str) -> str:
    return ast.unparse(ast.parse(text))


def _digest(text: str) -> Digest:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def difference(before: Frozen | None, now: Frozen) -> Difference:
    """Return the first of the ways in which a cell differs from what was frozen."""
    if before is None:
        return "new"
    if before.refused != now.refused:
        return "outcome"
    if before.price != now.price:
        return "price"
    if before.code != now.code:
        return "text"
    return "same" if before.text == now.text else "comments"


def explained(key: str, before: Frozen | None, now: Frozen) -> str:
    """Return a line on a cell that differs."""
    kind = difference(before, now)
    if before is None:
        return f"{key}: new"
    if kind == "outcome":
        was, is_ = (
            ("refused", "compiled") if before.refused else ("compiled", "refused")
        )
        return f"{key}: was {was}, is {is_}"
    if kind == "price":
        return f"{key}: price {before.price:.6g} -> {now.price:.6g}"
    return f"{key}: other {kind}"


def frozen() -> dict[str, Frozen]:
    """Read what was frozen."""
    rows: dict[str, list[str | float]] = json.loads(FROZEN.read_text())
    return {
        key: Frozen(str(text), str(code), float(price))
        for key, (text, code, price) in rows.items()
    }


def freeze(cells: Cells) -> None:
    """Write the file of digests, a line for each cell."""
    rows = (
        f"{json.dumps(key)}: {json.dumps([cell.text, cell.code, cell.price])}"
        for key, cell in sorted(cells.items())
    )
    FROZEN.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def sample_keys(seed: int, counts: Mapping[str, int]) -> list[str]:
    """Return so many frozen cells of each kind, the same for the same seed."""
    draw = random.Random(seed)
    known = sorted(frozen())
    return [
        key
        for kind, count in counts.items()
        for key in draw.sample([k for k in known if k.startswith(f"{kind}/")], count)
    ]


def run(names: Sequence[str], jobs: int) -> Iterator[tuple[str, Frozen]]:
    """Yield the cells of these names, computed in so many processes."""
    with ProcessPoolExecutor(jobs, initializer=_quiet_collector) as pool:
        yield from zip(names, pool.map(compute, names, chunksize=4), strict=True)


def _quiet_collector() -> None:
    """Collect garbage rarely, as the tools do."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def main(argv: Sequence[str] | None = None) -> int:
    """Freeze or compare, as the arguments say; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--freeze", action="store_true", help="write the digests")
    parser.add_argument("--only", default="", help="cells whose names start so")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parser.parse_args(argv)
    before = frozen() if FROZEN.exists() else {}
    names = [key for key in keys() if key.startswith(args.only)]
    now: dict[str, Frozen] = {}
    differing = 0
    for key, cell in run(names, args.jobs):
        now[key] = cell
        if difference(before.get(key), cell) != "same":
            differing += 1
            print(explained(key, before.get(key), cell), flush=True)
    print(f"{len(names)} cells, {differing} differ")
    if args.freeze:
        freeze({**before, **now})
        return 0
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
