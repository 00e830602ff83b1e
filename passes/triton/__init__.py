"""
From the dataflow level to Triton: one pass in each file; only `deduplicate_kernels` and
`deallocate_buffers` come after `lower_to_triton`.

* Loops: `bound_loops`, `scale_maxima`, `order_operands`.
* Tiles become blocks: `pad_blocks`, `map_grid`, `mask_copies`. Masks follow from the
  `slices` of dimensions.
* What the hardware does by itself: `use_descriptors`, `stage_stores`, and in warps of
  their own `specialize_tiles` and `specialize_warps`.
"""
