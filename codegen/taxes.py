"""The target `taxes`: the taxes of a launch plan, as a table or a trace."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.target import Target

from comet.codegen.chrome_trace import process_of, trace_of
from comet.cost.estimate import CostError
from comet.cost.from_ir.program import PricedPlan, priced
from comet.cost.gpu.launch_plan import Barrier, Clear, Launch, LibraryCollective, Step
from comet.cost.gpu.taxes import Taxes, taxes_by_step
from comet.dialects.arch import SystemOp
from comet.dialects.collective.spmd import rank_count
from comet.dialects.dataflow import ProgramOp
from comet.dialects.dataflow.program import programs_in
from comet.dialects.errors import OpError
from comet.dialects.parents import enclosing
from comet.dialects.schedule import CopyOp
from comet.text_table import aligned

COLUMNS = (
    "step",
    "busy",
    "launch",
    "synchronization",
    "locality",
    "total",
    "intermediates",
)

MODEL = "by the model of the three taxes (docs/multi-gpu-model.md), without energy"
"""The last line of every table."""


@dataclass(frozen=True)
class TaxesTarget(Target):
    """
    Print the time of each kernel and barrier of a launch plan, by tax.

    ```sh
    comet-opt in.mlir -p '...,triton-distributed{to=dataflow}' -t taxes
    ```
    """

    name = "taxes"

    trace: str | None = None
    """A file to write the timeline of all ranks into, for Perfetto or Chrome."""
    graph: bool = False
    """Whether kernels start by replaying a captured graph."""
    in_place: bool = False
    """Whether the caller keeps inputs that peers pull in symmetric memory."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """
        Write the table of every function.

        Raises `DiagnosticException` for a module without hardware or launch plans, or a
        plan that cannot be priced.
        """
        tables = [self._price(program, module) for program in programs_of(module)]
        output.write("\n".join(table.text for table in tables))
        if self.trace is not None:
            processes = [process_of(t.title, t.price.timeline) for t in tables]
            write_text(Path(self.trace), json.dumps(trace_of(processes)) + "\n")

    def _price(self, program: ProgramOp, module: ModuleOp) -> TaxTable:
        (system,) = (op for op in module.ops if isinstance(op, SystemOp))
        try:
            price = priced(
                program, system, graph=self.graph, symmetric_inputs=self.in_place
            )
        except CostError as error:
            raise OpError(program, f"target taxes: {error}") from error
        return TaxTable(title_of(program, system), price)


@dataclass(frozen=True)
class TaxTable:
    """The price of a launch plan, under a title."""

    title: str
    price: PricedPlan

    @property
    def text(self) -> str:
        """The table, a line for each step, with the unit of every number."""
        latency = _microseconds(self.price.timeline.latency)
        table = "\n".join(aligned([COLUMNS, *self._rows()]))
        return f"{self.title}: {latency}\n\n{table}\n\n{MODEL}\n"

    def _rows(self) -> list[tuple[str, ...]]:
        intermediates = {step.name: _intermediates(step) for step in self.price.plan}
        rows = [
            _row(name, taxes, _kilobytes(intermediates[name]))
            for name, taxes in taxes_by_step(self.price.timeline).items()
        ]
        total = self.price.taxes
        rows.append(_row("total", total, _kilobytes(sum(intermediates.values()))))
        fractions = (_part(number, total.total) for number in _numbers(total))
        return [*rows, ("fraction", *fractions, "")]


def programs_of(module: ModuleOp) -> list[ProgramOp]:
    """
    Return the launch plans of a module.

    Raises `DiagnosticException` without plans or hardware, or if tiles have copies.
    """
    found = programs_in(module)
    if any(isinstance(op, CopyOp) for program in found for op in program.walk()):
        raise DiagnosticException(
            "target taxes: the launch plan has copies of tiles already; stop before "
            "materialize-copies, with triton-distributed{to=dataflow}"
        )
    systems = [op for op in module.ops if isinstance(op, SystemOp)]
    if not found or len(systems) != 1:
        missing = "attached hardware" if found else "launch plan"
        raise DiagnosticException(
            f"target taxes: the module has no {missing}; run attach-hardware and "
            "triton-distributed{to=dataflow}, or the passes up to outline-kernels"
        )
    return found


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all; raises `DiagnosticException`."""
    staged = path.with_name(f".{path.name}.part")
    try:
        staged.write_text(text, encoding="utf-8")
        os.replace(staged, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DiagnosticException(
            f"target taxes: cannot write '{path}': {reason}"
        ) from error


def title_of(program: ProgramOp, system: SystemOp) -> str:
    """Return the function of a launch plan, the number of its ranks and the machine."""
    ranks = rank_count(program)
    count = f"{ranks} rank{'s' if ranks > 1 else ''}"
    return f"@{_function(program)} on {count} of @{system.system_name}"


def _function(program: ProgramOp) -> str:
    function = enclosing(program, FuncOp)
    return "" if function is None else function.sym_name.data


def _intermediates(step: Step) -> float:
    """Return the bytes that a step leaves in memory for, or reads from, another."""
    match step:
        case Launch():
            return sum(node.intermediates for node in step.nodes)
        case LibraryCollective():
            return step.intermediates
        case Barrier() | Clear():
            return 0.0


def _numbers(taxes: Taxes) -> tuple[float, ...]:
    """Return the numbers of a row, seconds, in the order of the columns."""
    parts = (taxes.busy, taxes.launch, taxes.synchronization, taxes.locality)
    return (*parts, taxes.total)


def _row(name: str, taxes: Taxes, intermediates: str) -> tuple[str, ...]:
    return (name, *(_microseconds(number) for number in _numbers(taxes)), intermediates)


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us"


def _kilobytes(size: float) -> str:
    return f"{size / 1e3:,.1f} kB"


def _part(number: float, whole: float) -> str:
    return f"{100 * number / whole:.1f} %" if whole else "0.0 %"
