"""The passes of comet, one file each; every factory imports its file when asked."""

from collections.abc import Callable

from xdsl.passes import ModulePass


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return a factory for every pass of comet, by name."""

    def get_decompose() -> type[ModulePass]:
        from comet.passes.decompose import DecomposePass

        return DecomposePass

    return {
        "decompose": get_decompose,
    }
