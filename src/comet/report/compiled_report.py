"""The page on a program that was compiled or read, without a search of mappings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from comet.api.source import Source
from comet.api.versions import versions
from comet.codegen.comet.chain import Chain, chain_of
from comet.cost.estimate import ModelName, energy_scope
from comet.dialects.arch import attached_system
from comet.passes.search.record import Choice
from comet.report.chain_report import (
    chain_figures,
    compare_chains,
    facts_of_chain,
    sections_of_chain,
)
from comet.report.mapping_figures import figures_of
from comet.report.mapping_report import (
    compare_mappings,
    compared_with,
    facts_of,
    sections_of,
)
from comet.report.numbers import CYCLES, MICROSECONDS, Unit
from comet.report.page import Page, Section
from comet.report.plan_figures import plan_figures_of
from comet.report.plan_report import (
    NOTE,
    compare_plans,
    facts_of_plan,
    sections_of_plan,
)
from comet.report.sections import choices_section, reproduce_section

MODEL: ModelName = "paper"
"""The model that prices mappings, which is also the default of passes."""


@dataclass(frozen=True)
class Compilation:
    """A program that passes have compiled, or that was read from files."""

    module: ModuleOp
    """A launch plan of kernels, or a mapping, or a chain of mappings."""
    program: str
    """The name of its file."""
    commands: Mapping[str, str]
    """The commands that compile it again, by their headings."""
    inputs: Sequence[Source]
    """The files that were read."""
    choices: Sequence[Choice] | None = None
    """The choices of the passes; None if no pass ran."""
    model: ModelName = MODEL
    """The model that prices a mapping."""


def page_of_compiled(compiled: Compilation, other: tuple[str, ModuleOp] | None) -> Page:
    """
    Return the page on a compiled program.

    `other` has the name and the module of a program to compare it with. Raises
    UsageError if one has several launch plans, CostError or DiagnosticException if one
    cannot be priced, or if only one is for GPUs.
    """
    if attached_system(compiled.module).gpu is not None:
        return _page_of_plan(compiled, other)
    if (chain := chain_of(compiled.module)) is not None:
        return _page_of_chain(compiled, chain, other)
    return _page_of_mapping(compiled, other)


def _page_of_plan(compiled: Compilation, other: tuple[str, ModuleOp] | None) -> Page:
    figures = plan_figures_of(compiled.module)
    sections = [*sections_of_plan(figures, Path(compiled.program).stem)]
    sections += _choices(compiled, MICROSECONDS, 1e6)
    if other is not None:
        name, module = other
        sections.append(compare_plans(figures, name, plan_figures_of(module)))
    sections.append(_reproduce(compiled))
    facts = facts_of_plan(figures)
    return Page(figures.title, facts, figures.bottleneck, NOTE, tuple(sections))


def _page_of_chain(
    compiled: Compilation, chain: Chain, other: tuple[str, ModuleOp] | None
) -> Page:
    figures = chain_figures(chain, compiled.model)
    system = attached_system(compiled.module)
    title = f"{Path(compiled.program).stem} on {system.system_name}"
    sections = [*sections_of_chain(figures)]
    sections += _choices(compiled, CYCLES, 1)
    if other is not None:
        sections.append(compare_chains(figures, *other, compiled.model))
    sections.append(_reproduce(compiled))
    said = f"Model {compiled.model}, {energy_scope(compiled.model)}."
    facts = facts_of_chain(figures)
    return Page(title, facts, figures.bottleneck, said, tuple(sections))


def _page_of_mapping(compiled: Compilation, other: tuple[str, ModuleOp] | None) -> Page:
    figures = figures_of(compiled.module, compiled.model)
    stem = Path(compiled.program).stem
    title = f"{stem} on {attached_system(compiled.module).system_name}"
    sections = [*sections_of(figures, stem, title)]
    sections += _choices(compiled, CYCLES, 1)
    if other is not None:
        compared = compared_with(other, compiled.module, figures)
        sections.append(compare_mappings(figures, compared))
    sections.append(_reproduce(compiled))
    said = (
        f"Model {compiled.model}, {energy_scope(compiled.model)}. Of all mappings, "
        "comet-explore finds the best, and a lower bound."
    )
    facts = facts_of(figures)
    return Page(title, facts, figures.bottleneck, said, tuple(sections))


def _choices(compiled: Compilation, unit: Unit, scale: float) -> Iterator[Section]:
    """Yield the section on choices if passes ran; costs times `scale` are in `unit`."""
    if compiled.choices is not None:
        yield choices_section(compiled.choices, unit, scale)


def _reproduce(compiled: Compilation) -> Section:
    return reproduce_section(compiled.commands, compiled.inputs, versions())
