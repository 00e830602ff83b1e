"""
Compiles the kernels of emitted modules for GPUs that this machine need not have.

`comet-run MODULE.py --compile` does it for users. The process must not interpret
(TRITON_INTERPRET unset or 0).
"""

# Triton has no type stubs, and many functions used here have no types at all.
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

import math
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from comet.runtime import ranks
from comet.runtime.assembly import (
    GPU_SCOPE,
    GPUS,
    SYSTEM,
    Code,
    faults,
    slow_paths,
)
from comet.runtime.check_ranks import IdleRank, local_shape
from comet.runtime.coresidency import DEVICES, has_groups
from comet.runtime.program import RankProgram, Tensor, load_module, program_of
from comet.runtime.virtual import ROOM, Device, VirtualRanks

TARGETS: Mapping[str, GPUTarget] = {
    "sm_90": GPUTarget("cuda", 90, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}

POINTERS = {
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.bool: "*i1",
    torch.int8: "*i8",
    torch.int32: "*i32",
    torch.int64: "*i64",
}
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "launch_cooperative_grid")
"""The keywords of a launch that are no constexprs."""
WRITE_THROUGH = ".wt"
"""The cache modifier of stores that a signal publishes, on AMD GPUs."""

ALIGNED = ["tt.divisibility", 16]
SMALL = ["tt.pointer_range", 32]
"""The specialization of pointers: aligned; on AMD GPUs, small tensors."""

SMALL_BYTES = 2**31 - 1


@dataclass(frozen=True)
class RequestedLaunch:
    """One launch of a kernel, as the launch plan requests it."""

    kernel: JITFunction
    signature: Mapping[str, str]
    """Triton's type of every parameter."""
    small: frozenset[str]
    """Pointers to tensors of at most `SMALL_BYTES`."""
    constexprs: Mapping[str, int | str]
    options: Mapping[str, int]
    """Those of `OPTIONS` that the launch gives."""
    programs: int
    """Programs in the grid."""
    published: frozenset[str]
    """Pointers to the symmetric heap, which other ranks access."""


@dataclass(frozen=True)
class Compiled:
    """One kernel, compiled for one target."""

    kernel: str
    target: str
    registers: int
    """32-bit registers for each thread."""
    spills: int
    """Bytes of spilled registers per thread."""
    shared: int
    """Bytes of shared memory per program."""
    matrix: int
    """Matrix instructions in the assembly."""
    bulk: int
    """Copies by tensor descriptors in the assembly."""
    remote: int
    """Loads from other thread blocks of a cluster in the assembly."""
    programs: int
    """Programs in the grid of its launch."""
    resident: int
    """Programs that the whole GPU can run at the same time."""
    faults: tuple[str, ...]
    """Why it would be wrong on several ranks, or not run: one sentence each."""
    slow: tuple[str, ...]
    """The slow paths, one sentence each."""


class Elsewhere:
    """Replaces the driver of a GPU that is not there; kernels ask it for the target."""

    def __init__(self, target: GPUTarget):
        self._target = target

    def get_current_target(self) -> GPUTarget:
        """Return the GPU."""
        return self._target


class _Recorder:
    """Replaces a kernel: records its launches and executes nothing."""

    def __init__(self, kernel: JITFunction, launches: list[ranks.KernelCall]):
        self._kernel = kernel
        self._launches = launches

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def note(*arguments: object, **keywords: Any) -> None:
            launch = ranks.KernelCall(self._kernel, grid, arguments, keywords)
            self._launches.append(launch)

        return note


