"""
Cost models: pure functions on numbers and arrays; nothing here changes IR.

`comet.cost(program, model="paper")` prices a compiled program: this package can also be
called as the function `comet.api.functions.cost`. Otherwise import the submodule you
need (this package itself imports none):

* `accelerator.model.price(problem, hardware, model="paper") -> Estimate` prices one
  mapping;
* `accelerator.model.price_many(mappings, hardware, model="paper") -> Prices` prices
  many mappings of one template at once, in numpy arrays;
* `accelerator.model.room_many(mappings, hardware)` says which of them fit by the COMET
  tool's rule;
* `accelerator.legality.check(problem, hardware)` raises `CostError` for a mapping that
  the format does not allow, `accelerator.legality.check_sizes` if its tiles do not fit;
* `gpu.kernel.kernel_time(work, device) -> KernelTime` prices one launch of a GPU
  kernel;
* `from_ir.mapping.estimate_module(module, model="paper") -> Estimate` prices the
  mapping in a module of `comet` ops with an `arch.system`; `problem_of(module)` and
  `from_ir.hardware.hardware_of(system)` return the arguments of the models;
* `from_ir.kernel.summarize(node, levels, gpu)` and
  `from_ir.program.launch_plan_of(program, system)` read kernels and launch plans of
  GPUs, `from_ir.capacity.demands(block, sizes)` the values that are alive.

`estimate.Estimate` has `latency` (cycles), `energy` (pJ), `compulsory_stalls`,
`optional_stalls` and `memory_window` (cycles), `nodes` (a `NodeEstimate` per mapping
node, by position in the document) and `energy_by_level` (pJ). A `CostError` is one
sentence.

Models: `tool` is the COMET tool bit for bit, `paper` the same model without its
defects, `ideal` perfect overlap without fill, drain or network.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import cast

from comet.registry import imported


class _CallableModule(ModuleType):
    """
    A package that is also a function.

    `comet.cost` is both: importing `comet.cost.estimate` makes it the package.
    """

    def __call__(self, *arguments: object, **options: object) -> object:
        price = cast(Callable[..., object], imported("comet.api.functions:cost"))
        return price(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
