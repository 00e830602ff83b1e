"""All ranks in one launch: as on one GPU, interpreted; and what a GPU is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch
from covering import EVERY_CASE, exhaustive, one_of
from gpu_ranks import H200X8, SHARED_TEXTS
from interpreting import reports
from torch_python import run_python
from triton_modules import emitted

from comet.runtime import shim
from comet.runtime.coresidency import waits_for_itself
from comet.runtime.gpu import COOPERATIVE, Gpu
from comet.runtime.program import load_module
from comet.runtime.ranks import KernelCall, SymmetryError
from comet.runtime.request import Request
from comet.runtime.virtual import Device, VirtualRanks, merged

PATTERNS = {"ag_gemm": ("bsp", "wait", "pull", "push", "fused")}
IN_PLACE = "pull inputs=symmetric"
SOME = ("bsp", "fused")
"""Of the other ops only these, since their kernels differ most."""
SIZES = {"M": 5, "N": 7, "K": 6}
DECODE = """
func.func @f(%q: tensor<2x1x3x5xf32>,
    %k: tensor<2x1x6x5xf32> {collective.shard = {S = ["rank"]}},
    %v: tensor<2x1x6x4xf32> {collective.shard = {S = ["rank"]}},
    %lens: tensor<2xi32>) -> tensor<2x1x3x4xf32> {
  %o = compound.flash_decode %q, %k, %v, %lens {collective.shard = {S = ["rank"]}}
    : (tensor<2x1x3x5xf32>, tensor<2x1x6x5xf32>, tensor<2x1x6x4xf32>, tensor<2xi32>)
    -> tensor<2x1x3x4xf32>
  func.return %o : tensor<2x1x3x4xf32>
}
"""
TEXTS = {
    "flash_decode": DECODE,
    **{
        name: SHARED_TEXTS[name].format(**SIZES)
        for name in ("ag_gemm", "gemm_all_reduce", "ring_attention", "expert_gemm")
    },
}


def module_text(name: str, pattern: str, ranks: int = 2) -> str:
    options = f"ranks={ranks} pattern={pattern}"
    return emitted(TEXTS[name], f"{H200X8},triton-distributed{{{options}}}")


@one_of(4)
@pytest.mark.parametrize("name", TEXTS)
def test_one_launch_for_all_ranks_is_right(name: str, tmp_path: Path) -> None:
    requests: list[Request] = []
    index = [*TEXTS].index(name) % 2
    some = SOME if EVERY_CASE else SOME[index : index + 1]
    for seed, pattern in enumerate(PATTERNS.get(name, some)):
        path = tmp_path / f"{pattern}.py"
        path.write_text(module_text(name, pattern))
        requests.append(Request(str(path), "virtual", seed, epochs=2))
    found = reports(requests)
    assert all(report["ok"] for report in found), found
    assert len(found) == len(requests)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Emit AG+GEMM for three ranks, by pattern."""
    folder = tmp_path_factory.mktemp("modules")
    patterns = ("push", "fused", IN_PLACE)
    paths = {pattern: folder / f"{pattern}.py" for pattern in patterns}
    for pattern, path in paths.items():
        path.write_text(module_text("ag_gemm", pattern, ranks=3))
    return paths


@exhaustive
def test_replays_count_their_epochs(modules: Mapping[str, Path]) -> None:
    """And what a launch reads where the caller has written it is that of its epoch."""
    paths = [str(modules[pattern]) for pattern in ("push", IN_PLACE)]
    asked = [Request(path, "virtual", epochs=6, graph=True) for path in paths]
    found = reports(asked)
    assert [(report["ok"], report["replays"]) for report in found] == [(True, 5)] * 2


def test_replays_with_an_epoch_of_the_host_are_wrong(
    modules: Mapping[str, Path], tmp_path: Path
) -> None:
    """A number that a launch is given is the same in every replay."""
    path = tmp_path / "counted.py"
    text = modules["fused"].read_text()
    assert "next_epoch(counters_ptr)" in text
    path.write_text(text.replace("next_epoch(counters_ptr)", "WORLD // WORLD"))
    (report,) = reports([Request(str(path), "virtual", epochs=3, graph=True)])
    assert report["ok"] is False


def test_no_program_waits_for_one_that_starts_later(
    modules: Mapping[str, Path],
) -> None:
    """So not all programs have to run at the same time."""
    paths = map(str, modules.values())
    requests = [Request(path, "virtual", epochs=2, resident=1) for path in paths]
    assert [report["ok"] for report in reports(requests)] == [True] * 3


