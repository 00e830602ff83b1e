"""Emitted kernels of several ranks, compiled for GPUs that are not there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from covering import EVERY_CASE, some
from ladder_programs import ag_gemm, resized
from triton_modules import ROOT, compile_files, emitted, hardware, write_modules

from comet.runtime import shim
from comet.runtime.assembly import Code, faults, slow_paths

SAMPLES = ROOT / "samples"
HARDWARE = {"sm_90": "h200x8.yaml", "gfx942": "mi300x8.yaml"}
NOT_AHEAD = "a loop over products waits for its loads"
NO_BARRIER = "a flag is set without a barrier before it"
WEAK = "an atomic is {} at scope {}: other ranks need not see"
KEPT = "a store to {}_recv_ptr, which a flag publishes, is not written through"
ON_THEIR_WAY = "a flag is set while stores of other waves may be on their way"

Reports = Sequence[Mapping[str, object]]
"""What became of the kernels of one module."""
Compiled = Mapping[tuple[str, str], Reports]
"""The same for all modules, by name and target."""

SAMPLES_COMPILED = {
    "gemm_all_reduce": "fused",
    "flash_decode": "pull",
    "expert_gemm": "push",
    "ag_gemm": "pull inputs=symmetric",
}
"""Samples, one pattern of each; all of them would take minutes."""
PRODUCTS = ("paper", "several_writers", "buffer_stores")
"""All-gathers and products whose loop over K takes several turns."""
TARGETS_OF = {
    name: [
        target
        for place, target in enumerate(HARDWARE)
        if EVERY_CASE or index % len(HARDWARE) == place
    ]
    for index, name in enumerate(SAMPLES_COMPILED)
} | {name: [*HARDWARE] for name in (*PRODUCTS, "two_results")}
"""The targets that each module without a fault is compiled for."""


def module(text: str, target: str, ranks: int, pattern: str) -> str:
    """Emit a module for the system with GPUs of a target."""
    system = hardware(HARDWARE[target])
    return emitted(text, f"{system},triton-distributed{{{ranks=} {pattern=!s}}}")


def two_results(target: str) -> str:
    """Emit a kernel whose last store before a flag is not what the flag publishes."""
    return emitted(TWO_RESULTS, f"{hardware(HARDWARE[target])},{AT_THE_END}")


def complaints(reports: Reports, kind: str) -> list[str]:
    """Return the faults, or the slow paths, of all kernels."""
    return [str(text) for report in reports for text in elements(report[kind])]


def elements(value: object) -> list[object]:
    """Return a list that came as JSON."""
    assert isinstance(value, list)
    return list(cast("list[object]", value))


# Without what keeps them right or fast, kernels are found out.

ONE_WRITER = (SAMPLES / "ag_gemm.mlir").read_text()
"""With `WHOLE_ROWS` each flag is set by one program, with `signal_all`."""
WHOLE_ROWS = 'push blocks="K=1"'
"""What is sent is cut into blocks of rows only."""
SEVERAL_WRITERS = resized("ag_gemm", {64: 16, 128: 2048, 96: 64})
"""Programs add to flags, with `signal_add_all`, and the loop over K takes turns."""
TWO_RESULTS = """
!a = tensor<32x4xf16, #compound.dims<M, K>>
!b = tensor<4x16xf16, #compound.dims<K, N>>
!c = tensor<32x16xf32, #compound.dims<M, N>>
!x = tensor<3x5xf32, #compound.dims<P, Q>>
func.func @main(%a: !a, %b: !b, %x: !x) -> (!x, !c) {
  %c = compound.contract %a, %b : !a, !b -> !c
  %y = compound.map tanh %x : !x -> !x
  func.return %y, %c : !x, !c
}
"""
"""
With `AT_THE_END` a kernel pushes %c, and stores %y, its rank's own, before the flag.
"""
AT_THE_END = (
    "select-ranks{ranks=2},decompose,distribute{dim=K axes=rank},insert-collectives,"
    "lower-reductions,fuse{strategy=full},tile,outline-kernels,"
    "bsp-to-dataflow{pattern=fused},lower-channels,verify-sync,lower-to-triton"
)
"""Without `place-waits`, signals are the last ops of kernels."""

SIGNAL = "    tl.atomic_xchg(targets, value, mask=there, "
SIGNAL_ADD = "    tl.atomic_add(targets, value, mask=there, "
WAIT = "    while tl.atomic_add(flag, 0, "
WAIT_ALL = "    seen = tl.atomic_add(flags, 0, mask=there, "
BARRIER = "    tl.debug_barrier()\n"
TARGETS = "    targets, there = _on_all(flag, current, heap_bases, world)\n"
BUFFER_STORES = "\nfrom triton import knobs\n\nknobs.amd.use_buffer_ops = True\n"
"""Has AMD GPUs store by instructions that barriers do not wait for."""
STEP = "            offs_k = k + tl.arange(0, BLOCK_K)\n"


@dataclass(frozen=True)
class Mutation:
    """A safeguard that is taken away, and what is said of the kernels without it."""

    target: str
    old: str
    new: str
    complaint: str
    program: str = SEVERAL_WRITERS
    in_shim: bool = True
    """Whether it is in the device functions; else in the emitted module."""
    behind: str = ""
    """What is put after the module."""

    def write(self, name: str, folder: Path) -> Path:
        """Write the module without the safeguard to a folder; return its file."""
        source = self._source()
        device = Path(shim.__file__).read_text()
        changed = device if self.in_shim else source
        assert self.old in changed, f"{name}: the source has changed"
        changed = changed.replace(self.old, self.new)
        if self.in_shim:
            (folder / f"shim_{name}.py").write_text(changed)
            source = source.replace("comet.runtime.shim", f"shim_{name}")
        else:
            source = changed
        path = folder / f"{name}.py"
        path.write_text(source + self.behind)
        return path

    def _source(self) -> str:
        if self.program == TWO_RESULTS:
            return two_results(self.target)
        pattern = WHOLE_ROWS if self.program == ONE_WRITER else "push"
        return module(self.program, self.target, 2, pattern)


MUTATIONS: Mapping[str, Mutation] = {
    "signal_without_barrier": Mutation(
        "sm_90", BARRIER + SIGNAL, SIGNAL, NO_BARRIER, ONE_WRITER
    ),
    "signal_relaxed": Mutation(
        "sm_90",
        f'{SIGNAL}sem="release"',
        f'{SIGNAL}sem="relaxed"',
        WEAK.format("relaxed", "sys"),
        ONE_WRITER,
    ),
    "signal_in_one_gpu": Mutation(
        "gfx942",
        f'{SIGNAL}sem="release", scope="sys"',
        f'{SIGNAL}sem="release", scope="gpu"',
        WEAK.format("release", "gpu"),
        ONE_WRITER,
    ),
    "count_without_barrier": Mutation(
        "gfx942", BARRIER + SIGNAL_ADD, SIGNAL_ADD, NO_BARRIER
    ),
    "count_relaxed": Mutation(
        "gfx942",
        f'{SIGNAL_ADD}sem="release"',
        f'{SIGNAL_ADD}sem="relaxed"',
        WEAK.format("relaxed", "sys"),
    ),
    "count_in_one_gpu": Mutation(
        "sm_90",
        f'{SIGNAL_ADD}sem="release", scope="sys"',
        f'{SIGNAL_ADD}sem="release", scope="gpu"',
        WEAK.format("release", "gpu"),
    ),
    "wait_relaxed": Mutation(
        "sm_90",
        f'{WAIT}sem="acquire"',
        f'{WAIT}sem="relaxed"',
        WEAK.format("relaxed", "sys"),
    ),
    "wait_in_one_gpu": Mutation(
        "gfx942",
        f'{WAIT}sem="acquire", scope="sys"',
        f'{WAIT}sem="acquire", scope="gpu"',
        WEAK.format("acquire", "gpu"),
    ),
    "wait_all_relaxed": Mutation(
        "gfx942",
        f'{WAIT_ALL}sem="acquire"',
        f'{WAIT_ALL}sem="relaxed"',
        WEAK.format("relaxed", "sys"),
        ONE_WRITER,
    ),
    "wait_all_in_one_gpu": Mutation(
        "sm_90",
        f'{WAIT_ALL}sem="acquire", scope="sys"',
        f'{WAIT_ALL}sem="acquire", scope="gpu"',
        WEAK.format("acquire", "gpu"),
        ONE_WRITER,
    ),
    "pushes_kept_in_caches": Mutation(
        "gfx942",
        ", cache_modifier=WT",
        "",
        KEPT.format("c"),
        TWO_RESULTS,
        in_shim=False,
    ),
    "no_wait_for_other_waves": Mutation(
        "gfx942",
        f"    drain()\n{TARGETS}{BARRIER}{SIGNAL_ADD}",
        TARGETS + BARRIER + SIGNAL_ADD,
        ON_THEIR_WAY,
        behind=BUFFER_STORES,
    ),
    "one_stage": Mutation(
        "sm_90", "num_stages=4", "num_stages=1", NOT_AHEAD, in_shim=False
    ),
    "wait_in_the_loop": Mutation(
        "sm_90",
        STEP,
        f"            wait(a_flags_ptr + source, awaited)\n{STEP}",
        "a loop over products waits for flags",
        in_shim=False,
    ),
    "many_stages": Mutation(
        "sm_90",
        "num_stages=4",
        "num_stages=64",
        "a program takes 516096 bytes of shared memory, and sm_90 has 232448",
        in_shim=False,
    ),
}


def sources(target: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the modules that lack nothing."""
    for name, pattern in SAMPLES_COMPILED.items():
        if target in TARGETS_OF[name]:
            text = (SAMPLES / f"{name}.mlir").read_text()
            yield name, module(text, target, 4, pattern)
    yield "paper", module(ag_gemm(1024, 8).text, target, 8, "push")
    several = module(SEVERAL_WRITERS, target, 2, "push")
    yield "several_writers", several
    yield "buffer_stores", several + BUFFER_STORES
    yield "two_results", two_results(target)


