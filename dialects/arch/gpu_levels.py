"""The memory levels of a GPU, by their purpose."""

from __future__ import annotations

from dataclasses import dataclass

from comet.dialects.arch import ArchError, SystemOp


@dataclass(frozen=True)
class GpuLevels:
    """The names of the levels that tile trees on a GPU use."""

    memory: str
    """Device memory: inputs and results of kernels."""
    shared: str
    """Shared memory: operands of contractions."""
    registers: str
    """Registers: all computed values."""


def gpu_levels(system: SystemOp) -> GpuLevels:
    """
    Return the levels of a GPU: the outermost and the two innermost of `system`.

    Raises ArchError if the system has fewer than three levels.
    """
    names = [level.level_name for level in system.levels]
    if len(names) < 3:
        raise ArchError(
            f"hardware @{system.system_name} has levels {', '.join(names)}; a GPU has "
            "device memory, shared memory and registers"
        )
    return GpuLevels(names[0], names[-2], names[-1])
