"""
Measures the rates of a GPU and writes a hardware file with them.

    python benchmarks/calibrate.py [--base samples/hardware/h200x1.yaml] [--out H.yaml]
    python benchmarks/calibrate.py --from R.json
    python benchmarks/calibrate.py --dry-run

The file is the base but for the rates of `comet: gpu` that were measured; above each of
them a comment says on what. Without `--out` it is written beside the base, with
-measured in its name. With `--from` nothing is measured: the rates are those in the
results of benchmarks/gpu.py. With `--dry-run` all steps are taken at tiny sizes in
Triton's interpreter, and the file, whose rates mean nothing, goes to the terminal.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import yaml
from yaml.nodes import MappingNode, Node

if TYPE_CHECKING:
    from gpu_device.calibrate import Calibration

BASE = Path(__file__).parents[1] / "samples" / "hardware" / "h200x1.yaml"

TOP = """\
# This is {base} with measured rates below the comments that say so.
# What comes after such a rate is about the one that it replaces.
# Measured too, though no field has it: {exponentials} Gop/s of exponentials in f32.

"""

GRAPH_LAUNCH = "graph_launch_us: 0  # starting one kernel of a captured graph"
"""A field that files may lack; it is added above `launch_us`."""

REQUIRED = (
    "tensor_tflops",
    "vector_tflops",
    "hbm_gb_per_s",
    "l2_gb_per_s",
    "launch_us",
)
"""Measured fields that every hardware file of a GPU has."""

Entries: TypeAlias = dict[str, tuple[Node, Node]]
"""The key and the value of each entry of a mapping, by the text of the key."""


@dataclass(frozen=True)
class Edit:
    """Other text in place of some characters of a file."""

    start: int
    end: int
    text: str


def measured_file(text: str, base: str, calibration: Calibration) -> str:
    """
    Return a hardware file, called `base`, with measured rates and all else as it was.

    Rates of element types that the file does not have are left out. Raises `ValueError`
    where the file is not a GPU's.
    """
    gpu = gpu_section(text, base)
    if "graph_launch_us" not in gpu:
        key, _ = gpu["launch_us"]
        text = edited(text, [_line_above(key, GRAPH_LAUNCH)])
        gpu = gpu_section(text, base)
    exponentials = _digits(calibration.exp_gops)
    top = TOP.format(base=base, exponentials=exponentials)
    return top + edited(text, list(_edits(gpu, calibration)))


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return the text after edits of different places of it."""
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def gpu_section(text: str, base: str) -> Entries:
    """Return the entries of `comet: gpu`; `ValueError` where there is no such thing."""
    try:
        section: Node | None = yaml.SafeLoader(text).get_single_node()
    except yaml.YAMLError as error:
        raise ValueError(
            f"{base} is no YAML: {' '.join(str(error).split())}"
        ) from error
    for name in ("comet", "gpu"):
        _, section = entries(section).get(name, (None, None))
    gpu = entries(section)
    missing = [field for field in REQUIRED if field not in gpu]
    if missing:
        raise ValueError(
            f"{base} lacks {', '.join(missing)} in comet: gpu; name the hardware file "
            "of a GPU by --base"
        )
    return gpu


def entries(node: Node | None) -> Entries:
    """Return the entries of a mapping; none where it is something else."""
    if not isinstance(node, MappingNode):
        return {}
    pairs: list[tuple[Node, Node]] = node.value
    return {str(key.value): (key, value) for key, value in pairs}


def _edits(gpu: Entries, calibration: Calibration) -> Iterator[Edit]:
    """
    Yield a comment above each measured field, and its rates in place of the old.

    Figures that others measured are left out.
    """
    if "measured" in gpu:
        _, others = gpu["measured"]
        yield Edit(others.start_mark.index, others.end_mark.index, "{}")
    remark = _remark(calibration)
    for field, rates in _rates(calibration).items():
        if field not in gpu:
            continue
        key, value = gpu[field]
        yield _line_above(key, remark)
        if not isinstance(rates, Mapping):
            yield _instead(value, rates)
            continue
        for element, (_, own) in entries(value).items():
            if element in rates:
                yield _instead(own, rates[element])


