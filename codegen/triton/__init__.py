"""The target `triton`: one readable Python module that runs and checks itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import IO

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.target import Target

from comet.codegen.numpy_reference import ReferencePrinter
from comet.codegen.python_text import WIDTH
from comet.codegen.triton.expressions import REMOTE
from comet.codegen.triton.host import LaunchPlanPrinter, program_lines
from comet.codegen.triton.kernels import KernelPrinter
from comet.codegen.triton.plan import RankPlanPrinter, rank_plan
from comet.dialects import tl
from comet.dialects.arch.triton_version import CLUSTERS_SINCE, version_text
from comet.dialects.errors import OpError
from comet.dialects.reference import is_reference, reference_name

IMPORTED = {
    *("PROGRAM", "Program", "Rank", "RankProgram", "Tensor", "comet_run"),
    *("allow_descriptors", "dot_operand", "expect_tensor", "expect_triton"),
    *("math", "np", "philox", "sys", "tl", "torch", "triton"),
    *("PlanFunction", *REMOTE.values()),
}
"""Names of the emitted module that are not its functions."""

CLUSTERS_FROM = version_text(CLUSTERS_SINCE)
"""The oldest version of Triton that compiles clusters."""


@dataclass(frozen=True)
class TritonTarget(Target):
    """
    Print a module of the `tl` level as Python source.

    It has the kernels, the launch plan, the reference in numpy that `decompose` wrote,
    and a `main` that compares both.
    """

    name = "triton"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """
        Write the Python module.

        Raises `DiagnosticException` if the IR is not at the `tl` level, or has no
        reference.
        """
        output.write(emitted(module))


@dataclass(frozen=True)
class _Lowered:
    """The functions of a module of the `tl` level."""

    kernels: tuple[tl.KernelOp, ...]
    plan: func.FuncOp
    reference: func.FuncOp


def emitted(module: ModuleOp) -> str:
    """Return the Python source of a module of the `tl` level."""
    lowered = _lowered(module)
    sections = [_header(lowered)]
    sections += [KernelPrinter(kernel).lines() for kernel in lowered.kernels]
    plan = rank_plan(lowered.plan)
    if plan is None:
        sections.append(LaunchPlanPrinter(module, lowered.plan).lines())
        described = program_lines(lowered.plan, lowered.reference)
    else:
        printer = RankPlanPrinter(module, lowered.plan, plan)
        sections.append(printer.lines())
        if plan.ranks.value.data == 1:
            sections.append(printer.function_lines())
        described = printer.program_lines(lowered.reference)
    sections.append(ReferencePrinter(lowered.reference).lines())
    sections.append(described)
    sections.append(
        [
            'if __name__ == "__main__":',
            "    raise SystemExit(comet_run([__file__, *sys.argv[1:]]))",
        ]
    )
    return "\n\n\n".join("\n".join(_tidied(lines)) for lines in sections) + "\n"


def _lowered(module: ModuleOp) -> _Lowered:
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    plans = [f for f in functions if not is_reference(f)]
    if not plans:
        raise DiagnosticException(
            "a function is printed, and this module has none; print a mapping with the "
            "target comet"
        )
    if len(plans) != 1:
        raise DiagnosticException(
            f"one function of a module is printed, and this one has {len(plans)}; keep "
            "one, and its reference"
        )
    name = plans[0].sym_name.data
    references = [f for f in functions if f.sym_name.data == reference_name(name)]
    if not references:
        raise DiagnosticException(
            f"@{name} has no private @{reference_name(name)} to check against; run "
            "decompose, which writes it, before insert-collectives and fuse, or write "
            "it in elementary ops, with the attribute comet.reference"
        )
    kernels = tuple(op for op in module.body.block.ops if isinstance(op, tl.KernelOp))
    for op in (*kernels, plans[0], references[0]):
        _check_name(op, op.sym_name.data)
    return _Lowered(kernels, plans[0], references[0])


def _check_name(op: Operation, name: str) -> None:
    if not name.isidentifier() or iskeyword(name) or name in IMPORTED:
        raise OpError(
            op,
            f"@{name} cannot be the name of a function in the Python module; rename it",
        )


def _header(lowered: _Lowered) -> list[str]:
    name, plan = lowered.plan.sym_name.data, rank_plan(lowered.plan)
    reference = ReferencePrinter(lowered.reference).lines()
    needs_math = any("math." in line for line in reference)
    needs_philox = any("philox(" in line for line in reference)
    return [
        '"""',
        f"Triton kernels of @{name}, emitted by comet.",
        "",
        *(_usage(name) if plan is None else _usage_of_ranks(plan, lowered)),
        *(_CLUSTERS if _has_clusters(lowered) else ()),
        '"""',
        "",
        *(["import math"] if needs_math else []),
        "import sys",
        "",
        "import numpy as np",
        "import torch",
        "import triton",
        "import triton.language as tl",
        "",
        *(["from comet.philox import philox"] if needs_philox else []),
        *_runtime_imports(lowered, plan),
        *(["", f'expect_triton("{CLUSTERS_FROM}")'] if _has_clusters(lowered) else []),
    ]


