"""The result of a model: latency, energy and stalls."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ModelName: TypeAlias = Literal["tool", "paper", "ideal"]
"""
`tool`: the COMET tool bit for bit. `paper`: the same without its defects. `ideal`:
perfect overlap, no network.
"""


def energy_scope(model: str, *, network_energy: bool = True) -> str:
    """
    Return a phrase that says whether an energy includes networks.

    That of `ideal` never does.
    """
    included = network_energy and model != "ideal"
    return f"{'with' if included else 'without'} the energy of networks"


def figure_text(figure: float) -> str:
    """Return cycles, pJ or their product: six digits, and all before the point."""
    return f"{figure:,.0f}" if abs(figure) >= 1e5 else f"{figure:,.6g}"


class CostError(Exception):
    """
    A mapping or machine that cannot be priced; the message is one sentence: where, why,
    the way out.
    """

    def __init__(self, message: str, node: int | None = None):
        super().__init__(message)
        self.node = node
        """The node of the mapping at fault, numbered as in `NodeEstimate`."""


class HardwareError(CostError):
    """A machine description with a missing or contradictory field."""


@contextmanager
def at_node(index: int) -> Generator[None]:
    """Let a `CostError` of the body name the node, unless it already names one."""
    try:
        yield
    except CostError as error:
        error.node = index if error.node is None else error.node
        raise


@dataclass(frozen=True, slots=True)
class NodeEstimate:
    """The cost of one execution of one node of the mapping tree."""

    index: int
    """
    Position of the node in document order, bindings counted, as in the COMET tool's
    report.
    """
    name: str
    cycles: float
    """Cycles of one execution, children included."""
    compulsory_stalls: float = 0
    """Fill and drain cycles of one execution, which nothing can hide."""
    optional_stalls: float = 0
    """Cycles of one execution in which transfers outlast the work they overlap."""
    memory_window: float = 0
    """Cycles of work below this node that transfers can hide behind, one execution."""
    executions: float = 1
    """How often the node runs in a whole run."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of one mapping under one model."""

    model: ModelName
    latency: float
    """Cycles from start to end."""
    energy: float
    """pJ, network energy included if the model has it."""
    compulsory_stalls: float
    """Cycles of the whole run, summed over nodes."""
    optional_stalls: float
    """Cycles of the whole run, summed over nodes."""
    memory_window: float
    """Cycles of the whole run in which units compute, summed over leaves."""
    nodes: tuple[NodeEstimate, ...] = ()
    energy_by_level: Mapping[str, float] = field(default_factory=dict[str, float])
    """pJ by memory level, unit and network."""
    roofline: float = 0.0
    """
    Cycles of the mapping's transfers on the ports of the root memory; 0 for models
    whose latency is never below that.
    """

    @property
    def is_artifact(self) -> bool:
        """Whether no machine could run the mapping as fast as the model says."""
        return self.latency < self.roofline
