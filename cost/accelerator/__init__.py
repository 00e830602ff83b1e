"""
Prices of mappings on accelerators, by the models `tool`, `paper` and `ideal`.

To read in this order:

* `problem` and `hardware`: a mapping and a machine as data; `mappings`: arrays of them;
* `factors`, `visits`, `volume`, `partial_sums`: the loops of a node, how often it runs,
  and what it moves; `flow` has the transfers of each node;
* `compute` and `noc` with `router`: the units and the network; `bindings`: siblings;
* `model`: the price by the model of a name: `ideal`, or the folders `paper`, `tool`;
* `legality` and `capacity`: which mappings may be priced;
* `bounds`, for searches; `breakdown`, `report`, `scaling`, for reports.
"""
