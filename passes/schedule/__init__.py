"""
The schedule level: passes that build tile trees, and that choose their factors.

* `tile_tree` builds nodes around ops, `retile` and `split_loops` change their loops;
  `node_names` and `plan_string` are how text names nodes and gives them loops.
* The passes `fuse`, `collapse_dims` and `tile` are folders; `bind` is for accelerators.
* For kernels: `materialize_copies`, `hoist_copies`, `order_programs`, `unmask_loops`,
  `split_epilogues`.
"""
