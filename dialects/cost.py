"""
The cost dialect: a model's estimate for an op, as one compact attribute.

Estimates are annotations: any op may have one as `comet.cost`; they change no meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import auto
from math import isfinite
from typing import TypeAlias

from xdsl.ir import Attribute, Data, Dialect, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from comet.dialects.number_text import number_text

COST_NAME = "comet.cost"
"""The attribute name of an estimate on an op."""


class Model(StrEnum):
    """The cost models."""

    TOOL = auto()
    PAPER = auto()
    IDEAL = auto()


class TimeUnit(StrEnum):
    """The unit of times: cycles on accelerators, nanoseconds on GPUs."""

    CYCLES = auto()
    NS = auto()


Number: TypeAlias = int | float


@dataclass(frozen=True)
class Figures:
    """
    The figures of an estimate; None if the model does not give it.

    All but the energy are times in `unit`, of one whole run of the op.
    """

    model: Model
    unit: TimeUnit
    latency: Number
    """From start to end."""
    energy: Number | None = None
    """pJ, with the networks' energy if the model has it."""
    compulsory_stalls: Number | None = None
    """Filling and draining, which nothing can hide."""
    optional_stalls: Number | None = None
    """Transfers that outlast the work they overlap."""
    memory_window: Number | None = None
    """Work that transfers can hide behind."""
    launch_tax: Number | None = None
    """Programs: starting kernels."""
    synchronization_tax: Number | None = None
    """Programs: waiting at barriers for the slowest."""
    locality_tax: Number | None = None
    """Programs: intermediates between kernels that a fused one would not write."""
    roofline: Number | None = None
    """Mappings: what the root memory alone takes, only if the latency is below that."""

    @property
    def numbers(self) -> dict[str, Number]:
        """The figures that are not None, by name."""
        named = {f.name: getattr(self, f.name) for f in fields(self)[2:]}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def is_artifact(self) -> bool:
        """Whether no machine could be as fast as the model says."""
        return self.roofline is not None

    @property
    def busy(self) -> Number | None:
        """Programs: the latency without the taxes."""
        taxes = (self.launch_tax, self.synchronization_tax, self.locality_tax)
        known = [tax for tax in taxes if tax is not None]
        return self.latency - sum(known) if len(known) == len(taxes) else None

    @property
    def limit(self) -> str:
        """
        What takes the most time; empty if the model does not say.

        Of a mapping that cannot be as fast as the model says: what limits it really.
        """
        if self.roofline is not None:
            return f"the root memory, which takes {self.roofline:,.0f} cycles"
        parts = {
            "compute": self.memory_window,
            "memory traffic": self.optional_stalls,
            "fill, drain and collectives": self.compulsory_stalls,
            "kernels": self.busy,
            "launch": self.launch_tax,
            "synchronization": self.synchronization_tax,
            "intermediates": self.locality_tax,
        }
        known = {name: part for name, part in parts.items() if part is not None}
        return max(known, key=lambda name: known[name], default="")


def sum_of_figures(parts: Iterable[Figures]) -> Figures:
    """
    Return the figures of programs that run one after the other, at least one.

    Each figure is the sum; one that a program does not have is not known.
    """
    programs = tuple(parts)
    first, *others = programs
    sums = {
        name: sum(program.numbers[name] for program in programs)
        for name in first.numbers
        if name != "roofline" and all(name in program.numbers for program in others)
    }
    if any(program.is_artifact for program in programs):
        sums["roofline"] = sum(
            program.roofline or program.latency for program in programs
        )
    return _figures(first.model, first.unit, sums)


FIGURE_NAMES = tuple(field.name for field in fields(Figures)[2:])
"""The names of an estimate's numbers."""


@irdl_attr_definition
class EstimateAttr(Data[Figures]):
    """
    An estimate: the model, the unit of all times, and the figures; energy is in pJ.

    ```mlir
    #cost.estimate<paper, cycles, latency = 898, energy = 15230.5, memory_window = 880>
    ```
    """

    name = "cost.estimate"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Figures:
        with parser.in_angle_brackets():
            model = parser.parse_str_enum(Model)
            parser.parse_punctuation(",")
            unit = parser.parse_str_enum(TimeUnit)
            numbers: dict[str, Number] = {}
            while parser.parse_optional_punctuation(",") is not None:
                _parse_figure(parser, numbers)
            if "latency" not in numbers:
                parser.raise_error("an estimate gives at least its latency")
        return _figures(model, unit, numbers)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.data.model}, {self.data.unit}")
            for name, value in self.data.numbers.items():
                printer.print_string(f", {name} = {_text(value)}")

    def verify(self) -> None:
        for name, value in self.data.numbers.items():
            if not isfinite(value) or value < 0:
                raise VerifyException(f"an estimate cannot have {name} = {value}")


def _text(value: Number) -> str:
    return number_text(int(value) if float(value).is_integer() else value)


def _parse_figure(parser: AttrParser, numbers: dict[str, Number]) -> None:
    name = parser.parse_identifier(" of a figure")
    if name not in FIGURE_NAMES:
        parser.raise_error(
            f"an estimate has no figure '{name}'; it has {', '.join(FIGURE_NAMES)}"
        )
    if name in numbers:
        parser.raise_error(f"the figure '{name}' is given twice")
    parser.parse_punctuation("=")
    numbers[name] = parser.parse_number()
    if numbers[name] < 0:
        parser.raise_error(f"an estimate cannot have {name} = {numbers[name]}")


def _figures(model: Model, unit: TimeUnit, numbers: Mapping[str, Number]) -> Figures:
    rest = {name: value for name, value in numbers.items() if name != "latency"}
    return Figures(model, unit, numbers["latency"], **rest)


def estimate_of(op: Operation) -> Figures | None:
    """Return the estimate of an op; None if there is none."""
    found: Attribute | None = op.attributes.get(COST_NAME)
    return found.data if isinstance(found, EstimateAttr) else None


def annotate(op: Operation, figures: Figures) -> None:
    """Write an estimate on an op; it replaces an old one."""
    op.attributes[COST_NAME] = EstimateAttr(figures)


Cost = Dialect("cost", [], [EstimateAttr])
