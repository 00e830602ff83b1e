"""
`bsp-to-dataflow`: dataflow level -> dataflow level, with channels.

Needs programs of kernels, collectives and barriers, as `outline-kernels` makes them.
Every collective becomes a channel, by one of five patterns. `bsp` keeps a kernel that
sends, and the barriers; with `wait` consumers wait for each rank instead; with `push`
for each block of rows; with `pull` they load from the memory of the producer; with
`fused` the producer sends each tile when it is computed, and an input is sent by the
kernel that reads it, before it waits. `persistent` merges such a producer and its
consumer into one kernel. Consumers visit the sources of what they gather one after
another, or with `sources=all` all at once, after one wait. With `inputs=symmetric` the
caller writes inputs that are pulled to symmetric memory: no kernel copies them; the
first kernel that pulls an input signals it. `auto` takes the cheapest by the cost
model. Rejects a pattern that does not apply, with those that do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_spec

from comet.dialects.dataflow.program import programs_in
from comet.passes.dataflow.bsp_to_dataflow import choose_pattern as search
from comet.passes.dataflow.bsp_to_dataflow.connect import (
    ConnectPass,
    has_inputs_in_place,
)
from comet.passes.pipeline import ChoosingPass, noted

CHOSEN = "comet.pattern"
"""The attribute of a function with the options that a search has found."""


@dataclass(frozen=True)
class BspToDataflowPass(ConnectPass, ChoosingPass):
    """Replace collectives and barriers by channels."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function that is no reference."""
        if "auto" not in (self.pattern, self.tiles):
            super().apply(ctx, op)
        elif programs := self.exchanging(op):
            chosen = self._cheapest(op)
            chosen.apply(ctx, op)
            for function in programs:
                text = str(chosen.pipeline_pass_spec())
                function.attributes[CHOSEN] = StringAttr(text)

    def settled(self, module: ModuleOp) -> Self:
        """Return the pass that was chosen for `auto`."""
        if "auto" not in (self.pattern, self.tiles):
            return self
        chosen = noted(module, CHOSEN)
        return self if chosen is None else self.from_spec(parse_spec(chosen))

    def _cheapest(self, module: ModuleOp) -> ModulePass:
        """Return this pass with the cheapest choice for all that is `auto`."""
        fixed, patterns = self, search.PATTERNS
        if not any(map(has_inputs_in_place, programs_in(module))):
            fixed = replace(fixed, inputs="copied")
        if self.pattern != "auto":
            patterns = (self.pattern,)
            fixed = replace(fixed, persistent=bool(self.persistent))
        return search.choose_pattern(module, patterns, fixed).best.options(fixed)
