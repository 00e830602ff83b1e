"""
Passes at the graph and elementary levels.

In the order of the pipelines: `decompose`; `pad` and `lower_views`, for one kind of
machine each; `sink_renames`, `stream`, `sink_scales`; `use_ge`, `use_exp2`,
`use_reciprocals`, `group_sums`; `split`; `expand_maps`, `expand_vectors` (`expansions`
says which are needed) and `sink_casts`, for COMET files. They write ops with the
`emitter`.
"""
