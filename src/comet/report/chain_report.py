"""The page on a chain of mappings for an accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from comet.codegen.comet.chain import Chain, chain_of, tensor_names
from comet.cost.estimate import ModelName
from comet.report.mapping_figures import MappingFigures, figures_of
from comet.report.mapping_report import time_parts, tree_parts
from comet.report.numbers import CYCLES, PICOJOULES, percent
from comet.report.page import Folded, Part, Section, note, table
from comet.report.plots import Plot, waterfall
from comet.report.sections import Pair, compare_section


@dataclass(frozen=True)
class ChainFigures:
    """The figures of the mappings of a chain, which run one after the other."""

    mappings: tuple[MappingFigures, ...]
    touched: tuple[tuple[str, str], ...]
    """The names of the tensors that each mapping reads, and of those that it writes."""

    @property
    def latency(self) -> float:
        """Cycles."""
        return sum(mapping.latency for mapping in self.mappings)

    @property
    def energy(self) -> float:
        """The energy of all mappings, in pJ."""
        return sum(mapping.energy for mapping in self.mappings)

    @property
    def cycles(self) -> dict[str, float]:
        """The latency of each mapping, by its number."""
        return {
            f"mapping {number}": mapping.latency
            for number, mapping in enumerate(self.mappings, 1)
        }

    @property
    def bottleneck(self) -> str:
        """A sentence on the mapping that takes the longest."""
        name, longest = max(self.cycles.items(), key=lambda item: item[1])
        return (
            f"{len(self.mappings)} mappings run one after the other, and the tensors "
            f"between them go through the root memory. The longest is {name}, with "
            f"{percent(longest, self.latency)} of the latency."
        )


def chain_figures(chain: Chain, model: ModelName) -> ChainFigures:
    """Return the figures of a chain; raises CostError for what cannot be priced."""
    names = tensor_names(chain.func)
    return ChainFigures(
        tuple(figures_of(module, model) for module in chain.folders.values()),
        tuple(
            (" ".join(names[v] for v in op.ins), " ".join(names[v] for v in op.outs))
            for op in chain.mappings
        ),
    )


def facts_of_chain(figures: ChainFigures) -> dict[str, str]:
    """Return the headline of a chain."""
    return {
        "latency, cycles": f"{figures.latency:,.0f}",
        "energy, pJ": f"{figures.energy:,.0f}",
        "mappings": str(len(figures.mappings)),
    }


def sections_of_chain(figures: ChainFigures) -> Iterator[Section]:
    """Yield the sections on a chain: all mappings, then each one."""
    yield Section("chain", "mappings", "The mappings", tuple(_overview(figures)))
    for number, mapping in enumerate(figures.mappings, 1):
        parts: tuple[Part, ...] = (
            *(part for part in time_parts(mapping) if not isinstance(part, Plot)),
            Folded("The tile tree", tuple(tree_parts(mapping))),
        )
        name = f"mapping {number}"
        yield Section(f"mapping-{number}", name, f"{name.capitalize()}", parts)


def _overview(figures: ChainFigures) -> Iterator[Part]:
    bars = {name: {"": cycles} for name, cycles in figures.cycles.items()}
    draw = partial(waterfall, bars=bars, whole="latency", unit=CYCLES)
    yield Plot("chain", 8, 1 + 0.3 * len(bars), draw)
    rows = [
        (
            name,
            f"{mapping.latency:,.0f}",
            percent(mapping.latency, figures.latency),
            f"{mapping.energy:,.0f}",
            *touched,
        )
        for name, mapping, touched in zip(
            figures.cycles, figures.mappings, figures.touched, strict=True
        )
    ]
    sums = (f"{figures.latency:,.0f}", "", f"{figures.energy:,.0f}", "", "")
    head = ("mapping", "cycles", "part", "energy, pJ", "reads", "writes")
    yield table(head, [*rows, ("sum", *sums)], words=(4, 5), sums=(len(rows),))
    yield note(
        "A mapping begins when the one before has ended, as it reads from the root "
        "memory; so latencies add up. Nothing stays on chip between two mappings."
    )


def compare_chains(
    figures: ChainFigures, name: str, module: ModuleOp, model: ModelName
) -> Section:
    """Return the section that compares a chain with another chain or mapping."""
    other = chain_of(module)
    its = (
        ChainFigures((figures_of(module, model),), (("", ""),))
        if other is None
        else chain_figures(other, model)
    )
    numbers = [
        Pair("latency", CYCLES, figures.latency, its.latency),
        Pair("energy", PICOJOULES, figures.energy, its.energy),
    ]
    return compare_section(name, (figures.cycles, its.cycles), numbers, CYCLES)