def _rates(calibration: Calibration) -> dict[str, float | Mapping[str, float]]:
    """Return what was measured by the fields it belongs to, and by element type."""
    between = {
        "exchange_us": calibration.exchange_us,
        "flag_latency_us": calibration.flag_latency_us,
    }
    return {
        "tensor_tflops": calibration.tensor_tflops,
        "vector_tflops": {"f32": calibration.vector_tflops},
        "hbm_gb_per_s": calibration.hbm_gb_per_s,
        "l2_gb_per_s": calibration.l2_gb_per_s,
        "launch_us": calibration.launch_us,
        "graph_launch_us": calibration.graph_launch_us,
        **{name: us for name, us in between.items() if us is not None},
    }


def _remark(calibration: Calibration) -> str:
    name = calibration.name + (" (a dry run)" if calibration.dry_run else "")
    versions = f"torch {calibration.torch}, Triton {calibration.triton}"
    return f"# measured on {name}, {calibration.date}, {versions}"


def _line_above(key: Node, line: str) -> Edit:
    mark = key.start_mark
    return Edit(mark.index, mark.index, f"{line}\n{' ' * mark.column}")


def _instead(value: Node, rate: float) -> Edit:
    return Edit(value.start_mark.index, value.end_mark.index, _digits(rate))


def _digits(rate: float) -> str:
    """Return four digits of a rate, without an exponent."""
    return f"{float(f'{rate:.4g}'):.9f}".rstrip("0").rstrip(".")


def calibration_in(path: Path) -> Calibration:
    """
    Return the rates in a file of results, or in one that holds nothing else.

    Raises `OSError`, and `ValueError` where the file has none.
    """
    from gpu_device.calibrate import Calibration

    text = path.read_text()
    try:
        report: object = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from error
    if not isinstance(report, dict):
        raise ValueError(f"{path} holds no results; name those of benchmarks/gpu.py")
    fields = cast("dict[str, Any]", report)
    results: dict[str, dict[str, Any]] = fields.get("results", {"": fields})
    for result in results.values():
        if "calibration" in result:
            found = Calibration.from_json(result["calibration"])
            if found.dry_run:
                raise ValueError(f"{path} is of a dry run, whose rates mean nothing")
            return _with_exchanges(found, results.values())
    raise ValueError(f"{path} has no calibration; name results of benchmarks/gpu.py")


def _with_exchanges(
    calibration: Calibration, results: Iterable[dict[str, Any]]
) -> Calibration:
    """
    Return the rates with what exchanges between programs took, if it was measured.

    To pass a flag takes an atomic of one program, then a read of the other.
    """
    for found in (each["exchanges"] for each in results if "exchanges" in each):
        flag = found["system_flag_us"] / 2
        return replace(
            calibration, exchange_us=found["exchange_us"], flag_latency_us=flag
        )
    return calibration


def calibrated(dry_run: bool) -> Calibration:
    """Measure, or go through the steps; `ValueError` where there is no GPU."""
    if dry_run:
        os.environ["TRITON_INTERPRET"] = "1"
    from gpu_device.calibrate import measure

    return measure(dry_run)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file that the arguments ask for; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", type=Path, default=BASE, help="a hardware file")
    parser.add_argument("--out", type=Path, help="the file to write")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--from", dest="results", type=Path, help="measure nothing")
    source.add_argument("--dry-run", action="store_true", help="interpret tiny sizes")
    options = parser.parse_args(argv)
    base: Path = options.base
    out: Path | None = options.out
    results: Path | None = options.results
    dry_run: bool = options.dry_run
    try:
        text = base.read_text()
        gpu_section(text, base.name)
        found = calibration_in(results) if results else calibrated(dry_run)
        written = measured_file(text, base.name, found)
        if dry_run and out is None:
            print(written, end="")
            return 0
        out = out or base.with_stem(f"{base.stem}-measured")
        out.write_text(written)
    except OSError as error:
        return _failed(f"{error.filename}: {error.strerror}")
    except ValueError as error:
        return _failed(str(error))
    print(f"wrote {out}")
    return 0


def _failed(reason: str) -> int:
    print(f"calibrate: error: {reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
