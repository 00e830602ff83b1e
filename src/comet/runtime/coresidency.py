"""Which programs run at the same time, and which must."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType

SHIM = "comet.runtime.shim"
SIGNALS = {"signal", "signal_add", "signal_all", "signal_add_all", "signal_programs"}
WAITS = {"wait", "wait_all", "wait_programs"}
OF_GROUPS = {"signal_programs", "wait_programs"}
"""The functions by which programs of one GPU exchange."""


def waits_for_itself(kernel: object) -> bool:
    """
    Whether programs of a kernel may wait for others of the same launch.

    That is, whether it waits for flags and also sets some. To wait for flags of
    earlier launches, no other program of the launch has to run.
    """
    verbs = _verbs(kernel)
    return bool(verbs & WAITS) and bool(verbs & SIGNALS)


def has_groups(kernel: object) -> bool:
    """Whether programs of one GPU exchange in a kernel."""
    return bool(_verbs(kernel) & OF_GROUPS)


def _verbs(kernel: object) -> set[str]:
    """Return the names of the functions of the shim that a kernel may call."""
    functions = _functions(kernel, set())
    return {called.__name__ for called in functions if called.__module__ == SHIM}


def _functions(kernel: object, seen: set[FunctionType]) -> set[FunctionType]:
    """Return the Python functions that a kernel may call, itself included."""
    function = getattr(kernel, "fn", None)
    if isinstance(function, FunctionType) and function not in seen:
        seen.add(function)
        for name in function.__code__.co_names:
            _functions(function.__globals__.get(name), seen)
    return seen


@dataclass(frozen=True)
class Multiprocessor:
    """The resources of one multiprocessor or compute unit, shared by its programs."""

    count: int
    """Multiprocessors of the device."""
    threads: int
    """Threads per warp or wavefront."""
    registers: int
    """32-bit registers per partition, for the threads of all its warps."""
    partitions: int
    """Parts with their own warps and registers."""
    warps: int
    """Warps per partition at the same time."""
    granule: int
    """Registers per thread are allocated in multiples of this."""
    programs: int
    """Programs at the same time."""
    shared: int
    """Bytes of shared memory."""
    reserved: int = 0
    """Bytes of shared memory that the system takes for each program."""

    def programs_with(self, warps: int, registers: int, shared: int) -> int:
        """
        Return how many programs run at the same time; 0 if not even one does.

        `registers` are per thread, `shared` is in bytes per program.
        """
        allocated = max(1, -(-registers // self.granule)) * self.granule
        slots = min(self.warps, self.registers // (allocated * self.threads))
        fitting = slots * self.partitions // warps
        by_shared = self.shared // max(1, shared + self.reserved)
        return min(self.programs, fitting, by_shared)

    def resident(self, warps: int, registers: int, shared: int) -> int:
        """Return how many programs the whole device runs at the same time."""
        return self.count * self.programs_with(warps, registers, shared)


DEVICES = {
    # H100 and H200 (SXM): CUDA C++ programming guide, table of compute capability 9.0.
    "sm_90": Multiprocessor(
        count=132,
        threads=32,
        registers=16384,
        partitions=4,
        warps=16,
        granule=8,
        programs=32,
        shared=228 * 1024,
        reserved=1024,
    ),
    # MI300X: CDNA 3 instruction set guide; 512 vector registers for each of 64 lanes.
    "gfx942": Multiprocessor(
        count=304,
        threads=64,
        registers=512 * 64,
        partitions=4,
        warps=8,
        granule=8,
        programs=16,
        shared=64 * 1024,
    ),
}
"""By the name of the compile target."""
