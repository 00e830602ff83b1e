"""
Launch plans: kernels, channels, flags, a proof that ranks agree; chains of mappings.

* `outline_kernels` makes a launch plan; `kernels` has rewrites that passes share.
* Fewer launches: `launches` has the rules and the prices, `merge_launches` and
  `merge_partials` are the passes.
* Ranks: `bsp_to_dataflow`, `connect_programs`, `lower_channels`, `place_waits` with
  `place_sends`, and `verify_sync`; `kernel_locals` is what waits order in one kernel.
* Programs of several tiles: `persist_programs`, `share_tiles`; their loops:
  `coalesce_loops`.
* Mappings: `outline_mappings`, `nested`.
"""
