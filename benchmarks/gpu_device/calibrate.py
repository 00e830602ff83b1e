"""The rates of the machine at hand, each by the simplest kernel that reaches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Calibration:
    """What was measured, in the units of the hardware files."""

    name: str
    """Of the GPU or CPU."""
    date: str
    """Year, month and day."""
    torch: str
    triton: str
    tensor_tflops: Mapping[str, float]
    """Tflop/s of a large product, by element type: bf16, f16."""
    vector_tflops: float
    """Tflop/s of fused multiply-adds in f32, each counted as two."""
    exp_gops: float
    """1e9 exponentials a second in f32."""
    hbm_gb_per_s: float
    """1e9 bytes a second, read and written, of a copy far larger than the L2."""
    l2_gb_per_s: float
    """The same of a copy that stays in the L2."""
    launch_us: float
    """Microseconds from one launch to the next, of an empty kernel."""
    graph_launch_us: float
    """The same in a CUDA graph."""
    dry_run: bool
    """Whether it ran in the interpreter, so that no figure means anything."""

    def as_json(self) -> dict[str, object]:
        """Return the fields by name."""
        raise NotImplementedError

    @staticmethod
    def from_json(fields: Mapping[str, object]) -> Calibration:
        """Return what `as_json` was made of; `ValueError` where a field is missing."""
        raise NotImplementedError


def measure(dry_run: bool) -> Calibration:
    """Measure all rates; `dry_run`: at tiny sizes in Triton's interpreter."""
    raise NotImplementedError
