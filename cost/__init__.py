"""
What a choice costs: pure functions on numbers and arrays; nothing here changes IR.

Import the submodule you need (this package itself imports nothing heavy):

* `comet.cost.model.price(problem, hardware, model="paper") -> Estimate` prices one mapping;
* `comet.cost.from_ir.estimate_module(module, model="paper") -> Estimate` prices a module that holds the
  `comet` ops of one mapping, or raises `CostError` with one sentence;
* `comet.cost.from_files.read_hardware(yaml) -> Hardware`, `read_problem(problem, mapping, constants) -> Problem`
  take the parsed YAML documents of the COMET tool;
* `comet.cost.legality.check(problem, hardware)` raises `CostError` for what the format cannot mean or a buffer cannot hold;
* `comet.cost.gpu.kernel_time(work, device) -> KernelTime` prices one launch of a GPU kernel.

`Estimate` (see `comet.cost.estimate`) carries `latency` (cycles), `energy` (pJ), `compulsory_stalls`, `optional_stalls`
and `memory_window` (cycles), `nodes` (one `NodeEstimate` per mapping node) and `energy_by_level` (pJ).

Models: `tool` is the COMET tool bit for bit, `paper` the same model with its defects mended, `ideal` perfect overlap.
"""
