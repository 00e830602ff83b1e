"""
The command line tools: `comet-opt`, `comet-cost`, `comet-explore`, `comet-run`.

* The tools: `comet_opt`, `comet_cost`, `comet_explore` (`exploring`, `batching`) and
  `comet_run`; `demo` is `make demo`.
* Before passes run: `located_parser`, `checks`, `option_check`, `option_types`;
  `pass_list` prints what there is.
* While they run: `pass_watch`, `type_aliases`, `progress_bar`.
* After them: `explain`, `mapping_table`, `reporting`, `compile_reporting`.
* Errors: `diagnostics`, `renamed`.
* Processes: `flags`, `extras`.
"""
