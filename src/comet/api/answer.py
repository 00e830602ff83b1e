"""The result of a search: the best mapping, and a lower bound of all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from os import PathLike
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from comet.api.html import table
from comet.api.program import installed_context, parsed, printed
from comet.api.saved import with_pipeline
from comet.codegen.comet import write_files, write_folder
from comet.codegen.comet.arch import left_out
from comet.codegen.comet.tool_rules import check_tool
from comet.cost.estimate import ModelName, figure_text
from comet.dialects.arch import attached_system
from comet.dialects.comet import MappingOp
from comet.dialects.cost import estimate_of
from comet.passes.attach_hardware import attach_hardware
from comet.passes.explore.certificate import Certificate
from comet.passes.explore.constraints import ALL, read_constraints
from comet.passes.explore.state import bound_text
from comet.passes.pipelines.comet_accelerator import CometAcceleratorPass
from comet.passes.search import Objective
from comet.tools.diagnostics import errors_as_sentences

FIGURES = (
    "latency_cycles",
    "energy_pj",
    "edp",
    "objective",
    "lower_bound",
    "gap_percent",
    "proven",
    "artifact",
    "space_size",
    "evaluated",
    "pruned",
    "pruned_by",
    "structures",
    "structures_closed",
    "closed_by",
    "structures_rejected",
    "rejected_by",
    "bound_of_unreached",
    "seconds",
    "mapping",
    "pipeline",
    "model",
    "versions",
)
"""The attributes that are the keys of `to_json`, in their order."""


@dataclass(frozen=True)
class Progress:
    """The state of a search that runs."""

    objective: Objective
    """What is minimized."""
    best: float
    """The best known value of the objective; infinite if no mapping is known."""
    lower_bound: float
    """No mapping has a lower objective; 0 if no bound is known."""
    gap: float
    """By which fraction of its objective the best mapping may be improved."""
    structures: int
    closed: int
    """Structures that cannot have a better mapping."""
    evaluated: int
    """Mappings that were priced."""

    def __str__(self) -> str:
        """Return one line."""
        best, gap = "no mapping yet", ""
        if self.best < inf:
            best = f"best {self.objective} {self.best:,.0f}"
            gap = f", gap {100 * self.gap:.1f} %"
        known = (
            f"bound {self.lower_bound:,.0f}{gap}" if self.lower_bound else "no bound"
        )
        return f"{best}, {known}, {self.closed} of {self.structures} structures closed"

    def _repr_html_(self) -> str:
        return f"<code>{self}</code>"


@dataclass(frozen=True)
class Answer:
    """The best mapping of a program that a search has found, and its bound."""

    latency_cycles: float
    """Cycles of one run."""
    energy_pj: float
    """pJ of one run; with the model `paper` networks count, too."""
    objective: Objective
    """What was minimized."""
    lower_bound: float | None
    """
    No mapping of the space has a lower objective: cycles, pJ, or their product.

    None under the model `tool`, unless every mapping was priced; artifacts do not count
    if another mapping is preferred.
    """
    gap_percent: float | None
    """By how much the objective could still shrink, in percent; None without bound."""
    proven: bool
    """Whether no mapping of the space is better."""
    space_size: int
    """Mappings of the realized structures, whether they fit or not."""
    evaluated: int
    """Mappings that were priced."""
    pruned_by: Mapping[str, int]
    """
    How many parts of the searched structures were pruned, by the reason.

    A part is all mappings with the same outermost loops.
    """
    structures: int
    """The ways to pad, stream, shard and fuse the program that the search reached."""
    structures_closed: int
    """Structures that cannot have a better mapping."""
    closed_by: Mapping[str, int]
    """How many of these, and of groups of structures, by what their bound counts."""
    structures_rejected: int
    """Structures without a mapping."""
    rejected_by: Mapping[str, int]
    """How many of these, by the reason."""
    bound_of_unreached: float | None
    """A lower bound of the structures that were not reached; None if all were."""
    seconds: float
    """Wall time of the search."""
    interrupted: bool
    """Whether Ctrl-C ended the search."""
    mapping: str
    """The structure of the best mapping."""
    pipeline: str
    """The passes that map the program: a text for `comet-opt -p`."""
    model: ModelName
    versions: Mapping[str, str]
    """The versions of the packages on which the answer depends."""
    module: ModuleOp = field(repr=False)
    """The mapped program with its hardware, at the level `comet`."""
    proof: Certificate = field(repr=False)
    """The bound of every structure, and the inputs of the search."""

    @property
    def edp(self) -> float:
        """The product of energy and latency, in pJ x cycles."""
        return self.latency_cycles * self.energy_pj

    @property
    def artifact(self) -> bool:
        """Whether the latency of `tool`, which loses stalls, is below the roofline."""
        return self.roofline is not None

    @property
    def roofline(self) -> float | None:
        """The cycles of the root memory's transfers if `tool` has less, else None."""
        (mapping,) = (op for op in self.module.ops if isinstance(op, MappingOp))
        figures = estimate_of(mapping)
        found = None if figures is None else figures.roofline
        return None if found is None else float(found)

    @property
    def bound_text(self) -> str:
        """The lower bound, the gap and whether the answer is proven, as text."""
        percent = self.gap_percent
        gap = None if percent is None else percent / 100
        return bound_text(self.objective, self.lower_bound, gap, proven=self.proven)

    @property
    def pruned(self) -> int:
        """Mappings that were not priced."""
        return self.space_size - self.evaluated

    def to_json(self) -> dict[str, object]:
        """Return the figures by name: the keys of `comet-explore --json`."""
        return {name: getattr(self, name) for name in FIGURES}

    def mlir(self) -> str:
        """Return the text of `module`, which `comet-opt` and later searches read."""
        return printed(with_pipeline(self.module, self.proof.pipeline))

    def certificate(self) -> str:
        """Return the proof as a file, which `comet-explore --verify` checks."""
        return self.proof.text()

    def emit(self, folder: str | PathLike[str]) -> tuple[str, ...]:
        """
        Write the four COMET files into a folder; raises CometError if it cannot.

        If the COMET tool cannot price the mapping, or does not know its meshes, the
        files have the mapping of `comet-accelerator` instead. Returns sentences that
        say so, and which instances are left out; that is a comment in the files, too.
        """
        with errors_as_sentences():
            files, instead = self._files()
            write_folder(Path(folder), write_files(files))
            return left_out(attached_system(files)) or instead

    def _files(self) -> tuple[ModuleOp, tuple[str, ...]]:
        """Return the mapping that the files have, and why it is another one."""
        try:
            check_tool(self.module)
        except DiagnosticException as error:
            return self._for_tool(), (f"{error}; the files have another mapping",)
        return self.module, ()

    def _for_tool(self) -> ModuleOp:
        """Return the program mapped for the COMET tool, by a quick search."""
        proof, context = self.proof, installed_context()
        limits = read_constraints(proof.constraints, "constraints.yaml")
        module = parsed(proof.program, "program.mlir", context)
        attach_hardware(module, proof.hardware, f"{proof.system}.yaml")
        pipeline = CometAcceleratorPass(
            kind=limits.kinds[0],
            at=None if limits.at in (None, (ALL,)) else limits.at[0],
            pad=limits.pad,
            model=self.model,
            objective=self.objective,
            mappings="one",
            allow_artifacts=proof.allow_artifacts,
        )
        pipeline.apply(context, module)
        return module

    def _repr_html_(self) -> str:
        rows = {
            "latency": f"{self.latency_cycles:,.0f} cycles",
            "energy": f"{self.energy_pj:,.0f} pJ",
            "bound": self.bound_text,
            "priced": f"{self.evaluated:,} of {self.space_size:.3g} mappings",
            "structures closed by": counts(self.closed_by),
            "mapping": self.mapping,
            "passes": self.pipeline,
        }
        return table(f"the best mapping by the model {self.model}", rows)

    def __str__(self) -> str:
        """Return the answer as `comet-explore` prints it."""
        return "\n".join(
            (
                f"model {self.model}: {self.latency_cycles:,.0f} cycles",
                f"energy: {self.energy_pj:,.0f} pJ",
                *self._impossible(),
                self.bound_text,
                f"mapping: {self.mapping}",
                f"priced {self.evaluated:,} of {self.space_size:.3g} mappings in "
                f"{self.seconds:.1f} s; {self.structures_closed} of {self.structures} "
                f"structures closed, {self.structures_rejected} rejected",
                *self._pruning(),
                f"comet-opt -p '{self.pipeline}'",
            )
        )

    def _impossible(self) -> Iterator[str]:
        """Yield a line if no machine can be as fast as the model says."""
        if (cycles := self.roofline) is not None:
            yield (
                f"impossible: the root memory alone takes {cycles:,.0f} cycles, and "
                "the tool loses stalls of reads"
            )

    def _pruning(self) -> Iterator[str]:
        """Yield lines on closed structures and pruned parts, and on open structures."""
        if self.closed_by:
            yield f"structures closed by {counts(self.closed_by)}"
        if self.pruned_by:
            yield f"parts pruned by {counts(self.pruned_by)}"
        if open_structures := self.structures - self.structures_closed:
            yield f"structures left open: {open_structures}"
        if self.bound_of_unreached is not None and not self.proven:
            bound = f" of at least {figure_text(self.bound_of_unreached)}"
            text = bound if self.bound_of_unreached else ", all without a bound"
            yield f"not reached: structures{text}"


def counts(by_reason: Mapping[str, int]) -> str:
    """Return counts as text, as in "operations 2, capacity 1"."""
    return ", ".join(f"{reason} {count:,}" for reason, count in by_reason.items())
