"""comet-cost: prices COMET files; it takes the flags of the COMET tool."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from comet.api.source import Source, read_all
from comet.cost.accelerator.problem import (
    Collective,
    Leaf,
    Node,
    Problem,
    Tile,
)
from comet.cost.accelerator.report import Report
from comet.cost.estimate import CostError, energy_scope
from comet.kinds import BindingKind
from comet.text_table import aligned
from comet.tools.diagnostics import UsageError, one_sentence_errors
from comet.tools.flags import FlagParser
from comet.tools.reporting import Outputs, add_report_flags

TOOL = "comet-cost"
FLAGS = ("arch_file", "problem_file", "mapping_file", "constants_file")
BAR = 30
"""Characters of the longest energy bar."""

Chain: TypeAlias = Mapping[str, Report]
"""The figures of each mapping by its folder, in order, at least one."""


def main(args: Sequence[str] | None = None) -> None:
    """Price the files that the flags name, and print a report."""
    with one_sentence_errors(TOOL):
        parser = _parser()
        options = parser.parse_args(args)
        if options.plan is not None:
            _check_plan_flags(options)
            _print_chain(options)
            return
        missing = [f"--{flag}" for flag in FLAGS if getattr(options, flag) is None]
        if missing:
            names = ", ".join(missing)
            parser.error(f"the following arguments are required: {names}")
        _print_mapping(options)


def _print_mapping(options: Namespace) -> None:
    """Price one mapping, and print what the flags ask for."""
    if options.to_ir:
        _check_flags_of_files(options)
    outputs = Outputs.of(options)
    files = _read(options)
    module = _module(files)
    if options.to_ir:
        _print_files(files)
        return
    problem, figures = _price(module, options.arch_file, options)
    if options.json:
        print(json.dumps(figures.keys))
    else:
        print("\n".join(lines(problem, figures)))
    if outputs is not None:
        _report(module, files, options, outputs)


def _check_flags_of_files(options: Namespace) -> None:
    """Raise UsageError for flags about a price, where only files are printed."""
    for flag in ("json", "report", "plots", "compare"):
        if getattr(options, flag):
            raise UsageError(
                f"--to-ir prices nothing, so --{flag} has no effect; leave one out"
            )


def _check_plan_flags(options: Namespace) -> None:
    """Raise UsageError for flags that are of one mapping."""
    for name in ("to_ir", "report", "plots", "compare", *FLAGS):
        if getattr(options, name):
            flag = name if name in FLAGS else name.replace("_", "-")
            raise UsageError(
                f"--{flag} is of one mapping, and --plan of several; name the files "
                "of one folder instead of the plan"
            )


def _print_chain(options: Namespace) -> None:
    """Price each mapping of a plan, and print them with their sums."""
    from comet.codegen.comet.chain import mapping_folders

    found: dict[str, Report] = {}
    plan = Source.read(options.plan)
    for folder in mapping_folders(plan.text, options.plan):
        files = [f"{flag.removesuffix('_file')}.yaml" for flag in FLAGS]
        paths = {name: Path(options.plan).parent / folder / name for name in files}
        module = _module(read_all(paths))
        _, found[folder] = _price(module, str(paths["arch.yaml"]), options)
    if options.json:
        print(json.dumps(_chain_keys(found)))
    else:
        print("\n".join(_chain_lines(found)))


def _chain_keys(chain: Chain) -> dict[str, object]:
    """Return the sums by name, and all figures of each mapping."""
    first, *_ = chain.values()
    cycles, energy = _chain_sums(chain)
    return {
        "model": first.model,
        "network_energy": first.network_energy,
        "root_cycles": cycles,
        "total_energy_pj": energy,
        "mappings": [{"folder": name, **report.keys} for name, report in chain.items()],
    }


def _chain_lines(chain: Chain) -> Iterator[str]:
    """Yield the report as text: the sums, and a line for each mapping."""
    first, *_ = chain.values()
    cycles, energy = _chain_sums(chain)
    scope = energy_scope(first.model, network_energy=first.network_energy)
    yield f"model {first.model}: {cycles:,.0f} cycles in {len(chain)} mappings"
    yield f"energy: {energy:,.0f} pJ, {scope}"
    yield ""
    rows = [("folder", "cycles", "energy (pJ)")]
    for name, report in chain.items():
        rows.append(
            (name, f"{report.root_cycles:,.0f}", f"{report.total_energy_pj:,.0f}")
        )
    yield from aligned(rows)


def _chain_sums(chain: Chain) -> tuple[float, float]:
    """
    Return the cycles and the energy (pJ) of a chain.

    A mapping begins when the one before has ended, so cycles add up, too.
    """
    cycles = sum(report.root_cycles for report in chain.values())
    return cycles, sum(report.total_energy_pj for report in chain.values())


def _parser() -> ArgumentParser:
    parser = FlagParser(prog=TOOL, description=__doc__, allow_abbrev=False)
    for flag in FLAGS:
        what = flag.removesuffix("_file")
        parser.add_argument(f"--{flag}", help=f"the {what} YAML file")
    parser.add_argument(
        "--plan", help="instead of these, the plan.yaml of a chain of mappings"
    )
    parser.add_argument(
        "--calc_noc_energy", action="store_true", help="count the networks' energy"
    )
    parser.add_argument(
        "--logging_verbosity", type=int, default=2, help="accepted, and ignored"
    )
    parser.add_argument(
        "--model",
        choices=("tool", "paper", "ideal"),
        default="tool",
        help="tool: the COMET tool bit for bit (default); paper: without its defects; "
        "ideal: perfect overlap",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--to-ir",
        action="store_true",
        help="print the files as one stream, which comet-opt -f comet reads",
    )
    add_report_flags(parser, "a mapping that comet-opt -o wrote")
    return parser


def _read(options: Namespace) -> dict[str, Source]:
    """Return the files, by the names of the file set in one stream."""
    return read_all(
        {f"{flag.removesuffix('_file')}.yaml": getattr(options, flag) for flag in FLAGS}
    )


def _module(files: Mapping[str, Source]) -> ModuleOp:
    from comet.api.program import parsed_files

    return parsed_files(files)


def _print_files(files: Mapping[str, Source]) -> None:
    from comet.codegen.comet import join_files
    from comet.codegen.comet.reader import FILES

    ended = {name: files[name].text.rstrip("\n") + "\n" for name in FILES}
    sys.stdout.write(join_files(ended))


def _price(
    module: ModuleOp, hardware: str, options: Namespace
) -> tuple[Problem, Report]:
    from comet.api.pricing import mapping_report

    noc = bool(options.calc_noc_energy)
    return mapping_report(module, hardware, options.model, network_energy=noc)


def _report(
    module: ModuleOp,
    files: Mapping[str, Source],
    options: Namespace,
    outputs: Outputs,
) -> None:
    """
    Write the report.

    Under the model `tool`, whose rows do not add up, it is that of `paper`. Raises
    UsageError if `paper` cannot price what the tool can.
    """
    from comet.report.compiled_report import Compilation, page_of_compiled
    from comet.report.mapping_report import explained_by
    from comet.tools.compile_reporting import compared

    model = explained_by(options.model)
    words = [f"--{flag}={getattr(options, flag)}" for flag in FLAGS]
    command = shlex.join((TOOL, *words, f"--model={model}", "--calc_noc_energy"))
    compilation = Compilation(
        module,
        options.mapping_file,
        {"The figures": command},
        [*files.values()],
        model=model,
    )
    try:
        page = page_of_compiled(compilation, compared(outputs))
    except CostError as error:
        raise UsageError(f"the report is that of model {model}: {error}") from error
    outputs.write(page)


def lines(problem: Problem, figures: Report) -> Iterator[str]:
    """The report as text: tree, stalls, utilization and energy, with units."""
    yield f"model {figures.model}: {figures.root_cycles:,.0f} cycles"
    if figures.total_cycles != figures.root_cycles:
        yield f'the COMET tool\'s "Total Cycles": {figures.total_cycles:,.0f} cycles'
    if figures.root_cycles < figures.roofline:
        yield (
            "impossible: the transfers of the root memory take "
            f"{figures.roofline:,.0f} cycles, and the tool loses stalls of reads"
        )
    scope = energy_scope(figures.model, network_energy=figures.network_energy)
    yield f"energy: {figures.total_energy_pj:,.0f} pJ, {scope}"
    if figures.nodes:
        yield from ("", "node (cycles of one execution)")
        yield from _tree(problem.root, figures.nodes, 0)
    if figures.table:
        yield from ("", *_table(figures))
    yield from ("", "operation (ideal cycles, all instances busy)")
    yield from _columns({k: f"{v:,.1f}" for k, v in figures.ideal_cycles.items()})
    yield from ("", "unit (utilization)")
    yield from _columns({k: f"{v:.2%}" for k, v in figures.utilization.items()})
    yield from ("", "energy by level (pJ)")
    yield from _bars(figures.energy_by_level)


def _tree(node: Node, cycles: Mapping[str, float], depth: int) -> Iterator[str]:
    indent = "  " * depth
    match node:
        case Leaf():
            yield f"{indent}{node.kind} {node.operation}"
        case Collective():
            what = f"{node.kind.value} of {node.input} at {node.level}"
            yield f"{indent}{what}: {cycles[node.name]:,.0f}"
        case Tile():
            kind = "spatial" if node.spatial else "temporal"
            sources = " ".join(dict.fromkeys(e.source for e in node.entries))
            targets = " ".join(dict.fromkeys(e.destination for e in node.entries))
            where = f"{kind} {sources} > {targets}"
            yield f"{indent}{where}: {cycles[node.name]:,.0f}"
            for index, child in enumerate(node.children):
                if index and (text := _binding(node, index - 1)):
                    yield f"{indent}  ({text})"
                yield from _tree(child, cycles, depth + 1)


def _binding(tile: Tile, index: int) -> str | None:
    """The binding before a child, if there is a choice."""
    binding = tile.bindings[index]
    if binding is None or binding.kind is BindingKind.SEQUENTIAL:
        return None
    return str(binding.kind)


def _table(figures: Report) -> Iterator[str]:
    columns = ("CS", "OS", "TMW", "Total")
    wide = max(len(unit) for unit in figures.table)
    yield f"{'cycles'.ljust(wide)}" + "".join(f"{c:>16}" for c in columns)
    for unit, cells in figures.table.items():
        texts = (f"{cells[c]:,.0f}" if c in cells else "-" for c in columns)
        yield unit.ljust(wide) + "".join(f"{text:>16}" for text in texts)
    yield "CS compulsory stalls, OS optional stalls, TMW work of units"


def _columns(values: Mapping[str, str]) -> Iterator[str]:
    wide = max((len(name) for name in values), default=0)
    for name, text in values.items():
        yield f"{name.ljust(wide)}  {text:>14}"


def _bars(energy: Mapping[str, float]) -> Iterator[str]:
    largest = max(energy.values(), default=0.0) or 1.0
    wide = max((len(name) for name in energy), default=0)
    for name, value in sorted(energy.items(), key=lambda item: -item[1]):
        bar = "#" * round(BAR * value / largest)
        yield f"{name.ljust(wide)}  {value:>18,.0f}  {bar}".rstrip()


if __name__ == "__main__":
    main()
