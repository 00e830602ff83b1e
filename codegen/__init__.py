"""How IR leaves and enters comet: one target per emitted format."""

from collections.abc import Callable

from xdsl.utils.target import Target


def get_all_targets() -> dict[str, Callable[[], type[Target]]]:
    """Return a factory for every target of comet, by name."""

    def get_comet() -> type[Target]:
        from comet.codegen.comet import CometTarget

        return CometTarget

    def get_taxes() -> type[Target]:
        from comet.codegen.taxes import TaxesTarget

        return TaxesTarget

    def get_triton() -> type[Target]:
        from comet.codegen.triton import TritonTarget

        return TritonTarget

    return {"comet": get_comet, "taxes": get_taxes, "triton": get_triton}
