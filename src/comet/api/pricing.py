"""The price of a compiled program by the cost models."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias, get_args

from xdsl.dialects.builtin import ModuleOp

from comet.api.choices import expect_one_of
from comet.api.html import table
from comet.codegen.comet.chain import chain_of
from comet.cost.accelerator.problem import Problem
from comet.cost.accelerator.report import Report, report
from comet.cost.estimate import CostError, HardwareError, ModelName
from comet.cost.from_ir.mapping import node_op, problem_of, system_hardware
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.cost import Figures, estimate_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.annotate_cost import plan_estimates
from comet.tools.diagnostics import UsageError, location_of_op

Unit: TypeAlias = Literal["cycles", "ns"]


@dataclass(frozen=True)
class Price:
    """The price of one run of a program by a model."""

    model: ModelName
    """The cost model; on GPUs always `paper`."""
    latency: float
    """The time of one run, in `unit`."""
    unit: Unit
    """The unit of times: cycles on accelerators, nanoseconds on GPUs."""
    energy_pj: float | None
    """pJ; None on GPUs, whose hardware files have no energies."""
    time: Mapping[str, float]
    """
    Where the latency goes, in `unit`: on accelerators to work and stalls by unit and
    level, on GPUs to work and the three taxes. It adds up to the latency, except with
    the model `tool`, which reports rows that overlap.
    """
    energy_by_level: Mapping[str, float]
    """pJ by memory level, unit, and network; empty on GPUs."""
    utilization: Mapping[str, float]
    """The fraction of the latency that a unit works, from 0 to 1; empty on GPUs."""

    def to_json(self) -> dict[str, object]:
        """Return the figures by name."""
        return asdict(self)

    def __str__(self) -> str:
        """Return latency, energy and model in one line."""
        energy = "" if self.energy_pj is None else f", {self.energy_pj:,.0f} pJ"
        return f"model {self.model}: {self.latency:,.0f} {self.unit}{energy}"

    @property
    def parts(self) -> dict[str, str]:
        """The parts of latency and energy as texts, with units in the names."""
        times = {f"{name} ({self.unit})": f"{t:,.0f}" for name, t in self.time.items()}
        levels = self.energy_by_level.items()
        return times | {f"{name} (pJ)": f"{energy:,.0f}" for name, energy in levels}

    def _repr_html_(self) -> str:
        return table(str(self), self.parts)


def priced(
    module: ModuleOp, hardware: str, model: ModelName, *, network_energy: bool
) -> Price:
    """
    Price a mapping, a chain of them, or a program of kernels; changes nothing.

    `hardware` is the file name in errors about the machine. Raises UsageError,
    CostError or PassFailedException for a module that cannot be priced.
    """
    system = attached_system(module)
    models = get_args(ModelName) if system.gpu is None else ("paper",)
    expect_one_of("model", model, models)
    if (chain := chain_of(module)) is not None:
        parts = [
            priced(mapping, hardware, model, network_energy=network_energy)
            for mapping in chain.folders.values()
        ]
        return in_turn(parts)
    if system.gpu is None:
        _, figures = mapping_report(
            module, hardware, model, network_energy=network_energy
        )
        return _price_of_mapping(figures)
    return _price_of_kernels(_kernel_figures(module, system))


def in_turn(prices: Sequence[Price]) -> Price:
    """Return the price of the mappings of a chain, which run one after the other."""
    latency = sum(price.latency for price in prices)
    used = ({u: part * p.latency for u, part in p.utilization.items()} for p in prices)
    return Price(
        model=prices[0].model,
        latency=latency,
        unit=prices[0].unit,
        energy_pj=sum(price.energy_pj or 0.0 for price in prices),
        time=_summed(price.time for price in prices),
        energy_by_level=_summed(price.energy_by_level for price in prices),
        utilization={unit: busy / latency for unit, busy in _summed(used).items()},
    )


def _summed(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sums of numbers by name."""
    sums: dict[str, float] = {}
    for part in parts:
        for name, number in part.items():
            sums[name] = sums.get(name, 0.0) + number
    return sums


def mapping_report(
    module: ModuleOp, hardware: str, model: ModelName, *, network_energy: bool
) -> tuple[Problem, Report]:
    """
    Return the problem of a module of the level `comet`, and all figures of its mapping.

    Raises UsageError with the location, or CostError.
    """
    with _located(module, hardware):
        problem, machine = problem_of(module), system_hardware(module)
        return problem, report(problem, machine, model, network_energy=network_energy)


@contextmanager
def _located(module: ModuleOp, hardware: str) -> Generator[None]:
    """Locate pricing errors: the file, and the line of the node at fault."""
    try:
        yield
    except HardwareError as error:
        raise UsageError(f"{hardware}: {error}") from error
    except CostError as error:
        if error.node is None:
            raise
        location = location_of_op(node_op(module, error.node))
        raise UsageError(f"{location}: {error}") from error


def _price_of_mapping(figures: Report) -> Price:
    return Price(
        model=figures.model,
        latency=figures.root_cycles,
        unit="cycles",
        energy_pj=figures.total_energy_pj,
        time={row: sum_of(cells) for row, cells in figures.table.items()},
        energy_by_level=figures.energy_by_level,
        utilization=figures.utilization,
    )


def sum_of(cells: Mapping[str, float]) -> float:
    """Return the total of a row of the table of cycles."""
    return sum(cycles for column, cycles in cells.items() if column != "Total")


def _kernel_figures(module: ModuleOp, system: SystemOp) -> Figures:
    """Return the estimate on the only function, or compute it if there is none."""
    functions = list(compute_functions(module))
    if len(functions) != 1:
        raise UsageError(
            f"the module has {len(functions)} functions; price one at a time"
        )
    if (noted := estimate_of(functions[0])) is not None:
        return noted
    return plan_estimates(module, system, "paper")[0][1]


def _price_of_kernels(figures: Figures) -> Price:
    taxes = {
        "launch tax": figures.launch_tax,
        "synchronization tax": figures.synchronization_tax,
        "locality tax": figures.locality_tax,
    }
    numbers = {name: float(tax) for name, tax in taxes.items() if tax is not None}
    work = figures.latency - sum(numbers.values())
    return Price(
        model="paper",
        latency=figures.latency,
        unit="ns",
        energy_pj=None,
        time={"work": work, **numbers},
        energy_by_level={},
        utilization={},
    )