def _usage(name: str) -> list[str]:
    return [
        f"Import this file and call `{name}`, or run it to compare `{name}` with its",
        "reference in numpy: on the GPU if there is one, else in Triton's interpreter.",
    ]


_WAITING = (
    "Programs of one launch wait for values of each other: all of them run at the",
    "same time. Flags grow with the epoch, which counts launches: nothing is",
    "cleared between two.",
)
_MERGING = (
    "Programs store partial results and add to a counter of their tile; the last",
    "one to arrive merges them, and sets the counter to 0 for the next launch. No",
    "program waits for another.",
)


_CLUSTERS = (
    "",
    f"Programs are clusters of thread blocks (num_ctas), for Triton {CLUSTERS_FROM} or",
    "newer. Each block has a part of the columns; reductions of rows read the others'.",
)


def _has_clusters(lowered: _Lowered) -> bool:
    """Whether programs of a launch are clusters of thread blocks."""
    launches = (op for op in lowered.plan.walk() if isinstance(op, tl.LaunchOp))
    return any(launch.cluster is not None for launch in launches)


def _waits(lowered: _Lowered) -> bool:
    """Whether programs of a launch wait for others."""
    ops = (op for kernel in lowered.kernels for op in kernel.walk())
    return any(isinstance(op, tl.WaitProgramsOp) for op in ops)


def _usage_of_ranks(plan: tl.PlanOp, lowered: _Lowered) -> list[str]:
    ranks = plan.ranks.value.data
    if ranks == 1:
        return [
            *_usage(lowered.plan.sym_name.data),
            *(_WAITING if _waits(lowered) else _MERGING),
        ]
    return [
        f"Run it to compare {ranks} ranks with the reference in numpy; without a GPU",
        "they are interpreted. Every rank runs the plan below, on its shard of the",
        "input. A pointer into the symmetric heap names the same object on every rank:",
        "`rebase` gives a peer's. Flags grow with the epoch, which counts launches:",
        "nothing is cleared between two.",
    ]


def _runtime_imports(lowered: _Lowered, plan: tl.PlanOp | None) -> list[str]:
    """Return the lines that import what the kernels and the plan use."""
    ops = {type(op) for kernel in lowered.kernels for op in kernel.walk()}
    program = "Program" if plan is None else "RankProgram"
    lines = [
        f"from comet.runtime import {program}, Tensor, expect_tensor",
        "from comet.runtime import main as comet_run",
    ]
    language = {
        tl.DotOperandOp: "dot_operand",
        tl.MakeDescriptorOp: "allow_descriptors",
    }
    names = [name for op, name in language.items() if op in ops]
    names += ["expect_triton"] * _has_clusters(lowered)
    if names:
        lines += _import("comet.runtime.language", sorted(names))
    if plan is not None:
        if plan.ranks.value.data == 1:
            lines.append("from comet.runtime.one_rank import PlanFunction")
        lines.append("from comet.runtime.ranks import Rank")
    if verbs := sorted(REMOTE[op] for op in ops if op in REMOTE):
        lines += _import("comet.runtime.shim", verbs)
    return lines


def _import(module: str, names: Sequence[str]) -> list[str]:
    """Return the lines that import names, one by one if they are too many."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def _tidied(lines: list[str]) -> list[str]:
    """Drop blank lines at the beginning and end of a block, and double ones."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1] and not kept[-1].endswith(":")):
            kept.append(line)
    return "\n".join(kept).strip().split("\n")
