"""The options of `triton-distributed`, and checks of their combinations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from xdsl.utils.exceptions import PassFailedException

from comet.passes.analysis.named_numbers import named_number
from comet.passes.graph.sink_scales import Scales
from comet.passes.graph.split import SplitPass
from comet.passes.graph.use_exp2 import Exponential
from comet.passes.pipeline import AUTO, Pipeline
from comet.passes.schedule.fuse.strategy import Between
from comet.passes.schedule.order_programs import Order
from comet.passes.search.goal import Objective
from comet.passes.sharding.dim_axes import Dims, parse_dims
from comet.passes.sharding.lower_reductions import Terms
from comet.passes.triton.specialize_warps import SPECIALIZED

Requests: TypeAlias = Mapping[str, frozenset[object]]
"""Options that may request something, with the values that request nothing."""

OF_KERNELS: Requests = {
    "merge": frozenset(("auto", "last", "launch")),
    "launches": frozenset(("auto", "none")),
    "share": frozenset(("auto", "all", "none")),
    "split": frozenset(("auto", "none")),
    "collapse": frozenset(("auto", "none")),
}
"""Requests for certain kernels, parts or dimensions, which groups do not have."""

OF_RANKS: Requests = {
    "pattern": frozenset(("bsp", "auto")),
    "blocks": frozenset((None,)),
    "persistent": frozenset((None, False)),
    "tiles": frozenset((None, "auto", "kept")),
    "inputs": frozenset(("copied",)),
    "sources": frozenset((None,)),
    "kind": frozenset(("auto", "allreduce")),
    "terms": frozenset(("wide",)),
}
"""Requests for what ranks exchange; groups of programs do so in one way only."""


@dataclass(frozen=True)
class TritonOptions(Pipeline):
    """The options of the pipeline; most are those of the passes that they name."""

    ranks: int = 1
    """The number of GPUs."""

    dim: tuple[str, ...] | None = None
    """
    The dimension to shard over ranks; of H,M the first that ranks divide, else the
    last; "M:rank" also names the axis. By default, what a function says, or if it says
    nothing, a dimension of each op that `choose-shardings` chooses; `auto` also chooses
    between the shardings of a function. Groups of programs share N by default.
    """

    ctas: int | Literal["auto"] = 1
    """
    The programs of one GPU that share each row of `dim` and exchange, in one kernel;
    or `auto`, if that is faster. `dim` is one dimension then, as in N or "N:cta"; ranks
    share it, too, unless another one is theirs, as in "M:rank;N:cta".
    """

    pattern: Literal["bsp", "wait", "pull", "push", "fused", "auto"] = "auto"
    """
    How ranks synchronize, see `bsp-to-dataflow`: `auto` as the fastest launch plan,
    `bsp` at barriers. With `ctas` they push.
    """

    blocks: str | None = None
    """See `bsp-to-dataflow`."""

    persistent: bool | None = None
    """See `bsp-to-dataflow`."""

    tiles: str | None = None
    """
    See `bsp-to-dataflow`; `auto` if `pattern` and `factors` are, unless it is `kept`:
    tiles are those that `tile` chose.
    """

    inputs: Literal["copied", "symmetric"] = "copied"
    """See `bsp-to-dataflow`."""

    sources: Literal["each", "all"] | None = None
    """See `bsp-to-dataflow`."""

    kind: Literal["allreduce", "reduce_scatter_all_gather", "auto"] = "auto"
    """
    What all-reduces of ranks become, see `place-collectives`; `auto` takes the faster
    launch plan, and `allreduce` where programs are in groups.
    """

    terms: Terms = "wide"
    """See `lower-reductions`."""

    split: str = "auto"
    """
    The dimension whose folds or sums are split over more programs, and the number of
    parts, such as S=64, or of products alone, as in "D=4: q k; F=2: down"; `none`; or
    `auto`: a fold or products of few results, if that is faster.
    """

    stream: bool = True
    """Compute reductions that depend on each other as one running fold."""

    scales: Scales = "auto"
    """See `sink-scales`; `auto` sinks none where programs exchange."""

    exp: Exponential = "auto"
    """See `use-exp2`."""

    maxima: bool = True
    """Compute maxima of unscaled values, see `scale-maxima`."""

    reciprocals: bool = True
    """Divide by each number of a row once, see `use-reciprocals`."""

    strategy: Literal["none", "partial", "full", "priority", "auto"] = "auto"
    """See `fuse`."""

    between: Literal[Between, "auto"] = "auto"
    """See `fuse`."""

    kernels: str = "auto"
    """See `fuse`."""

    narrow: str = "auto"
    """See `fuse`."""

    collapse: str = "auto"
    """See `dims` of `collapse-dims`; on one rank, without groups of programs."""

    factors: str = "auto"
    """See `tile`."""

    merge: str = "auto"
    """See `merge-partials`."""

    launches: str = "auto"
    """See `merge-launches`."""

    share: str = AUTO
    """See `kernels` of `share-tiles`; without groups of programs."""

    order: Order = "auto"
    """See `order-programs`."""

    unmask: Literal["auto", "all", "none"] = "auto"
    """See `loops` of `unmask-loops`; not where warps are specialized."""

    persist: str = SPECIALIZED
    """See `kernels` of `persist-programs`."""

    copies: Literal["pointers", "descriptors", "auto"] = "auto"
    """
    How operands of products come to shared memory: by pointers, by descriptors where
    `use-descriptors` can, or by descriptors where warps are specialized.
    """

    specialize: bool | Literal["auto"] = "auto"
    """
    Let producer warps load by descriptors, see `specialize-warps`; `auto` where
    that is faster, without groups of programs.
    """

    stores: str = "none"
    """
    The kernels whose results are stored by descriptor, see `kernels` of `stage-stores`;
    `none` by default, as it was not timed on a GPU.
    """

    objective: Objective = "latency"
    """The objective of every choice; hardware files of GPUs have no energies."""

    to: Literal["tl", "dataflow"] = "tl"
    """The last level: `dataflow` is the launch plan, for `-t taxes`."""

    def __post_init__(self) -> None:
        """Raise PassFailedException for options that contradict each other."""
        if not self.dims:
            raise PassFailedException(
                "the option 'dim' names the dimension that ranks shard, as in N; it is "
                "empty; name one, or use ranks=1 without it to shard none"
            )
        if self.dim == (AUTO,) and self.ctas != 1:
            raise PassFailedException(
                "the option 'dim' is auto, and the programs of a group share one "
                'dimension; name it, as in dim=N or "N:cta", or use ctas=1'
            )
        if self.ranks < 1:
            raise PassFailedException(
                f"the option 'ranks' is a number of GPUs, not {self.ranks}; use "
                "ranks=1 for one"
            )
        if self.group < 1:
            raise PassFailedException(
                f"the option 'ctas' is a number of programs or auto, not {self.ctas}; "
                "use ctas=1 for programs that do not exchange"
            )
        if self.split not in ("none", "auto"):
            parse_splits(self.split)
        self._check_requests()
        if self.specialize is True and self.copies == "pointers":
            raise PassFailedException(
                "the option 'specialize' is true, and producer warps load by "
                "descriptors; leave copies=pointers out"
            )

    def _check_requests(self) -> None:
        """Raise PassFailedException for a request that no pass would obey."""
        if self.group > 1:
            reason = "programs are in groups; use ctas=1"
            self._refuse({**OF_KERNELS, **OF_RANKS}, reason)
        elif self.ranks > 1:
            reason = "kernels of several ranks keep their dimensions; use ranks=1"
            self._refuse({"collapse": OF_KERNELS["collapse"]}, reason)
        else:
            self._refuse(OF_RANKS, "one rank exchanges nothing; use more ranks")
            if self.ctas == 1 and self.dim is not None:
                self._refuse({"dim": frozenset()}, "one rank has all; use more ranks")
        if self.merge == "launch":
            reason = "merge=launch merges parts in a launch of its own; use merge=last"
            self._refuse({"share": OF_KERNELS["share"]}, reason)

    def _refuse(self, requests: Requests, reason: str) -> None:
        """Raise PassFailedException for the first request, with a reason and remedy."""
        for name, nothing in requests.items():
            if (value := getattr(self, name)) not in nothing:
                asked = ",".join(self.dim or ()) if name == "dim" else str(value)
                asked = asked.lower() if isinstance(value, bool) else asked
                raise PassFailedException(
                    f"the option '{name}' asks for {asked}, and {reason}, or leave "
                    f"{name} out"
                )

    @property
    def dims(self) -> Dims:
        """The dimensions to shard, in the order of `dim`."""
        return parse_dims(("N",) if self.dim is None else self.dim)

    def chooses_shardings(self, *, stated: bool) -> bool:
        """
        Return whether a dimension to shard over ranks is chosen for each op.

        `stated` is whether functions say by `collective.shard` what ranks have.
        """
        chosen = self.dim == (AUTO,) or (self.dim is None and not stated)
        return chosen and self.ranks > 1 and self.group == 1

    @property
    def group(self) -> int:
        """The number of programs that exchange, 1 if none do."""
        return 1 if self.ctas == "auto" else self.ctas

    @property
    def instances(self) -> int:
        """The number of ranks, or of programs that exchange on one."""
        return max(self.ranks, self.group)

    @property
    def may_specialize(self) -> bool:
        """Whether kernels may have producer warps."""
        if self.ctas != 1 or self.copies == "pointers":
            return False
        given = self.factors != "auto"
        return self.specialize is True or (self.specialize == "auto" and not given)


def parse_splits(text: str) -> tuple[SplitPass, ...]:
    """
    Return the splits in `text`, such as S=64, or D=4: q k; F=8: down.

    Raises PassFailedException if it has another form.
    """
    return tuple(map(_parse_split, text.split(";")))


def _parse_split(text: str) -> SplitPass:
    """Return the split of a dimension, or of the products that follow a colon."""
    what, _, products = text.partition(":")
    found = named_number(what)
    if found is None:
        raise PassFailedException(
            "the option 'split' is DIM=PARTS, such as S=64, or D=4: q k for products, "
            f"none or auto, not '{text}'"
        )
    names = " ".join(name.removeprefix("%") for name in products.split())
    return SplitPass(*found, names or None)
