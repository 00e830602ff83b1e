"""
From one device to many: shardings, and the collectives that they imply.

* Meshes: `select_ranks`, `select_instances`, `add_ctas`.
* Annotations: `shardings` of ops, the `boundary` of a function, `dim_axes` of options;
  the passes `distribute`, `propagate_shardings` and `choose_shardings` write them.
* `moves` and `through_views`: how a value gets from one sharding to another.
* Collectives: `insert_collectives`, `merge_collectives`, `place_collectives`,
  `lower_reductions`.
"""
