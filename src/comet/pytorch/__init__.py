"""
The PyTorch front end: graphs as programs, and a back end of `torch.compile`.

To read in this order:

* `backend` (`torch.compile`), with a `region` for each part that it compiles, what
  torch expects of its `memory`, and `shapes` that change; `exporting`, which is
  `comet.from_torch`;
* `complex_numbers`, which a graph has as pairs of real ones from there on;
* `importer`: from a graph of torch to a function; it runs the graph under the `tracer`,
  whose views come after its `arithmetic`, and which finds `rules` for ATen ops, after
  `decompositions` into simpler ones;
* the rules: `elementwise`, `division`, `reductions`, `views`, `tables`,
  `convolutions`, `pooling`, `attention`, of `torch_ops`, `random_numbers`, and
  `collectives`;
* `emitter`, `ops`, `dims`: what rules emit, still without names of dimensions, and how
  these are found; `functions` makes the functions, after `naming`;
* several ranks: `spreading` of models by DTensors over axes of `meshes`, `merging` of
  the graphs of ranks and `parts` in which they differ, `ranks`, `groups`, `processes`;
* `cuda_graphs`: launches of a call as one;
* `program_cache`: compiled programs for later processes.
"""
