"""
The links between the GPUs of a node, and the time that kernels take to use them.

For loads and stores of a peer's memory; `algorithms.py` has whole collectives. Times
are seconds, rates bytes per second; sizes may be numpy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from comet.cost.collectives.algorithms import Fabric, switch
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import KernelTime, Waiting
from comet.cost.gpu.work import KernelWork
from comet.cost.reals import Real


@dataclass(frozen=True)
class Interconnect:
    """The links of one GPU to the other ranks of its node."""

    ranks: int
    bandwidth: float
    """The rate at which one GPU sends, and receives, over all its links in total."""
    links: int
    """Links with an equal rate, one per peer; 1 for a switch, with the whole rate."""
    latency: float
    """From a store until it is in a peer's memory."""
    load_latency: float
    """From a load of a peer's memory to its use."""
    signal: float
    """From setting a flag at a peer until the peer sees it."""
    barrier: float
    """A barrier of ranks that all arrive at the same time."""
    caches: int
    """Caches of a GPU, each of which fetches a peer's bytes for itself."""
    flag_bytes: int
    """The bytes on the links to set a flag."""

    def rate(self, peers: int) -> float:
        """Bytes per second to or from `peers` peers at the same time."""
        return self.bandwidth * min(max(peers, 1), self.links) / self.links

    @property
    def peers(self) -> int:
        """The number of other ranks."""
        return self.ranks - 1

    @property
    def fabric(self) -> Fabric:
        """The links as the formulas of collectives take them."""
        return switch(self.ranks, self.latency, self.rate(self.peers))


def send_time(message: Real, net: Interconnect) -> Real:
    """Return the seconds to send one message to every peer, over all links."""
    return net.peers * message / net.rate(net.peers)


def remote_traffic(message: Real, again: Real, waves: Real, net: Interconnect) -> Real:
    """
    Return the bytes on the links if `again` programs load each peer's message.

    Programs of one wave that share a cache fetch the bytes once; no byte stays cached
    after its wave.
    """
    return net.peers * message * np.minimum(again, waves * net.caches)


def source_waiting(
    work: KernelWork, device: Device, net: Interconnect, *, remote: bool
) -> Waiting:
    """
    Return the waiting for loads in a loop that visits one source after another.

    The software pipeline fills again for each source. With `remote`, loads of the
    shards of peers have a longer latency than those of the own shard.
    """
    away = net.load_latency if remote else device.times.load_latency
    latencies = device.times.load_latency + net.peers * away
    later = np.maximum(work.loops.rounds / net.ranks, 1) - 1
    return Waiting(latencies, latencies * later)


def body_time(time: KernelTime, link: Real = 0.0) -> Real:
    """
    Return the seconds of a kernel without its launch and exchanges.

    They are at least `link`, the time of its links.
    """
    seconds = np.maximum(time.body.seconds, link)
    return np.where(np.greater(time.fits, 0), seconds, np.inf)
