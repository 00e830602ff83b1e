"""
The energy of a mesh of routers, after Orion 2.0 (Kahng et al., DATE 2009) with the
COMET tool's constants.

One router has a 5 x 5 matrix crossbar, 3 virtual channels of 10 flits per port, 65 nm
devices at 0.9 V. Capacitances are farad, lengths centimetre; results are in the unit
the tool calls pJ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from comet.cost.reals import Real

VOLTS_SQUARED = 0.9**2
GATE, DRAIN, OVERLAP = 5.34e-16, 2.67e-16, 1.068e-16
FEATURE = 0.016
PITCH = 8e-5
WIRE = 4 * 2.67339e-13
RESISTANCE = 606.321
REPEATER = 8.1
STAGE = 5 / 16
DEPTH = 30
"""Flits buffered per port: 3 virtual channels of 10."""
LINK_STAGES, LINK_WIDTH = 2, 2.0

IN, OUT = 3 * GATE, 3 * DRAIN
"""Input and output capacitance of a plain gate."""
DRIVER_IN = 3 * (GATE + OVERLAP)
EVENT = VOLTS_SQUARED / (20 * RESISTANCE * (3 * DRAIN + 12 * GATE + 12 * OVERLAP))
"""
Volts squared times clock frequency: the power of one farad that switches every cycle.
"""
CROSSPOINT = 2 * PITCH


@dataclass(frozen=True, slots=True)
class RouterEvents:
    """The energy of each kind of event in one router."""

    link: float
    clock: float
    register: float
    queue: float
    switch: float
    arbitration: float
    output: float
    output_clock: float


def _clock(stages: float, bits: float) -> float:
    buffers = stages * (1 + STAGE * (1 + OUT / DRIVER_IN))
    return (
        buffers
        * (bits * CROSSPOINT * WIRE * (8 * PITCH / CROSSPOINT) + bits * DRIVER_IN)
        * EVENT
    )


def _register(stages: float, bits: float) -> float:
    data = 1.6 * (IN + OUT) + 2 * (2 / 3 * 0.8 * OUT)
    clock = 1.6 * (IN + OUT) + 2 * (2 / 3 * 0.8 * GATE)
    return (0.5 * data + clock) * stages * bits * EVENT


def _queue(width: int) -> float:
    """One flit into and out of a port's queue."""
    cell = 8 * FEATURE * GATE + 6 * PITCH * WIRE
    word_line = width * cell
    height, length = 8 * PITCH + DEPTH, 6 * width * PITCH
    precharge = (1 + STAGE * (1 + OUT / IN)) * (WIRE * height * IN)
    decode = (1 + STAGE * (1 + OUT / IN)) * word_line
    drive = 1.25 * (1 + OUT / IN)
    lines = drive * (WIRE * length + 3 * width * IN) + drive * (
        WIRE * length + 2 * width * IN
    )
    word = (lines + 2 * precharge + decode) * EVENT
    bit = DEPTH * (4 * FEATURE * DRAIN + 8 * PITCH * WIRE)
    read = bit * EVENT * width
    write = (0.5 * 2 * (OUT + IN) * VOLTS_SQUARED + bit * EVENT) * width
    return (word + read) + (word + write)


def _crossbar(width: int) -> tuple[float, float]:
    """One flit through the crossbar, and its control lines."""
    side = 5 * width * CROSSPOINT
    line = side * WIRE
    cross_in = tri_in = line / 16
    cross_out = 4 * cross_in * OUT / DRIVER_IN
    tri_out = 4 * tri_in * OUT / DRIVER_IN
    driver = STAGE * (1 + OUT / DRIVER_IN) * (0.5 * WIRE * side + tri_in)
    switched = (driver + line + tri_in + 5 * cross_in) + (
        line + tri_out + 5 * cross_out
    )
    control = width * STAGE * line + 2 * side * WIRE
    return 0.5 * switched * EVENT * width, (
        STAGE * (1 + OUT / DRIVER_IN) * control + control
    ) * EVENT


@lru_cache(maxsize=64)
def router_events(width: int) -> RouterEvents:
    """The energy of each event in a router whose channels carry `width` bits."""
    stage = REPEATER * (IN + OUT) + WIRE * LINK_WIDTH / LINK_STAGES
    link = 0.5 * stage * EVENT * LINK_STAGES
    switch, arbitration = _crossbar(width)
    return RouterEvents(
        link=link,
        clock=_clock(LINK_STAGES, LINK_WIDTH),
        register=_register(LINK_STAGES, LINK_WIDTH),
        queue=_queue(width),
        switch=switch,
        arbitration=arbitration,
        output=_register(1, width),
        output_clock=_clock(1, width),
    )


def mesh_energy(
    width: int, hops: Real, queuing_delay: float, bits: Real, edge: Real
) -> Real:
    """
    The pJ of `bits` bits over `hops` hops on an `edge` x `edge` mesh whose channels
    carry `width` bits.

    Hops, bits and edge may be arrays. A flit waits `queuing_delay` cycles per channel's
    worth of bits (T_enq of the COMET paper).
    """
    e = router_events(width)
    waits = bits * (queuing_delay / width)
    routers, links = edge**2, edge * (2 * edge - 2)
    out_clock = e.output_clock * hops * 2 * routers
    flit = (e.link + e.register) * links + (e.output + out_clock) * routers
    hop = 3 * (e.switch + e.arbitration) * routers
    still = e.clock * 2 * routers + out_clock + (flit + hop) * hops
    return still + (flit + (e.queue + e.arbitration) * routers) * waits