def _requested(launch: ranks.KernelCall, published: frozenset[str]) -> RequestedLaunch:
    """Return the compilation that a launch requests: signature, constants, options."""
    kernel: Any = launch.kernel
    keywords: Mapping[str, Any] = launch.keywords
    options = {name: keywords[name] for name in OPTIONS if name in keywords}
    constexprs = {n: value for n, value in keywords.items() if n not in options}
    arguments = dict(zip(kernel.arg_names, launch.arguments, strict=False))
    tensors = {n: v for n, v in arguments.items() if isinstance(v, torch.Tensor)}
    types = {name: POINTERS[tensor.dtype] for name, tensor in tensors.items()}
    signature = dict.fromkeys(arguments, "i32") | types
    signature |= dict.fromkeys(constexprs, "constexpr")
    small = frozenset(n for n, t in tensors.items() if t.nbytes <= SMALL_BYTES)
    programs = math.prod(launch.grid)
    return RequestedLaunch(
        kernel, signature, small, constexprs, options, programs, published
    )


def recorded_launches(path: str, merge_ranks: bool = False) -> list[RequestedLaunch]:
    """Return the compilations that the launches of a module request."""
    published = _published(path)
    launches = planned_launches(path, merge_ranks)
    return [_requested(each, published[_name_of(each)]) for each in launches]


def _published(path: str) -> Mapping[str, frozenset[str]]:
    """Return the parameters of each kernel that point to the symmetric heap."""
    program = program_of(load_module(path), path)
    found = defaultdict[str, frozenset[str]](frozenset)
    if isinstance(program, RankProgram):
        rank = _planned(program)
        for launch in rank.queued:
            kernel: Any = launch.kernel
            found[_name_of(launch)] |= {
                name
                for name, value in zip(kernel.arg_names, launch.arguments, strict=False)
                if isinstance(value, torch.Tensor) and rank.heap.holds(value)
            }
    return found


def _name_of(launch: ranks.KernelCall) -> str:
    kernel: Any = launch.kernel
    return kernel.__name__


def _planned(program: RankProgram) -> IdleRank:
    """Run the launch plan of one rank on tensors without data; return the rank."""
    rank = IdleRank(program.ranks)
    program.plan(rank)(*_without_data(program.arguments, program.ranks))
    return rank


def planned_launches(path: str, merge_ranks: bool) -> list[ranks.KernelCall]:
    """
    Run the launch plan of a module on tensors without data; return its launches.

    They are those of one rank, or with `merge_ranks` those that have the programs of
    all ranks, on one GPU.
    """
    module = load_module(path)
    program = program_of(module, path)
    if isinstance(program, RankProgram) and merge_ranks:
        return _of_all_ranks(program)
    if isinstance(program, RankProgram):
        return _planned(program).queued
    launches: list[ranks.KernelCall] = []
    for name, value in vars(module).items():
        if isinstance(value, JITFunction) and value.__module__ == module.__name__:
            setattr(module, name, _Recorder(value, launches))
    program.launch(*_without_data(program.inputs, 1))
    return launches


def _of_all_ranks(program: RankProgram) -> list[ranks.KernelCall]:
    """Return launches that work for all ranks, or as one of them launches them."""
    group = VirtualRanks(program.ranks, ROOM, Device())
    for rank in group.ranks:
        program.plan(rank)(*_without_data(program.arguments, program.ranks))
    return [calls[0] for calls in group.merged_launches()]


def _without_data(inputs: Sequence[Tensor], world: int) -> list[torch.Tensor]:
    """Return one rank's arguments, without data."""
    return [
        torch.empty(
            local_shape(tensor, world),
            dtype=getattr(torch, tensor.dtype),
            device="meta",
        )
        for tensor in inputs
    ]


def source_of(launch: RequestedLaunch, target: str) -> Any:
    """Return what Triton compiles for a launch; its target becomes the active one."""
    positions = {name: index for index, name in enumerate(launch.kernel.arg_names)}
    gpu = TARGETS[target]
    amd = gpu.backend == "hip"
    cache = WRITE_THROUGH if amd else ""
    constexprs = {
        (positions[name],): cache if isinstance(value, str) else value
        for name, value in launch.constexprs.items()
    }
    facts = {
        (positions[name],): [ALIGNED, *[SMALL] * (amd and name in launch.small)]
        for name, type in launch.signature.items()
        if type.startswith("*")
    }
    source = ASTSource(
        launch.kernel,
        signature=dict(launch.signature),
        constexprs=constexprs,
        attrs=facts,
    )
    elsewhere: Any = Elsewhere(gpu)
    driver.set_active(elsewhere)
    return source


