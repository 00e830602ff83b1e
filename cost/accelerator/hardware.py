"""
The machine as data: memory levels, compute units and the networks between them.

Sizes are bytes, bandwidths bytes per cycle, energies pJ per block of `width` bytes,
times cycles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from comet.cost.estimate import CostError


def check_positive(what: str, wanted: Mapping[str, float]) -> None:
    """Raise CostError for a field of `wanted` that is 0, as the file lacks it."""
    for field, value in wanted.items():
        if value <= 0:
            raise CostError(f"{what}, but the hardware file lacks {field}; add it")


@dataclass(frozen=True, slots=True)
class Memory:
    """A kind of memory."""

    kind: str
    width: int = 1
    depth: int = 1
    ports: int = 1
    parent_read_bandwidth: float = 0
    parent_write_bandwidth: float = 0
    child_read_bandwidth: float = 0
    child_write_bandwidth: float = 0
    link_read_bandwidth: float = 0
    link_write_bandwidth: float = 0
    parent_read_energy: float = 0
    parent_write_energy: float = 0
    child_read_energy: float = 0
    child_write_energy: float = 0
    shares_ports: bool = False
    """Whether transfers with the parent and with the children use the same ports."""
    one_bus: bool = False
    """Whether reads and writes share one bandwidth: the file has a single `bw`."""
    contiguous: bool = False
    """Whether a DMA engine sends all tiles as one transfer: one network latency."""

    @property
    def capacity(self) -> int:
        """Bytes one instance holds."""
        return self.width * self.depth


@dataclass(frozen=True, slots=True)
class Unit:
    """A kind of compute unit."""

    kind: str
    """SystolicArray, VSIMD, GEMM, MAC or intmac."""
    latency: int
    startup: int = 0
    width: int = 8
    rows: int = 32
    columns: int = 32
    row_arrays: int = 1
    column_arrays: int = 1
    energy: float = 0
    rate: float = 1.0
    """Cycles of the unit in one cycle of the machine; `tool` knows no other than 1."""

    @property
    def sides(self) -> tuple[int, int]:
        """The rows and columns of all arrays together."""
        return self.rows * self.row_arrays, self.columns * self.column_arrays


@dataclass(frozen=True, slots=True)
class Network:
    """The links from one level to its children, or among the instances of one level."""

    bandwidth: float
    mesh: tuple[int, int] | None = None
    hop_latency: float = 1
    queuing_delay: float = 0
    channel_width: int = 32
    """Bits."""
    broadcast: bool = False
    reduction: bool = False


@dataclass(frozen=True)
class Level:
    """One node of the hierarchy."""

    name: str
    kind: Memory | Unit
    parent: str | None
    instances: int
    """Instances below one instance of the parent."""
    total_instances: int
    link: Network | None = None
    """The network among the instances, if the level has one."""

    @property
    def memory(self) -> Memory:
        """The memory of a memory level; raises `CostError` on a unit."""
        if isinstance(self.kind, Unit):
            raise CostError(
                f"level {self.name} is a compute unit where a memory is needed"
            )
        return self.kind

    @property
    def unit(self) -> Unit:
        """The unit of a compute level; raises `CostError` on a memory."""
        if isinstance(self.kind, Memory):
            raise CostError(
                f"level {self.name} is a memory where a compute unit is needed"
            )
        return self.kind

    @property
    def is_unit(self) -> bool:
        """Whether the level computes."""
        return isinstance(self.kind, Unit)


@dataclass(frozen=True)
class Hardware:
    """
    A machine: levels in exploration order, outermost first, and the networks that join
    them.
    """

    levels: tuple[Level, ...]
    networks: Mapping[tuple[str, str], Network]
    """By (parent, child)."""

    @cached_property
    def by_name(self) -> Mapping[str, Level]:
        """The levels by name."""
        return {level.name: level for level in self.levels}

    @cached_property
    def rank(self) -> Mapping[str, int]:
        """The position of each level in exploration order."""
        return {level.name: i for i, level in enumerate(self.levels)}

    def level(self, name: str) -> Level:
        """The level of that name; raises `CostError` if there is none."""
        if (found := self.by_name.get(name)) is None:
            names = ", ".join(level.name for level in self.levels)
            raise CostError(f"the machine has no level {name!r}; it has {names}")
        return found

    def instances(self, names: Iterable[str]) -> int:
        """The product of the instances of the levels, each below one parent."""
        return prod(self.level(name).instances for name in names)

    def network(self, source: str, destination: str) -> Network:
        """
        The network from a level to one of its children; raises `CostError` if there is
        none.
        """
        if (found := self.networks.get((source, destination))) is None:
            raise CostError(
                f"no link joins level {source} to {destination}; route the tensor "
                "through the levels between"
            )
        return found
