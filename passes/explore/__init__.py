"""
The search over all mappings of a program: its space, and the best one in it.

To read in this order:

* `constraints`, and `choices` that are passes with options;
* what a space consists of: `config`, `forms`, `shardings`, `structure`, `space`;
* `quick`, which is `comet-accelerator`, and `constrained`, the same within constraints:
  the mapping that a search starts from;
* `state`, `best_first`, `search`: the exact search; `lowering`: its answer as files;
* `certificate` and `verify`: the proof, and its checker;
* `mapping_options` and `meets`: whether a given mapping is within constraints.
"""