def test_programs_in_the_wrong_order_are_a_deadlock(
    modules: Mapping[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "backwards.py"
    text, line = (
        modules["fused"].read_text(),
        "rank, pid = rank_and_program_id(rank, PROGRAMS, 1)\n",
    )
    assert line in text
    path.write_text(text.replace(line, f"{line}    pid = PROGRAMS - 1 - pid\n"))
    (report,) = reports([Request(str(path), "virtual", epochs=1, resident=1)])
    assert report["ok"] is False
    assert "DeadlockError: deadlock" in str(report["failure"])


def test_programs_that_are_waited_for_have_to_come_first(
    modules: Mapping[str, Path], tmp_path: Path
) -> None:
    path, text = tmp_path / "by_rank.py", modules["fused"].read_text()
    assert "(rank, PROGRAMS, 1)" in text
    path.write_text(text.replace("(rank, PROGRAMS, 1)", "(rank, PROGRAMS, 0)"))
    (report,) = reports([Request(str(path), "virtual", epochs=1, resident=1)])
    assert report["ok"] is False
    assert "DeadlockError: deadlock" in str(report["failure"])


@pytest.mark.parametrize(
    ("first", "order"),
    [
        (None, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]),
        (1, [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (1, 2)]),
        (0, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]),
    ],
)
def test_all_programs_but_the_first_come_rank_by_rank(
    first: int | None, order: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that those which run at the same time share operands in L2."""

    class Launch:
        """Two ranks with three programs each, of which one starts after the other."""

        started = iter(range(6))

        def program_id(self, axis: int) -> int:
            return next(self.started)

        def num_programs(self, axis: int) -> int:
            return 6

    monkeypatch.setattr(shim, "tl", Launch())
    place: Callable[..., tuple[int, int]] = vars(shim)["rank_and_program_id"].fn
    assert [place(9, 3, first) for _ in order] == order


def test_a_program_that_takes_the_tensors_of_rank_0_is_wrong(
    modules: Mapping[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "first.py"
    text = modules["push"].read_text()
    line = "    a_ptr = symmetric_address(a_ptr, rank, heap_bases, PROGRAMS)\n"
    assert line in text
    path.write_text(text.replace(line, ""))
    (report,) = reports([Request(str(path), "virtual", epochs=1)])
    assert report["ok"] is False


@dataclass
class Recorder:
    """A kernel that notes what it is launched with."""

    __name__ = "noted"
    error: str | None = None
    fn: object = None
    seen: list[tuple[tuple[int, ...], dict[str, object]]] = field(
        default_factory=list[tuple[tuple[int, ...], dict[str, object]]]
    )

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., object]:
        """Return what notes a launch on this grid."""

        def start(*arguments: object, **keywords: object) -> None:
            self.seen.append((grid, keywords))
            if self.error is not None and "launch_cooperative_grid" in keywords:
                raise RuntimeError(self.error)

        return start


HEAPS = torch.zeros(2, 1024)
BASES = [heap.data_ptr() for heap in HEAPS]


def launches(**keywords: object) -> list[KernelCall]:
    """Return what two ranks launch."""
    kernel = Recorder()
    return [
        KernelCall(kernel, (3,), (heap[16:], rank, HEAPS), {"PROGRAMS": 3, **keywords})
        for rank, heap in enumerate(HEAPS)
    ]


def test_one_launch_stands_for_those_of_all_ranks() -> None:
    first, second = launches(M=4)
    whole = merged([first, second], BASES)
    assert whole.grid == (6,)
    assert whole.arguments is first.arguments
    assert whole.keywords == {"PROGRAMS": 3, "M": 4}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": (4,)}, "rank 1 launches noted unlike rank 0"),
        ({"keywords": {"PROGRAMS": 4}}, "rank 1 launches noted unlike rank 0"),
        ({"arguments": (HEAPS[1][32:], 1, HEAPS)}, "argument 0 of noted is not the"),
        ({"arguments": (torch.zeros(9), 1, HEAPS)}, "argument 0 of noted is not the"),
        ({"arguments": (HEAPS[1][16:], 7, HEAPS)}, "argument 1 of noted is not the"),
        ({"arguments": (HEAPS[1][16:], 1, 5)}, "argument 2 of noted is not the same"),
    ],
)
def test_ranks_that_launch_other_things_are_refused(
    change: dict[str, object], message: str
) -> None:
    first, second = launches()
    other = {
        "kernel": second.kernel,
        "grid": second.grid,
        "arguments": second.arguments,
        "keywords": second.keywords,
    }
    with pytest.raises(SymmetryError, match=message):
        merged([first, replace(second, **(other | change))], BASES)


def test_a_kernel_that_does_not_know_its_rank_is_refused() -> None:
    with pytest.raises(ValueError, match=r"its grid \(3,\) is not PROGRAMS"):
        merged(launches(PROGRAMS=0), BASES)


def test_a_kernel_without_heaps_is_launched_for_each_rank() -> None:
    ranks = VirtualRanks(2, 4096, Device())
    calls = [replace(call, arguments=call.arguments[:2]) for call in launches()]
    for rank, call in zip(ranks.ranks, calls, strict=True):
        rank.launch_together(call)
    assert ranks.merged_launches() == [tuple(calls)]


def test_ranks_launch_equally_often() -> None:
    ranks = VirtualRanks(2, 4096, Device())
    ranks.ranks[1].launch_together(launches()[1])
    with pytest.raises(SymmetryError, match="different numbers of kernels"):
        ranks.merged_launches()


def test_ranks_allocate_the_same() -> None:
    ranks = VirtualRanks(2, 4096, Device())
    ranks.ranks[1].heap.zeros((3,), torch.int32, "flags")
    with pytest.raises(SymmetryError, match="rank 0 allocated 0 tensors, rank 1 1"):
        ranks.merged_launches()


def test_nobody_reads_what_is_not_launched_yet() -> None:
    rank = VirtualRanks(2, 4096, Device()).ranks[0]
    tensor = rank.zeros((3,), torch.float32)
    rank.launch_together(launches()[0])
    with pytest.raises(ValueError, match="before all ranks have launched"):
        rank.read(tensor)
    with pytest.raises(ValueError, match="before all ranks have launched"):
        rank.write(tensor, tensor)


def kernels_of(path: Path) -> list[object]:
    """Return the kernels of a module, which no GPU has to run."""
    members = vars(load_module(str(path))).items()
    return [value for name, value in members if name.endswith("_kernel")]


def test_who_waits_for_programs_of_the_same_launch_is_known(
    modules: Mapping[str, Path],
) -> None:
    assert list(map(waits_for_itself, kernels_of(modules["push"]))) == [False, False]
    assert list(map(waits_for_itself, kernels_of(modules["fused"]))) == [True]


@pytest.mark.parametrize(
    ("pattern", "error", "expected"),
    [
        ("push", None, [False, False]),
        ("fused", None, [True, True]),
        ("fused", "too many blocks in cooperative launch", [True, False, False]),
    ],
)
def test_programs_that_wait_for_each_other_run_together_where_they_fit(
    modules: Mapping[str, Path],
    pattern: str,
    error: str | None,
    expected: list[bool],
) -> None:
    (*_, kernel) = kernels_of(modules[pattern])
    recorder = Recorder(error, getattr(kernel, "fn", None))
    gpu = Gpu()
    for _ in range(2):
        gpu.launch(KernelCall(recorder, (6,), (), {}))
    assert recorder.seen == [
        ((6,), COOPERATIVE if together else {}) for together in expected
    ]
    assert len(gpu.in_order) == (error is not None)


def test_other_errors_of_a_launch_are_errors(modules: Mapping[str, Path]) -> None:
    (kernel,) = kernels_of(modules["fused"])
    recorder = Recorder("out of memory", getattr(kernel, "fn", None))
    with pytest.raises(RuntimeError, match="out of memory"):
        Gpu().launch(KernelCall(recorder, (6,), (), {}))


KEPT = """
import torch
from comet.runtime.virtual import VirtualRanks
from comet.runtime.virtual_interpreted import on_device

def body(device):
    (rank, _) = VirtualRanks(2, 1 << 12, device).ranks
    place = rank.heap.zeros((8,), torch.float32, "row").data_ptr()
    del rank, _
    owner = device._engine.memory.find(place).owner
    return owner.data_ptr() <= place < owner.data_ptr() + owner.nbytes()

print(on_device(body))
"""


def test_memory_that_is_known_is_given_to_nobody_else():
    """Else what lies there later would be taken for what was there before."""
    done = run_python(["-c", KEPT], {"TRITON_INTERPRET": "1"})
    assert (done.stdout, done.stderr) == ("True\n", "")
