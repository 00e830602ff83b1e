"""
Prices of kernels and launch plans on GPUs.

To read in this order:

* `device`, `triton_rules` and `interconnect`: a GPU, how Triton compiles for it, and
  the links of a node, as numbers;
* `terms`, `contractions`, `kernel_facts`, `summary`: a kernel as functions of its block
  sizes; `bounded` has the iterations of masked loops, `launch_order` the order of
  programs, `hoisting` how often a tile is loaded, `shares` equal runs of a list of
  tiles;
* `work`: what the programs of a kernel compute, move, wait for and need; `tiling`: from
  a summary to the work, and `kernel`: from work to time; `spent` divides times among
  resources; `pipelined` and `warp_groups` say what overlaps;
* `capacity`: what fits; `registers`, by the `layouts` and `peaks` of tiles, or in
  kernels without products by `row_registers`;
* other forms of kernels: `epilogue` (subtiles), `clusters`, `persistent`,
  `specialized`;
* `launch_plan`, `timeline`, `taxes`: all kernels of a rank; `shared_launch`: several
  nodes in one launch; `waiting`: where programs wait; `bounds`; `scaling`.
"""
