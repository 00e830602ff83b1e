"""
The passes of comet, in the order of the pipelines; imported on demand.

The folders, in the order of the levels: `graph`, `sharding`, `schedule`, `dataflow`,
then `triton` or `comet`. `attach_hardware` comes first, and `annotate_cost` prices what
there is. `pipelines` are passes of passes; `search` compares candidates, `explore` all
mappings. The base classes are `function_pass` and `pipeline`; passes share `analysis`.
"""

from collections.abc import Callable
from functools import partial
from typing import cast

from xdsl.passes import ModulePass

from comet.registry import imported

PASSES = {
    "attach-hardware": "attach_hardware:AttachHardwarePass",
    "comet-accelerator": "pipelines.comet_accelerator:CometAcceleratorPass",
    "triton-distributed": "pipelines.triton_distributed:TritonDistributedPass",
    "decompose": "graph.decompose:DecomposePass",
    "pad": "graph.pad:PadPass",
    "lower-views": "graph.lower_views:LowerViewsPass",
    "sink-renames": "graph.sink_renames:SinkRenamesPass",
    "stream": "graph.stream:StreamPass",
    "sink-scales": "graph.sink_scales:SinkScalesPass",
    "use-ge": "graph.use_ge:UseGePass",
    "use-exp2": "graph.use_exp2:UseExp2Pass",
    "group-sums": "graph.group_sums:GroupSumsPass",
    "use-reciprocals": "graph.use_reciprocals:UseReciprocalsPass",
    "split": "graph.split:SplitPass",
    "expand-maps": "graph.expand_maps:ExpandMapsPass",
    "expand-vectors": "graph.expand_vectors:ExpandVectorsPass",
    "sink-casts": "graph.sink_casts:SinkCastsPass",
    "select-ranks": "sharding.select_ranks:SelectRanksPass",
    "add-ctas": "sharding.add_ctas:AddCtasPass",
    "select-instances": "sharding.select_instances:SelectInstancesPass",
    "distribute": "sharding.distribute:DistributePass",
    "choose-shardings": "sharding.choose_shardings:ChooseShardingsPass",
    "propagate-shardings": "sharding.propagate_shardings:PropagateShardingsPass",
    "insert-collectives": "sharding.insert_collectives:InsertCollectivesPass",
    "merge-collectives": "sharding.merge_collectives:MergeCollectivesPass",
    "place-collectives": "sharding.place_collectives:PlaceCollectivesPass",
    "lower-reductions": "sharding.lower_reductions:LowerReductionsPass",
    "fuse": "schedule.fuse:FusePass",
    "collapse-dims": "schedule.collapse_dims:CollapseDimsPass",
    "tile": "schedule.tile:TilePass",
    "order-programs": "schedule.order_programs:OrderProgramsPass",
    "split-epilogues": "schedule.split_epilogues:SplitEpiloguesPass",
    "unmask-loops": "schedule.unmask_loops:UnmaskLoopsPass",
    "bind": "schedule.bind:BindPass",
    "outline-kernels": "dataflow.outline_kernels:OutlineKernelsPass",
    "nested": "dataflow.nested:NestedPass",
    "outline-mappings": "dataflow.outline_mappings:OutlineMappingsPass",
    "connect-programs": "dataflow.connect_programs:ConnectProgramsPass",
    "merge-partials": "dataflow.merge_partials:MergePartialsPass",
    "merge-launches": "dataflow.merge_launches:MergeLaunchesPass",
    "share-tiles": "dataflow.share_tiles:ShareTilesPass",
    "persist-programs": "dataflow.persist_programs:PersistProgramsPass",
    "coalesce-loops": "dataflow.coalesce_loops:CoalesceLoopsPass",
    "bsp-to-dataflow": "dataflow.bsp_to_dataflow:BspToDataflowPass",
    "lower-channels": "dataflow.lower_channels:LowerChannelsPass",
    "annotate-cost": "annotate_cost:AnnotateCostPass",
    "materialize-copies": "schedule.materialize_copies:MaterializeCopiesPass",
    "hoist-copies": "schedule.hoist_copies:HoistCopiesPass",
    "place-waits": "dataflow.place_waits:PlaceWaitsPass",
    "verify-sync": "dataflow.verify_sync:VerifySyncPass",
    "pad-blocks": "triton.pad_blocks:PadBlocksPass",
    "bound-loops": "triton.bound_loops:BoundLoopsPass",
    "scale-maxima": "triton.scale_maxima:ScaleMaximaPass",
    "order-operands": "triton.order_operands:OrderOperandsPass",
    "map-grid": "triton.map_grid:MapGridPass",
    "mask-copies": "triton.mask_copies:MaskCopiesPass",
    "use-descriptors": "triton.use_descriptors:UseDescriptorsPass",
    "stage-stores": "triton.stage_stores:StageStoresPass",
    "specialize-tiles": "triton.specialize_tiles:SpecializeTilesPass",
    "specialize-warps": "triton.specialize_warps:SpecializeWarpsPass",
    "lower-to-triton": "triton.lower_to_triton:LowerToTritonPass",
    "deduplicate-kernels": "triton.deduplicate_kernels:DeduplicateKernelsPass",
    "deallocate-buffers": "triton.deallocate_buffers:DeallocateBuffersPass",
    "known-meshes": "comet.known_meshes:KnownMeshesPass",
    "lower-to-comet": "comet.lower_to_comet:LowerToCometPass",
    "raise-comet": "comet.raise_comet:RaiseCometPass",
}
"""The module of each pass, below this package, and its class."""


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return a factory for every pass of comet, by name."""
    return {name: partial(_pass, path) for name, path in PASSES.items()}


def _pass(path: str) -> type[ModulePass]:
    return cast(type[ModulePass], imported(f"comet.passes.{path}"))
