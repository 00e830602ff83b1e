"""
`bsp-to-dataflow`: dataflow level -> dataflow level, with channels.

Needs programs of kernels, collectives and barriers, as `outline-kernels` makes them.
Every collective becomes a channel, by one of five patterns:

* `bsp`: a copy kernel sends, between barriers of all ranks;
* `wait`: a copy kernel sends, and consumers wait for the message of each rank;
* `push`: a copy kernel sends, and consumers wait for each block of rows;
* `pull`: consumers load from the memory of the producer;
* `fused`: the producer sends each tile as soon as it is computed. An input, which no
  kernel computes, is sent by the first kernel that reads it, before that kernel waits.

`persistent` merges the producer and the consumer of `fused` into one kernel. Consumers
visit the source ranks of a gathered value one after another, or with `sources=all` all
together, after one wait. With `inputs=symmetric` the caller writes inputs that are
pulled to symmetric memory, so that no kernel copies them; the first kernel that pulls
an input signals it. `auto` takes the cheapest pattern by the cost model. If a pattern
does not apply, the error names those that do.
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
