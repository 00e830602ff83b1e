"""The passes of comet, one file each; every factory imports its file when asked."""

from collections.abc import Callable

from xdsl.passes import ModulePass


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return a factory for every pass of comet, by name."""

    def get_annotate_cost() -> type[ModulePass]:
        from comet.passes.annotate_cost import AnnotateCostPass

        return AnnotateCostPass

    def get_attach_hardware() -> type[ModulePass]:
        from comet.passes.attach_hardware import AttachHardwarePass

        return AttachHardwarePass

    def get_bind() -> type[ModulePass]:
        from comet.passes.schedule.bind import BindPass

        return BindPass

    def get_bsp_to_dataflow() -> type[ModulePass]:
        from comet.passes.dataflow.bsp_to_dataflow import BspToDataflowPass

        return BspToDataflowPass

    def get_comet_accelerator() -> type[ModulePass]:
        from comet.passes.pipelines.comet_accelerator import CometAcceleratorPass

        return CometAcceleratorPass

    def get_decompose() -> type[ModulePass]:
        from comet.passes.graph.decompose import DecomposePass

        return DecomposePass

    def get_distribute() -> type[ModulePass]:
        from comet.passes.sharding.distribute import DistributePass

        return DistributePass

    def get_exchange_terms() -> type[ModulePass]:
        from comet.passes.sharding.lower_reductions import ExchangeTermsPass

        return ExchangeTermsPass

    def get_fuse() -> type[ModulePass]:
        from comet.passes.schedule.fuse import FusePass

        return FusePass

    def get_insert_collectives() -> type[ModulePass]:
        from comet.passes.sharding.insert_collectives import InsertCollectivesPass

        return InsertCollectivesPass

    def get_lower_channels() -> type[ModulePass]:
        from comet.passes.dataflow.lower_channels import LowerChannelsPass

        return LowerChannelsPass

    def get_lower_to_triton() -> type[ModulePass]:
        from comet.passes.triton.lower_to_triton import LowerToTritonPass

        return LowerToTritonPass

    def get_outline_kernels() -> type[ModulePass]:
        from comet.passes.dataflow.outline_kernels import OutlineKernelsPass

        return OutlineKernelsPass

    def get_tile() -> type[ModulePass]:
        from comet.passes.schedule.tile import TilePass

        return TilePass

    def get_place_collectives() -> type[ModulePass]:
        from comet.passes.sharding.place_collectives import PlaceCollectivesPass

        return PlaceCollectivesPass

    def get_raise_comet() -> type[ModulePass]:
        from comet.passes.comet.raise_comet import RaiseCometPass

        return RaiseCometPass

    def get_select_ranks() -> type[ModulePass]:
        from comet.passes.sharding.select_ranks import SelectRanksPass

        return SelectRanksPass

    def get_split() -> type[ModulePass]:
        from comet.passes.graph.split import SplitPass

        return SplitPass

    def get_stream() -> type[ModulePass]:
        from comet.passes.graph.stream import StreamPass

        return StreamPass

    def get_lower_to_comet() -> type[ModulePass]:
        from comet.passes.comet.lower_to_comet import LowerToCometPass

        return LowerToCometPass

    def get_triton_distributed() -> type[ModulePass]:
        from comet.passes.pipelines.triton_distributed import TritonDistributedPass

        return TritonDistributedPass

    def get_verify_sync() -> type[ModulePass]:
        from comet.passes.dataflow.verify_sync import VerifySyncPass

        return VerifySyncPass

    return {
        "annotate-cost": get_annotate_cost,
        "attach-hardware": get_attach_hardware,
        "bind": get_bind,
        "bsp-to-dataflow": get_bsp_to_dataflow,
        "comet-accelerator": get_comet_accelerator,
        "decompose": get_decompose,
        "distribute": get_distribute,
        "exchange-terms": get_exchange_terms,
        "fuse": get_fuse,
        "insert-collectives": get_insert_collectives,
        "lower-channels": get_lower_channels,
        "lower-to-comet": get_lower_to_comet,
        "lower-to-triton": get_lower_to_triton,
        "outline-kernels": get_outline_kernels,
        "place-collectives": get_place_collectives,
        "raise-comet": get_raise_comet,
        "select-ranks": get_select_ranks,
        "split": get_split,
        "stream": get_stream,
        "tile": get_tile,
        "triton-distributed": get_triton_distributed,
        "verify-sync": get_verify_sync,
    }
