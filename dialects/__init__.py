"""The dialects of comet, one file each; every factory imports its file when asked."""

from collections.abc import Callable

from xdsl.ir import Dialect


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Return a factory for every dialect of comet, by name."""

    def get_arch() -> Dialect:
        from comet.dialects.arch import Arch

        return Arch

    def get_collective() -> Dialect:
        from comet.dialects.collective import Collective

        return Collective

    def get_comet() -> Dialect:
        from comet.dialects.comet import Comet

        return Comet

    def get_compound() -> Dialect:
        from comet.dialects.compound import Compound

        return Compound

    def get_cost() -> Dialect:
        from comet.dialects.cost import Cost

        return Cost

    def get_dataflow() -> Dialect:
        from comet.dialects.dataflow import Dataflow

        return Dataflow

    def get_schedule() -> Dialect:
        from comet.dialects.schedule import Schedule

        return Schedule

    def get_tl() -> Dialect:
        from comet.dialects.tl import Tl

        return Tl

    return {
        "arch": get_arch,
        "collective": get_collective,
        "comet": get_comet,
        "compound": get_compound,
        "cost": get_cost,
        "dataflow": get_dataflow,
        "schedule": get_schedule,
        "tl": get_tl,
    }
