"""How a program is padded, streamed and sharded, and what made a mapping of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from comet.passes.sharding.dim_axes import Dims, format_dims


@dataclass(frozen=True)
class ShardingConfig:
    """The padding, the streaming and the sharding of a program."""

    pad: str | None
    """The padded extents, as an option of `pad`; None without padding."""
    stream: bool
    dims: Dims
    notes: Mapping[str, Attribute]
    """Choices without an option, as attributes of the functions."""

    @property
    def label(self) -> str:
        """The config as options."""
        form = form_label(self.pad, stream=self.stream)
        return f"{form} dim={format_dims(self.dims)}"


def form_label(pad: str | None, *, stream: bool) -> str:
    """Return how a program is padded and streamed, as options."""
    padded = "" if pad is None else f"pad={pad} "
    return f"{padded}stream={'true' if stream else 'false'}"


@dataclass(frozen=True)
class ChosenPasses:
    """The passes that made a mapping, with their choices."""

    passes: tuple[ModulePass, ...]
    notes: Mapping[str, Attribute]
    """These choices, as attributes of the functions."""
