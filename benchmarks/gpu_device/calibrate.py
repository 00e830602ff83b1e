"""
The rates of the machine at hand, each by the simplest kernel that reaches it.

Every rate is the amount of work over the median time of 20 launches, which follow each
other with a warm L2, as `timing.GpuClock` measures them.
"""

# Triton has no type stubs, and a kernel's parameters have no Python types.
# pyright: basic, reportMissingTypeStubs=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import date
from typing import Any

import torch
import triton

from gpu_device import kernels
from gpu_device.machine import describe
from gpu_device.timing import DRY, Clock, GpuClock, Rounds, WallClock, time_in_turns

ROUNDS = Rounds(5, 20)

TENSOR_TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
"""Element types of the products, by their names in hardware files."""

FLOAT = 4
"""Bytes of an f32."""


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
    """1e9 bytes a second from memory, by reads alone or by a copy in both ways."""
    l2_gb_per_s: float
    """The same of what stays in the L2."""
    launch_us: float
    """Microseconds from one launch to the next, of an empty kernel."""
    graph_launch_us: float
    """The same in a CUDA graph."""
    dry_run: bool
    """Whether it ran in the interpreter, so that no figure means anything."""
    exchange_us: float | None = None
    """Microseconds of an exchange between programs, if it was measured, too."""
    flag_latency_us: float | None = None
    """Microseconds of an atomic on a flag, or a read of it, if they were measured."""
    l2_same_gb_per_s: float | None = None
    """Like `l2_gb_per_s`, if all programs read the same at the same time."""

    def as_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    @staticmethod
    def from_json(given: Mapping[str, Any]) -> Calibration:
        """Return what `as_json` was made of; `ValueError` where a field is missing."""
        names = [field.name for field in fields(Calibration)]
        required = [f.name for f in fields(Calibration) if f.default is MISSING]
        missing = [name for name in required if name not in given]
        if missing:
            raise ValueError(f"a calibration without {', '.join(missing)}")
        return Calibration(**{name: given.get(name) for name in names})


@dataclass(frozen=True)
class Sizes:
    """How much work each kernel does."""

    extent: int
    """M, N and K of the product."""
    programs: int
    """Programs that fill the multiprocessors."""
    block: int
    """Elements of each of them."""
    multiply_adds: int
    """Turns of the loop of multiply-adds."""
    exponentials: int
    """Turns of the loop of exponentials."""
    hbm_programs: int
    """Programs of the large copy, each of one block of `hbm_block` elements."""
    hbm_block: int
    l2_block: int
    """Elements of each of the `programs` blocks of the small copy."""
    l2_turns: int
    launches: int
    """Empty kernels that are launched one after another."""


TINY = Sizes(32, 2, 32, 1, 1, 2, 64, 64, 2, 3)
"""What Triton's interpreter does in no time."""


@dataclass(frozen=True)
class Bench:
    """Where and how it is measured."""

    device: str
    clock: Clock
    launch_clock: Clock
    """One that hides nothing of what launches cost."""
    rounds: Rounds
    sizes: Sizes

    def seconds(self, work: Callable[[], object]) -> float:
        """Return the median time of the work, with a warm L2."""
        return self._median(work, self.clock)

    def launched(self, work: Callable[[], object]) -> float:
        """Return the median time of the work and of all that its launches cost."""
        return self._median(work, self.launch_clock)

    def _median(self, work: Callable[[], object], clock: Clock) -> float:
        timing = time_in_turns({"work": work}, clock, self.rounds, cold=False)
        return timing["work"].median

    def floats(self, count: int) -> torch.Tensor:
        """Return ones of f32."""
        return torch.ones(count, dtype=torch.float32, device=self.device)


def sizes_for(multiprocessors: int, l2_bytes: int) -> Sizes:
    """Return sizes that take about a millisecond each on a large GPU."""
    programs = 8 * multiprocessors
    block = 256
    while 2 * FLOAT * programs * (2 * block) <= l2_bytes // 2:
        block *= 2
    return Sizes(
        extent=8192,
        programs=programs,
        block=1024,
        multiply_adds=2000,
        exponentials=200,
        hbm_programs=2**16,
        hbm_block=4096,
        l2_block=block,
        l2_turns=100,
        launches=1000,
    )


def tensor_tflops(bench: Bench, dtype: torch.dtype) -> float:
    """
    Return the Tflop/s of a product of two square matrices by `torch.matmul`, cuBLAS.

    2 extent^3 operations; the operands are normal, as zeros would spare power and let
    the clock rise.
    """
    extent = bench.sizes.extent
    generator = torch.Generator(bench.device).manual_seed(0)
    a, b = (
        torch.randn(extent, extent, generator=generator, device=bench.device).to(dtype)
        for _ in range(2)
    )
    out = torch.empty_like(a)
    return 2e-12 * extent**3 / bench.seconds(lambda: torch.matmul(a, b, out=out))


