"""The page on a mapping for an accelerator."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from comet.api.answer import Answer
from comet.api.question import NOTHING, Question
from comet.codegen.chrome_trace import Process
from comet.cost.estimate import ModelName, energy_scope, figure_text
from comet.cost.from_ir.mapping import problem_of, system_hardware
from comet.report.front import MOST_SECONDS, Point
from comet.report.mapping_figures import MappingFigures, TreeNode, figures_of
from comet.report.numbers import CYCLES, PICOJOULES, Unit, conserved, percent
from comet.report.page import (
    Folded,
    Node,
    Page,
    Part,
    Section,
    Table,
    Text,
    Tree,
    note,
    table,
)
from comet.report.plots import Plot, pareto, stacked, waterfall
from comet.report.sections import (
    Pair,
    compare_section,
    more_section,
    occupancy_section,
    pairs,
    reproduce_section,
    roofline_section,
    timeline_section,
)

UNITS = {"latency": "cycles", "energy": "pJ", "edp": "pJ x cycles"}
"""The unit of each objective."""

MOST_BARS = 8
"""The most levels, units and networks in the plot of energies."""


@dataclass(frozen=True)
class Compared:
    """A mapping to compare with."""

    name: str
    """The name of its file."""
    figures: MappingFigures
    differs: str
    """In what it differs beside the mapping, as the end of a sentence; else empty."""


def page_of(
    question: Question,
    answer: Answer,
    front: tuple[Point, ...],
    other: tuple[str, ModuleOp] | None,
) -> Page:
    """
    Return the page on an answer.

    `front` has the best mappings by objective; it is empty if these were not searched.
    `other` has the name and the module of a mapping to compare with. Raises CostError
    if that module has no mapping that the model can price.
    """
    figures = figures_of(answer.module, explained_by(question.model))
    program, machine = Path(question.program.name), Path(question.hardware.name)
    title = f"{program.stem} on {machine.stem}"
    sections = [*sections_of(figures, program.stem, title), _front(question, front)]
    if other is not None:
        sections.append(
            compare_mappings(figures, compared_with(other, answer.module, figures))
        )
    sections.append(search_section(answer))
    making = ("comet-opt", question.program.name, "-p", answer.pipeline)
    commands = {
        "The search": command_of(question),
        "The mapping, without a search": shlex.join(making),
    }
    files = (question.program, question.hardware, question.constraints, question.start)
    inputs = [source for source in files if source not in (None, NOTHING)]
    sections.append(reproduce_section(commands, inputs, answer.versions))
    return Page(
        title,
        {**_by_tool(answer), **facts_of(figures), **_bound(answer)},
        figures.bottleneck,
        _searched(figures, answer),
        tuple(sections),
    )


def explained_by(model: ModelName) -> ModelName:
    """Return the model of a report: `paper` for `tool`, whose parts overlap."""
    return "paper" if model == "tool" else model


def compared_with(
    other: tuple[str, ModuleOp], module: ModuleOp, figures: MappingFigures
) -> Compared:
    """Return the figures of another mapping, by the same model."""
    name, its = other
    mine, theirs = problem_of(module), problem_of(its)
    differs = ""
    if (mine.inputs, mine.outputs) != (theirs.inputs, theirs.outputs):
        made, read = ", ".join(theirs.outputs), ", ".join(theirs.inputs)
        differs += f"; the other mapping is of another program, {made} from {read}"
    elif mine.dims != theirs.dims:
        sizes = ", ".join(f"{dim}={extent}" for dim, extent in theirs.dims.items())
        differs += f"; the other mapping is of other extents, {sizes}"
    if system_hardware(its) != system_hardware(module):
        differs += "; the other mapping is for another machine"
    return Compared(name, figures_of(its, figures.model), differs)


def command_of(question: Question) -> str:
    """Return the `comet-explore` command of a question."""
    words = ["comet-explore", question.program.name]
    words += ["--hardware", question.hardware.name]
    if question.constraints != NOTHING:
        words += ["--constraints", question.constraints.name]
    if question.start is not None:
        words += ["--start", question.start.name]
    words += ["--model", question.model, "--objective", question.objective]
    words += ["--time-limit", f"{question.time_limit:g}"]
    words += ["--tolerance", f"{question.tolerance:g}"]
    if question.allow_artifacts:
        words.append("--allow-artifacts")
    if (sampling := question.sampling) is not None:
        words += ["--sampler", sampling.sampler, "--seed", str(sampling.seed)]
        words += ["--samples", str(sampling.samples)]
    return shlex.join(words)


def facts_of(figures: MappingFigures) -> dict[str, str]:
    """Return the headline: latency, energy, and their product."""
    return {
        "latency, cycles": f"{figures.latency:,.0f}",
        "energy, pJ": f"{figures.energy:,.0f}",
        "energy-delay product, pJ x cycles": f"{figures.edp:.4g}",
    }


def _by_tool(answer: Answer) -> dict[str, str]:
    """Return the figures by `tool` if it was the model; all others are by `paper`."""
    if answer.model != "tool":
        return {}
    facts = {
        "latency by the model tool, cycles": f"{answer.latency_cycles:,.0f}",
        "energy by the model tool, pJ": f"{answer.energy_pj:,.0f}",
    }
    if answer.roofline is not None:
        facts["the root memory alone, cycles"] = f"{answer.roofline:,.0f}"
    return facts


def _bound(answer: Answer) -> dict[str, str]:
    unit, bound, gap = UNITS[answer.objective], answer.lower_bound, answer.gap_percent
    return {
        f"lower bound of the {answer.objective}, {unit}": (
            "none" if bound is None else figure_text(bound)
        ),
        "gap": "unknown" if gap is None else f"{gap:.2f} %",
        "the best of all mappings?": "proven" if answer.proven else "not proven",
    }


def _searched(figures: MappingFigures, answer: Answer) -> str:
    asked = "" if figures.model == answer.model else f" by the model {answer.model}"
    return (
        f"Model {figures.model}, {energy_scope(figures.model)}; {answer.objective} was "
        f"minimized{asked}. The search priced {answer.evaluated:,} of "
        f"{answer.space_size:.3g} mappings in {answer.seconds:.1f} s; "
        f"{answer.structures_closed} of {answer.structures} structures are closed, "
        f"{answer.structures_rejected} have "
        f"no mapping. Chosen: {answer.mapping}"
    )


def search_section(answer: Answer) -> Section:
    """Return the section on closed, rejected and open structures, and pruned parts."""
    reasons = {
        "structures closed": answer.closed_by,
        "parts of structures closed": answer.pruned_by,
        "structures without a mapping": answer.rejected_by,
        "structures left open": {
            "the search ended": answer.structures - answer.structures_closed
        },
    }
    rows = [
        (what, f"{count:,}", reason)
        for what, counts in reasons.items()
        for reason, count in counts.items()
        if count
    ]
    unreached = answer.bound_of_unreached
    text = ""
    if unreached is not None:
        text = f" Others have a bound of {figure_text(unreached)}."
    return Section(
        "search",
        "the search",
        "What the search left out",
        (
            table(("what", "how many", "by"), rows, words=(2,)),
            note(
                "A structure is everything but factors and orders of loops; groups of "
                "structures that one bound closes count once. A part is all mappings "
                f"of a structure with the same first loops.{text}"
            ),
        ),
    )


def sections_of(figures: MappingFigures, stem: str, title: str) -> Iterator[Section]:
    """Yield the sections on a mapping; names of files start with `stem`."""
    yield Section("tree", "tile tree", "The tile tree", tuple(tree_parts(figures)))
    yield Section("latency", "time", "Where the time goes", tuple(time_parts(figures)))
    yield timeline_section(
        Process(title, figures.slices),
        CYCLES,
        stem,
        "one cycle",
        "The first iteration of each loop in full; later ones of the outermost loop, "
        "each as long as the average. What is too narrow to see is only in the trace.",
    )
    yield Section("energy", "bytes and energy", "Bytes and energy", _energy(figures))
    yield occupancy_section(
        figures.rooms,
        "One instance of each level, at the node that needs most: the tiles that are "
        "there at the same time, each once.",
    )
    yield roofline_section(figures.roofline, _roofs(figures))
    yield more_section(
        {gain.resource: gain.latency for gain in figures.gains},
        figures.latency,
        CYCLES,
        "The same mapping, priced on a machine with 10 % more of one resource; another "
        "mapping may gain more. Capacities are not here, as tiles stay as they are.",
    )


def tree_parts(figures: MappingFigures) -> Iterator[Part]:
    """Yield the tile tree of a mapping."""
    yield note(
        "A tile moves tensors from one level to the next, over time (temporal) or over "
        "instances (spatial), with the factors of its loops, outermost first. Framed "
        "nodes are collectives. Cycles are those of a run alone, times the runs; as "
        "transfers of one overlap with the one before, it may be more than those above."
    )
    yield Tree(_node(figures.tree))


def _node(tree: TreeNode) -> Node:
    kind, where, factors, what, _ = tree.row.cells
    runs = "run" if tree.executions == 1 else "runs"
    spent = f"{tree.cycles:,.0f} cycles in {tree.executions:,g} {runs}"
    return Node(
        tree.index,
        tree.kind,
        (kind, where, factors, what),
        spent if tree.cycles else "",
        tuple(map(_node, tree.children)),
    )


def time_parts(figures: MappingFigures) -> Iterator[Part]:
    """Yield a plot and a table of the terms of the latency."""
    terms, latency = figures.parts.terms, figures.latency
    bars = {term.name: {"": term.cycles} for term in terms}
    draw = partial(waterfall, bars=bars, whole="latency", unit=CYCLES)
    yield Plot("waterfall", 8, 1 + 0.3 * len(terms), draw)
    rows = [
        (
            term.name,
            f"{term.cycles:,.0f}",
            percent(term.cycles, latency),
            term.meaning,
        )
        for term in terms
    ]
    total = sum(term.cycles for term in terms)
    said = conserved(total, latency, "the latency")
    rows.append(("sum", f"{total:,.0f}", percent(total, latency), said))
    head = ("term", "cycles", "part", "what happens")
    yield table(head, rows, words=(3,), sums=(len(terms),))


def _energy(figures: MappingFigures) -> tuple[Part, ...]:
    spent = figures.energy_by_level
    order = sorted(spent, key=lambda name: -spent[name])
    shown = [name for name in order if spent[name] > 0][:MOST_BARS]
    bars = {name: figures.parts.energy[name] for name in shown}
    return (
        Plot("energy", 8, 3, partial(stacked, bars=bars, label="energy, pJ")),
        _traffic(figures),
        note(
            "All instances of a level together. Bytes of a level, times the energy of "
            "a byte, have to be what the model says the level spends; levels, networks "
            "(with arrows) and units have to add up to the energy."
        ),
    )


def _traffic(figures: MappingFigures) -> Table:
    """Return bytes and energy by level and tensor, then other energies."""
    rows: list[tuple[str, ...]] = []
    sums: list[int] = []
    spent, total_energy = figures.energy_by_level, figures.energy
    for level, moved in figures.traffic_by_level.items():
        for tensor in moved:
            numbers = (
                f"{number:,.0f}"
                for number in (tensor.read, tensor.written, tensor.energy)
            )
            rows.append(
                (level, tensor.tensor, *numbers, percent(tensor.energy, total_energy))
            )
        read, written, energy = (
            sum(getattr(tensor, name) for tensor in moved)
            for name in ("read", "written", "energy")
        )
        sums.append(len(rows))
        numbers = (f"{number:,.0f}" for number in (read, written, energy))
        said = conserved(energy, spent[level], "the model")
        rows.append((level, "all", *numbers, said))
    for name, causes in figures.parts.energy.items():
        if name not in figures.traffic_by_level:
            rows += (
                (name, cause, "", "", f"{energy:,.0f}", percent(energy, total_energy))
                for cause, energy in causes.items()
            )
    total = sum(spent.values())
    sums.append(len(rows))
    said = conserved(total, total_energy, "the energy")
    rows.append(("sum", "", "", "", f"{total:,.0f}", said))
    head = ("level", "tensor", "bytes read", "bytes written", "energy, pJ", "part")
    return table(head, rows, words=(1,), sums=sums)


def _roofs(figures: MappingFigures) -> str:
    line = figures.roofline
    most = f" of {line.peak:,.0f}" if line.peak < inf else ""
    return (
        f"Of {line.unit}, which reaches {line.roofs[0].marks[0].reached:,.0f}{most} "
        "operations per cycle. An operation of a product is a "
        "multiply-accumulate. Each memory level has a roof, its bandwidth to the "
        "levels below, and a place, by the bytes it reads and writes."
    )


def _front(question: Question, front: Sequence[Point]) -> Section:
    seconds = min(question.time_limit, MOST_SECONDS)
    parts: tuple[Part, ...] = (
        Text(
            "The search was interrupted, so nothing was searched for the other "
            "objectives."
        ),
    )
    if front:
        rows = [
            (
                point.label,
                f"{point.latency:,.0f}",
                f"{point.energy:,.0f}",
                "this mapping" if point.chosen else "",
            )
            for point in front
        ]
        head = ("best found for", "latency, cycles", "energy, pJ", "")
        parts = (
            Plot("front", 7, 3.6, partial(pareto, front=front)),
            table(head, rows, words=(3,)),
            note(
                "One search for each objective that is named, those for the others of "
                f"at most {seconds:g} s; without mappings that another beats. The "
                "whole front may have more points between these."
            ),
        )
    return Section("front", "latency against energy", "Latency against energy", parts)


def compare_mappings(figures: MappingFigures, other: Compared) -> Section:
    """Return the section that compares this mapping with another one."""
    its = other.figures
    mine, theirs = (
        {term.name: term.cycles for term in side.parts.terms} for side in (figures, its)
    )
    numbers = [
        Pair("latency", CYCLES, figures.latency, its.latency),
        Pair("energy", PICOJOULES, figures.energy, its.energy),
        Pair("energy-delay product", Unit("pJ x cycles"), figures.edp, its.edp),
        *pairs(CYCLES, mine, theirs),
        *pairs(PICOJOULES, figures.energy_by_level, its.energy_by_level),
    ]
    return compare_section(
        other.name,
        (mine, theirs),
        numbers,
        CYCLES,
        note(f"Both under the model {figures.model}{other.differs}."),
        Folded("The tile tree of the other mapping", (Tree(_node(its.tree)),)),
    )
