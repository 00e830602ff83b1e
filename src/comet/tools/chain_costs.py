"""What comet-cost says of a chain of mappings: each of them, and their sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from comet.cost.accelerator.report import Report
from comet.cost.estimate import energy_scope
from comet.text_table import aligned

Chain: TypeAlias = Mapping[str, Report]
"""The figures of each mapping by its folder, in order, at least one."""


def chain_keys(chain: Chain) -> dict[str, object]:
    """Return the sums by name, and all figures of each mapping."""
    first, *_ = chain.values()
    cycles, energy = chain_sums(chain)
    return {
        "model": first.model,
        "network_energy": first.network_energy,
        "root_cycles": cycles,
        "total_energy_pj": energy,
        "mappings": [{"folder": name, **each.keys} for name, each in chain.items()],
    }


def chain_lines(chain: Chain) -> Iterator[str]:
    """Yield the report as text: the sums, and a line for each mapping."""
    first, *_ = chain.values()
    cycles, energy = chain_sums(chain)
    scope = energy_scope(first.model, network_energy=first.network_energy)
    yield f"model {first.model}: {cycles:,.0f} cycles in {len(chain)} mappings"
    yield f"energy: {energy:,.0f} pJ, {scope}"
    yield ""
    rows = [("folder", "cycles", "energy (pJ)")]
    for name, each in chain.items():
        rows.append((name, f"{each.root_cycles:,.0f}", f"{each.total_energy_pj:,.0f}"))
    yield from aligned(rows)


def chain_sums(chain: Chain) -> tuple[float, float]:
    """
    Return the cycles and the energy (pJ) of a chain.

    A mapping begins when the one before has ended, so cycles add up, too.
    """
    cycles = sum(each.root_cycles for each in chain.values())
    return cycles, sum(each.total_energy_pj for each in chain.values())
