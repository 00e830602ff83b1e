"""The forms of a program before it is sharded: its instances, padding and streaming."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from comet.passes.explore.choices import Meshes
from comet.passes.explore.config import form_label
from comet.passes.explore.constraints import Constraints
from comet.passes.explore.quick import AcceleratorPipeline
from comet.passes.graph.decompose import DecomposePass
from comet.passes.graph.expansions import expansions_of
from comet.passes.pipeline import run_passes

DECOMPOSE = DecomposePass(accumulator="input")


@dataclass(frozen=True)
class Elementary:
    """A program as a function of COMET files, on some instances of the machine."""

    label: str
    """The instances, as a part of the label of a structure."""
    passes: tuple[ModulePass, ...]
    """The passes that made it."""
    module: ModuleOp


@dataclass(frozen=True)
class Form:
    """A padded and streamed form of a program."""

    program: Elementary
    pad: str | None
    """The padded extents; None without padding."""
    stream: bool
    module: ModuleOp

    @property
    def label(self) -> str:
        """The form as a part of the label of a structure."""
        return self.program.label + form_label(self.pad, stream=self.stream)


def elementary(
    ctx: Context, module: ModuleOp, constraints: Constraints
) -> Iterator[Elementary]:
    """Yield the program for each open choice of instances, at least one."""
    for label, first in Meshes(constraints).options(module):
        copy, passes = module.clone(), (*first, DECOMPOSE)
        run_passes(passes, ctx, copy)
        expansions = expansions_of(copy)
        run_passes(expansions, ctx, copy)
        yield Elementary(label, (*passes, *expansions), copy)


def forms_of(
    program: Elementary, ctx: Context, pipeline: AcceleratorPipeline
) -> Iterator[Form]:
    """Yield the padded and streamed forms that `pipeline` leaves open."""
    for pad, padded in pipeline.paddings(program.module):
        for stream, form in pipeline.forms(ctx, padded):
            yield Form(program, pad, stream, form)
