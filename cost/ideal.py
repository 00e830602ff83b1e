"""
Perfect overlap: the yardstick against Timeloop and AccelForge, and a lower bound.

Every memory moves all bytes of an operation at its bandwidth, every unit works without
fill, drain or network, and all of them at the same time: an operation takes as long as
its slowest component. Operations that different children of the root run follow each
other; inside one child all overlap only as far as bindings let them.
"""

from __future__ import annotations
