"""The request of `comet-run` to its child process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

ONE_RANK = ("interpreter", "scheduler", "gpu")
"""Back ends for programs of one rank that are functions."""
MANY_RANKS = ("scheduler", "processes", "virtual", "gpu", "distributed")
"""Back ends for programs of several ranks."""
ONE_PLAN = (*MANY_RANKS, "interpreter")
"""Back ends for programs of one rank with a plan, whose memory outlives a launch."""
INTERPRETED = ("interpreter", "scheduler", "processes", "virtual")
"""Back ends that need no GPU."""
LIMITED = ("scheduler", "processes", "virtual")
"""Back ends that can limit how many programs run at the same time."""
GRAPHS = ("virtual", "gpu", "distributed")
"""Back ends that can repeat launches without the host program."""
TARGETS = ("sm_90", "gfx942")
"""GPUs that kernels can be compiled for on any machine."""
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
"""The environment variables that torchrun sets for its processes."""


@dataclass(frozen=True)
class Request:
    """One run of one module."""

    module: str
    backend: str
    seed: int = 0
    ranks: int | None = None
    """Given by the user; None: the number the module was compiled for."""
    resident: int | None = None
    """How many programs of a rank run at the same time; None: all."""
    epochs: int = 5
    """Launches of a program of several ranks, with new data and without a reset."""
    graph: bool = False
    """Replay a captured graph in all launches but the first."""
    as_json: bool = False
    bench: bool = False
    targets: tuple[str, ...] = ()
    """Compile for these targets, and run nothing."""

    def text(self) -> str:
        """Return the request as one argument of a command."""
        return json.dumps(asdict(self))


def request_of(text: str) -> Request:
    """Return the request that `Request.text` wrote."""
    return Request(**json.loads(text))
