"""
Analyses that several passes use: pure functions on IR.

* Functions and levels: `functions`, `levels`, `grid`, `padding`.
* The machine: `hardware_kind`, `hardware_mesh`, `memory_chain`.
* Ops: `op_groups`, `dependence`, `reduction_loops` (the loops of a kernel or nest),
  `row_statistics`, and `addresses`, which COMET files do not have.
* Options as text: `named_numbers`, `numbered_kernels`, `stored_values`.
* Graph theory: `minimum_cut`.
"""
