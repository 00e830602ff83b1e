"""A compiled program: its IR, its files, its price, and its kernels."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO
from os import PathLike, fspath
from types import ModuleType

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec

from comet.api.html import table
from comet.api.loading import loaded
from comet.api.pricing import Price, priced
from comet.api.program import printed
from comet.dialects.arch import attached_system
from comet.dialects.cost import estimate_of
from comet.dialects.dataflow import KernelOp
from comet.passes.analysis.hardware_kind import require_gpu
from comet.tools.diagnostics import CometError, UsageError, errors_as_sentences
from comet.tools.option_check import checked, unknown_name
from comet.universe import installed


@dataclass(frozen=True)
class Compiled:
    """A program after the passes of `comet.compile`."""

    module: ModuleOp = field(repr=False)
    """The program after all passes."""
    pipeline: str
    """
    The passes that ran, with the options that they chose: a text for `comet-opt -p`,
    which makes the same module from the same program without a search.
    """
    hardware: str
    """The file of the machine; empty if the program has its machine."""
    context: Context = field(repr=False)
    """The dialects that are known."""

    def emit(
        self, target: str = "mlir", **options: str | int | bool | PathLike[str]
    ) -> str:
        """
        Return the program as text for a target: `comet`, `triton`, `taxes` or `mlir`.

        Targets and options are those of `comet-opt -t`: `emit("comet", dir="out")`
        writes four files, and returns no text. Raises CometError if there is no such
        target or option, or if the module is not at the level that the target prints.
        """
        with errors_as_sentences():
            if target == "mlir" and not options:
                return printed(self.module)
            targets = installed().all_targets
            if target not in targets:
                raise UsageError(unknown_name("target", target, targets))
            spec = ArgSpec(target, {n: (_plain(v),) for n, v in options.items()})
            text = StringIO()
            emitter = checked("target", spec, targets[target]())
            emitter.emit(self.context, self.module, text)
            return text.getvalue()

    @cached_property
    def cost(self) -> Price:
        """
        The price of a run by the model `paper`, with the energy of networks.

        Raises CometError for a module that is not at a level that has a price.
        """
        with errors_as_sentences():
            return priced(self.module, self.hardware, "paper", network_energy=True)

    def load(self) -> ModuleType:
        """
        Import the Python module that the target `triton` emits.

        It has the function of the program, which takes and returns torch tensors, its
        reference in numpy, and `PROGRAM`, which says shapes and element types; for
        several ranks only the last two, and `comet-run` launches them. On a machine
        without a GPU kernels run in Triton's interpreter, for which this sets
        TRITON_INTERPRET=1 in the process. Needs the extra `run`. Raises CometError if
        the module is no program for GPUs, if torch or triton are not installed, or if
        triton has been imported to compile where there is no GPU.
        """
        with errors_as_sentences():
            require_gpu("load", attached_system(self.module))
            return loaded(self.emit("triton"))

    def _repr_html_(self) -> str:
        rows = {"hardware": self.hardware, **_steps(self.module)}
        with suppress(CometError):  # programs at a higher level have no price
            rows |= {"price": str(self.cost), **self.cost.parts}
        return table("compiled", {**rows, "passes": self.pipeline})


def _plain(value: str | int | bool | PathLike[str]) -> str | int | bool:
    """Return the value of an option, with a path as text."""
    return fspath(value) if isinstance(value, PathLike) else value


def _steps(module: ModuleOp) -> dict[str, str]:
    """Return the prices of the kernels in a launch plan."""
    kernels = (op for op in module.walk() if isinstance(op, KernelOp))
    priced = {kernel.sym_name.data: estimate_of(kernel) for kernel in kernels}
    return {
        name: f"{figures.latency:,.0f} ns"
        for name, figures in priced.items()
        if figures is not None
    }