def compile_launch(launch: RequestedLaunch, target: str) -> Any:
    """Compile the kernel of a launch for a target."""
    source, gpu = source_of(launch, target), TARGETS[target]
    return triton.compile(source, target=gpu, options=dict(launch.options))


def compiled(
    launch: RequestedLaunch, target: str, scope: str = SYSTEM, *others: str
) -> Compiled:
    """
    Compile the kernel of a launch and read its usage off the assembly.

    `scope` is that of its flags, `others` are those of other flags. Raises `ValueError`
    for clusters on a target without them.
    """
    if launch.options.get("num_ctas", 1) > 1 and GPUS[target].remote is None:
        raise ValueError(
            f"programs of {launch.kernel.__name__} are clusters of thread blocks, and "
            f"{target} has none; compile it for sm_90"
        )
    result = compile_launch(launch, target)
    read = _cuda_usage if target.startswith("sm_") else _hip_usage
    registers, spills = read(result.asm)
    shared = result.metadata.shared
    code = Code(
        target,
        ttir=result.asm["ttir"],
        ttgir=result.asm["ttgir"],
        assembly=result.asm[GPUS[target].assembly],
        shared=shared,
        spills=spills,
        scope=scope,
        others=others,
        published=launch.published,
    )
    resident = DEVICES[target].resident(launch.options["num_warps"], registers, shared)
    resident //= launch.options.get("num_ctas", 1)
    return Compiled(
        launch.kernel.__name__,
        target,
        registers,
        spills,
        shared,
        code.matrix_instructions(),
        code.bulk_copies(),
        code.remote_loads(),
        launch.programs,
        resident,
        (*faults(code), *_too_many(launch, resident, target)),
        slow_paths(code),
    )


def _too_many(launch: RequestedLaunch, resident: int, target: str) -> tuple[str, ...]:
    """Return why a launch whose programs all run at the same time is an error."""
    cooperative = launch.options.get("launch_cooperative_grid", False)
    if not cooperative or launch.programs <= resident:
        return ()
    return (
        f"its {launch.programs} programs wait for each other, and {target} runs "
        f"{resident} of them at the same time: the launch would be an error; take "
        "smaller tiles, fewer groups, or ctas=1",
    )


def _cuda_usage(asm: Mapping[str, Any]) -> tuple[int, int]:
    """Return registers per thread and stack bytes (spills) of the binary."""
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "kernel.cubin"
        binary.write_bytes(asm["cubin"])
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(binary)]
        text = subprocess.run(command, capture_output=True, text=True, check=True)
    used = re.search(r"REG:(\d+) STACK:(\d+)", text.stdout)
    assert used is not None
    return int(used.group(1)), int(used.group(2))


def _hip_usage(asm: Mapping[str, Any]) -> tuple[int, int]:
    """Return vector registers and scratch bytes, from the assembly's metadata."""
    text = asm["amdgcn"]

    def number(key: str) -> int:
        found = re.search(rf"\.{key}:\s+(\d+)", text)
        return int(found.group(1)) if found else 0

    return number("vgpr_count"), number("private_segment_fixed_size")


def all_compiled(
    path: str, targets: Iterable[str], *, merge_ranks: bool = False
) -> Iterator[Compiled]:
    """
    Compile every different launch of a module for each target.

    `merge_ranks`: see `planned_launches`.
    """
    done: list[RequestedLaunch] = []
    program = program_of(load_module(path), path)
    alone = isinstance(program, RankProgram) and program.ranks == 1
    for launch in recorded_launches(path, merge_ranks):
        if launch in done:
            continue
        done.append(launch)
        scopes = (GPU_SCOPE,) if alone else (SYSTEM,)
        if not alone and has_groups(launch.kernel):
            scopes = (SYSTEM, GPU_SCOPE)
        for target in targets:
            yield compiled(launch, target, *scopes)