def vector_tflops(bench: Bench) -> float:
    """
    Return the Tflop/s of multiply-adds in f32, each counted as two operations.

    8 programs of 4 warps on each multiprocessor; every thread has 8 independent chains,
    which cover the latency, and factors that are known only at run time.
    """
    sizes = bench.sizes
    out = bench.floats(sizes.programs * sizes.block)

    def work() -> None:
        kernels.multiply_add[(sizes.programs,)](
            out, 0.5, 1.0, sizes.multiply_adds, kernels.UNROLLED, sizes.block
        )

    done = len(out) * sizes.multiply_adds * kernels.UNROLLED
    return 2e-12 * done / bench.seconds(work)


def exp_gops(bench: Bench) -> float:
    """
    Return how many 1e9 exponentials a second `tl.exp` computes in f32.

    As `vector_tflops`, each exponential of the last one: the multiplication by log2(e)
    is part of it.
    """
    sizes = bench.sizes
    out = bench.floats(sizes.programs * sizes.block)

    def work() -> None:
        kernels.exponential[(sizes.programs,)](
            out, sizes.exponentials, kernels.UNROLLED, sizes.block
        )

    done = len(out) * sizes.exponentials * kernels.UNROLLED
    return 1e-9 * done / bench.seconds(work)


def hbm_gb_per_s(bench: Bench) -> float:
    """
    Return the 1e9 bytes a second of a copy of 1 GiB, or of reads of it if more.

    Source and target are each 20 times the L2 of an H200, so that next to nothing of
    the last launch is found there.
    """
    return _moved(bench, bench.sizes.hbm_programs, bench.sizes.hbm_block, 1)


def l2_gb_per_s(bench: Bench) -> float:
    """
    Return the 1e9 bytes a second of a copy inside the L2, or of reads if more.

    Source and target together take at most half of the L2. All programs run at the same
    time, and each takes another block in every turn; loads pass by the L1.
    """
    sizes = bench.sizes
    return _moved(bench, sizes.programs, sizes.l2_block, sizes.l2_turns)


def l2_same_gb_per_s(bench: Bench) -> float:
    """
    Return the 1e9 bytes a second that programs read from the L2 if all read the same.

    So do programs of attention that share keys and values: those of 64 rows loaded 4.7
    TB/s on an H200, and the operands of products came with 11.5.
    """
    sizes = bench.sizes
    programs, block, turns = sizes.programs, sizes.l2_block, sizes.l2_turns
    source, target = (bench.floats(programs * block) for _ in range(2))

    def reads() -> None:
        kernels.read[(programs,)](source, target, turns, 0, block)

    return 1e-9 * source.nbytes * turns / bench.seconds(reads)


def _moved(bench: Bench, programs: int, block: int, turns: int) -> float:
    source, target = (bench.floats(programs * block) for _ in range(2))

    def copies() -> None:
        kernels.copy[(programs,)](source, target, turns, block)

    def reads() -> None:
        kernels.read[(programs,)](source, target, turns, 1, block)

    seconds = min(bench.seconds(copies) / 2, bench.seconds(reads))
    return 1e-9 * source.nbytes * turns / seconds


def launch_us(bench: Bench) -> float:
    """
    Return the microseconds from one launch of an empty kernel to the next.

    1000 launches by Triton, one after another, between two events: the CPU is what
    takes this long.
    """
    return 1e6 * bench.launched(_launches(bench)) / bench.sizes.launches


def graph_launch_us(bench: Bench) -> float:
    """Return the microseconds that an empty kernel takes in a graph of 1000."""
    work = _launches(bench)
    work()
    return 1e6 * bench.seconds(bench.clock.captured(work)) / bench.sizes.launches


def _launches(bench: Bench) -> Callable[[], None]:
    def work() -> None:
        for _ in range(bench.sizes.launches):
            kernels.nothing[(1,)]()

    return work


def bench_of(dry_run: bool) -> Bench:
    """Return how to measure; `ValueError` where a GPU is asked for and not there."""
    if dry_run:
        return Bench("cpu", WallClock(), WallClock(), DRY, TINY)
    if not torch.cuda.is_available():
        raise ValueError("torch finds no GPU; use a dry run")
    properties = torch.cuda.get_device_properties()
    sizes = sizes_for(properties.multi_processor_count, properties.L2_cache_size)
    return Bench("cuda", GpuClock(), GpuClock(cover=0), ROUNDS, sizes)


def measure(dry_run: bool) -> Calibration:
    """
    Measure all rates; takes some seconds on a GPU.

    `dry_run`: at tiny sizes in Triton's interpreter, so TRITON_INTERPRET has to be set.
    Raises `ValueError` where a GPU is asked for and not there.
    """
    bench = bench_of(dry_run)
    return Calibration(
        name=str(describe()["name"]),
        date=date.today().isoformat(),
        torch=str(torch.__version__),
        triton=str(triton.__version__),
        tensor_tflops={
            name: tensor_tflops(bench, dtype) for name, dtype in TENSOR_TYPES.items()
        },
        vector_tflops=vector_tflops(bench),
        exp_gops=exp_gops(bench),
        hbm_gb_per_s=hbm_gb_per_s(bench),
        l2_gb_per_s=l2_gb_per_s(bench),
        launch_us=launch_us(bench),
        graph_launch_us=graph_launch_us(bench),
        dry_run=dry_run,
        l2_same_gb_per_s=l2_same_gb_per_s(bench),
    )
