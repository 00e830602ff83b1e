"""
From IR to numbers: the inputs of the cost models.

* The machine: `hardware` (accelerators), `gpus` with `triton_rules`.
* Mappings: `mapping` of the `comet` dialect; `bounds` of a program before fusion.
* Shards of ops on GPUs, before fusion: `sharded_ops`.
* Which values fit the levels of a tile tree at the same time: `capacity`.
* Kernels: `kernel` makes the summary. It walks the `bodies` of the tree, and reads
  `products`; `tile_traffic`, `repeated_loads`, `waits`, and `memory` for addresses;
  `vector_operations` by `vector_costs`; `register_points`, `register_tiles` and
  `row_points`; `staged_tiles` of shared memory; `loop_bounds`, `epilogues`,
  `exchanges`, `scatters`, `shares`, `clusters`, `tile_loops`.
* Launch plans: `program`, of the `node_figures` of its kernels and the `partials` that
  they merge; `traffic`, the bytes of each tensor.
* One `collective`.
"""