TRIED = dict(some(MUTATIONS.items(), 2))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Compile all modules; return what became of each, by name and target."""
    found: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    for target in HARDWARE:
        folder = tmp_path_factory.mktemp(target)
        paths = write_modules(dict(sources(target)), folder)
        paths += [
            mutation.write(name, folder)
            for name, mutation in TRIED.items()
            if mutation.target == target
        ]
        for report in compile_files(paths, target, import_from=folder):
            name = Path(str(report["module"])).stem
            found.setdefault((name, target), []).append(report)
    return found


@pytest.mark.parametrize(
    ("name", "target"),
    [(name, target) for name, targets in TARGETS_OF.items() for target in targets],
)
def test_flags_are_set_and_read_in_order(name: str, target: str, compiled: Compiled):
    reports = compiled[name, target]
    assert complaints(reports, "faults") == []
    assert [report for report in reports if report["spills"]] == []
    assert {report["target"] for report in reports} == {target}


@pytest.mark.parametrize("target", HARDWARE)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_pipelined(name: str, target: str, compiled: Compiled):
    """Flags are read outside the loop over K, so that its loads run ahead."""
    reports = compiled[name, target]
    assert complaints(reports, "slow") == []
    assert [bool(report["matrix"]) for report in reports] == [False, True]


@pytest.mark.parametrize("name", TRIED)
def test_a_missing_safeguard_is_found(name: str, compiled: Compiled):
    mutation = MUTATIONS[name]
    reports = compiled[name, mutation.target]
    said = complaints(reports, "faults") + complaints(reports, "slow")
    assert [text for text in said if text.startswith(mutation.complaint)]


def test_an_order_that_the_compiler_drops_is_found():
    """Triton 3.6 gives compare-and-swap on AMD GPUs the scope of one GPU."""
    asked = "%0 = tt.atomic_cas acquire, sys, %1, %2, %3\n"
    made = "global_atomic_cmpswap v0, v1, v[2:3], s[4:5] sc0\nbuffer_inv sc1\n"
    code = Code("gfx942", ttir=asked, ttgir="", assembly=made, shared=0, spills=0)
    assert faults(code) == (
        "of 1 atomics that acquire at scope sys, the assembly has 0",
    )


@pytest.mark.parametrize("other", ["", "red.global.sys.relaxed.add.u32 [%rd3], %r1;\n"])
def test_two_flags_may_share_an_instruction_with_their_order(other: str):
    """LLVM joins the ends of branches that push keys and values of one shape."""
    flag = "%0 = tt.atomic_rmw add, release, sys, %1, %2\n"
    made = "bar.sync 0;\n@%p1 red.global.sys.release.add.u32 [%rd2], %r1;\n" + other
    asked = 2 * f"ttg.barrier\n{flag}"
    code = Code("sm_90", ttir=asked, ttgir="", assembly=made, shared=0, spills=0)
    lost = "of 2 atomics that release at scope sys, the assembly has 1"
    assert faults(code) == ((lost,) if other else ())


@pytest.mark.parametrize("carried", ["", ", !ttg.memdesc<64x32xf16, #shared>"])
def test_a_pipelined_loop_on_amd_carries_what_it_has_loaded(carried: str):
    """Beside its sum; copies that go on meanwhile are for NVIDIA's GPUs."""
    loop = (
        f"%0 = scf.for %k = %1 to %2 -> (tensor<16x32xf32, #mma>{carried}) : i32 {{\n"
        "  %b = tt.load %3 : tensor<64x32x!tt.ptr<f16>, #blocked>\n"
        "  %c = tt.dot %a, %b, %d : tensor<16x64xf16> * tensor<64x32xf16>\n"
        "}\n"
    )
    code = Code("gfx942", ttir="", ttgir=loop, assembly="", shared=0, spills=0)
    waits = "a loop over products waits for its loads; give it two stages"
    assert [path.startswith(waits) for path in slow_paths(code)] == (
        [] if carried else [True]
    )
