"""
The tiles of all kernels of a function, with the launches that `merge-launches` makes.

Kernels that do not depend on each other may share one launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir import SSAValue

from comet.dialects.compound.gather import scatterings
from comet.passes.dataflow.launches import Dependences, seconds_of_launches
from comet.passes.schedule.fuse.gpu.groups import values_read
from comet.passes.schedule.fuse.gpu.plan import Step
from comet.passes.schedule.fuse.gpu.trial import Trials
from comet.passes.schedule.tile.gpu import KernelTiling
from comet.passes.schedule.tile_tree import Spatial


def launched_tilings(steps: Sequence[Step], trials: Trials) -> list[KernelTiling]:
    """
    Return the tilings of the kernels among `steps`: with long blocks, if faster.

    Kernels are merged without long blocks of summed dimensions: with them, products are
    so fast alone that merges are not made which save more together with others. Then
    each kernel in turn gets them, or loses them, if that is faster: a launch has
    the registers and the shared memory of its largest kernel, so that the long blocks
    of one may cost another its programs.
    """
    kernels = [step for step in steps if isinstance(step, Spatial)]
    number = {kernel: index for index, kernel in enumerate(kernels)}
    needs = dependences_of(steps).mapped(number.__getitem__)
    launched = [trials.launched(kernel) for kernel in kernels]
    lengthened = trials.lengthened(kernels)
    longer = {number[kernel]: trial for kernel, trial in lengthened.items()}

    def seconds(long: frozenset[int]) -> float:
        chosen = needs.mapped(
            lambda each: longer[each] if each in long else launched[each]
        )
        return seconds_of_launches(chosen, trials.launches)

    def descended(long: frozenset[int]) -> frozenset[int]:
        for each in longer:
            long = min(long, long ^ {each}, key=seconds)
        return long

    starts = (frozenset[int](), frozenset(longer))
    long = min(map(descended, starts), key=seconds)
    return [
        (longer[index] if index in long else trials.fitting(kernel)).tiling
        for index, kernel in enumerate(kernels)
    ]


def dependences_of(steps: Iterable[Step]) -> Dependences[Spatial]:
    """Return the kernels among `steps`, and which each one reads from."""
    producers: dict[SSAValue, frozenset[Spatial]] = {}
    read: dict[Spatial, frozenset[Spatial]] = {}
    for step in steps:
        if isinstance(step, Spatial):
            ids = (op.ids for value in step.outs for op in scatterings(value))
            read[step] = _kernels_of((*values_read(step.ops), *ids), producers)
            producers |= dict.fromkeys(step.outs, frozenset((step,)))
        else:
            for op in step.ops:
                found = _kernels_of(op.operands, producers)
                producers |= dict.fromkeys(op.results, found)
    return Dependences(tuple(read), read)


def _kernels_of(
    values: Iterable[SSAValue], producers: Mapping[SSAValue, frozenset[Spatial]]
) -> frozenset[Spatial]:
    """Return the kernels that compute values, also through views."""
    return frozenset[Spatial]().union(*(producers.get(v, frozenset()) for v in values))
