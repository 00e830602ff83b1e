"""Models of torch that are spread over ranks become programs of these ranks."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from covering import EVERY_CASE, covering, exhaustive, one_of
from paths import ROOT, SUPPORT
from rank_runs import outcomes
from torch_python import run_python

import comet

SCRIPT = SUPPORT / "pytorch_ranks.py"
HARDWARE = "samples/hardware/h200x8.yaml"
KINDS = ("gated", "attention", "embedded", "block")
FEW = ["gated sequence", "embedded tensor", "block sequence"]
"""A block has attention as well; the first by tensors is along an axis of a mesh."""
MODELS = (
    [f"{kind} {way}" for kind, way in product(KINDS, ("tensor", "sequence"))]
    if EVERY_CASE
    else FEW
)
SMALL = [name for name in MODELS if not name.startswith("block")]
FUNCTIONS = re.findall(r'^ {4,8}"([^"]+)": \(', SCRIPT.read_text(), re.M)
ONE = (
    "; from_torch needs one program of all ranks: they may take equal parts of an axis "
    "by their number, and add to, multiply and compare with numbers that grow with it"
)
OPERANDS = f"other operands on other ranks{ONE}"
WAY_OUT = "; compute it outside of the model, or by ops that docs/pytorch.md lists"
LINE = re.compile(r"(, | \()\S+\.py:\d+\)?")
"""The line of a model in a message."""
PATTERNS = ("bsp", "wait", "push", "pull", "fused")
INTERPRETED = {"TRITON_INTERPRET": "1"}
LIMIT = 300
"""The most seconds of the script, whose processes end long before."""
NAME = re.compile(r"(\w+): tensor<(\S+)xf32, #compound.dims<([^>]*)>>")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Return what the script prints."""
    every = str(int(EVERY_CASE))
    done = run_python([SCRIPT, every, *MODELS], INTERPRETED, ROOT, LIMIT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def arguments(program: str) -> dict[str, tuple[str, str]]:
    """Return shape and dimensions of each argument of the first function."""
    (line,) = re.findall(r"func.func @\w+\((.*?)\) ->", program)[:1]
    return {name: (shape, dims) for name, shape, dims in NAME.findall(line)}


@pytest.mark.parametrize("name", [*MODELS, *FUNCTIONS])
def test_ranks_compute_what_torch_does_on_whole_tensors(
    name: str, found: dict[str, Any]
):
    _, error = found["programs"][name]
    assert error < 1e-5


def test_arguments_have_the_shards_of_their_placements(found: dict[str, Any]):
    program, _ = found["programs"]["block sequence"]
    given = arguments(program)
    rows, columns = given["p_gated_gate_weight"], given["p_gated_down_weight"]
    assert rows == ("4x8x16", "rank, D, M")
    assert columns == ("16x4x8", "M, rank, D")
    assert given["p_gated_down_bias"] == given["p_first_weight"] == ("16", "M")
    assert given["input"] == ("2x4x2x16", "H, rank, B, M")


def test_what_has_no_placement_is_a_part_of_the_first_axis(found: dict[str, Any]):
    program, _ = found["programs"]["sum"]
    assert arguments(program)["input"] == ("4x8x12", "rank, M, N")


def test_what_is_gathered_twice_is_gathered_once(found: dict[str, Any]):
    program, _ = found["programs"]["gated sequence"]
    assert program.count("collective.all_gather") == 1


@one_of(12)
@pytest.mark.parametrize(
    ("name", "pattern"),
    covering(product([*SMALL, *FUNCTIONS], PATTERNS), 1),
)
def test_every_pattern_runs_right(
    name: str, pattern: str, found: dict[str, Any], tmp_path: Path
):
    program, _ = found["programs"][name]
    (ranks,) = re.findall(r"mesh @ranks {rank = (\d)}", program)
    kernels = "auto" if EVERY_CASE else "none"
    options = f"ranks={ranks} pattern={pattern} strategy={kernels}"
    passes = f"triton-distributed{{{options}}}"
    module = comet.compile(program, ROOT / HARDWARE, passes).emit("triton")
    assert outcomes({"ranks": module}, tmp_path, seeds=1) == {"ranks": "right"}


def test_what_cannot_be_a_program_of_ranks_is_said(found: dict[str, Any]):
    none = "there is no translation of"
    reduced = "from_torch: all_reduce (_c10d_functional.all_reduce)"
    refused = {
        name: LINE.sub("", text.removesuffix(WAY_OUT))
        for name, text in found["refused"].items()
    }
    assert refused == {
        "reduction": f"{reduced}: {none} the reduction 'product' of all ranks",
        "groups": "from_torch: all_reduce_1 (_c10d_functional.all_reduce): "
        f"{none} a second group of ranks",
        "axes": "tensors are spread over ranks 1, 3 (a) and over ranks 0, 1 (b); "
        "from_torch needs those of one axis of a mesh",
        "other ops": "in sin (aten.sin) the first rank does something else than "
        f"others{ONE}",
        "other lengths": f"the first rank does something else than the last{ONE}",
        "other operands": f"mul (aten.mul) has {OPERANDS}",
        "other parts": f"getitem_3 (getitem) has {OPERANDS}",
        "sizes of parts": "from_torch: all_to_all_single (_c10d_functional."
        f"all_to_all_single): {none} an exchange of parts of different sizes",
        "own parts": f"from_torch: part_of_rank (part_of_rank): {none} a rank's part "
        "of what ranks have different values of (if all have the same, make it a "
        "DTensor that is Replicate())",
        "constants": "the model makes a tensor of 2 numbers; make it a buffer",
        "sizes": "10 elements have shards of different sizes on 4 ranks; from_torch "
        "needs equal ones",
        "changes": "the model changes b_count; call its eval(), or compute without "
        "changes",
        "conditions": f"{reduced}: {none} a reduction of conditions of all ranks",
    }


def test_without_collectives_only_shards_make_ranks(found: dict[str, Any]):
    shards, one = found["alone"]["shards"], found["alone"]["one GPU"]
    assert arguments(shards)["input"] == ("8x4", "M, rank")
    assert "collective.all" not in shards
    assert "collective" not in one


def test_collectives_in_torch_stay_in_order(found: dict[str, Any]):
    assert found["left to torch"] == ["sum", "max"]


WAIT = "_c10d_functional.wait_tensor"
REDUCE = "_c10d_functional.all_reduce"
NOT_ASKED = "the option pipeline_of_ranks does not say how they are compiled"
REASONS = {
    "tensor": None,
    "not asked for": NOT_ASKED,
    "two groups": "their group, ranks {data} (data), is not that of the collectives in "
    "kernels, ranks {tensor} (tensor)",
    "another shape of one replica": None,
    "first rank fails": None,
    "memory of GPUs": None,
    "not asked for by a model": NOT_ASKED,
    "sequence": None,
    "fully sharded": None,
    "one GPU": "their program does not compile: <text>:3:3: error: triton-distributed: "
    "@graph is written for 2 ranks, and the hardware has 1; attach hardware with more",
    "larger group": "their group, ranks 0, 1, 2, 3, is not one of 2 ranks, which "
    "pipeline_of_ranks is for",
    "reduction": "the reduction 'product' of all ranks",
    "different graphs": "processes have different graphs",
}
"""
Why collectives of compiled models run in torch; None: they do not.

Each process is in a group with the other replica of its data, and in one with the
process that has the other part of its tensors.
"""
GROUPS = {"data": ("0, 2", "1, 3") * 2, "tensor": ("0, 1",) * 2 + ("2, 3",) * 2}
"""The ranks of the groups of each process."""
FREQUENT = [*REASONS][:6]
CASES = [
    pytest.param(name, marks=() if name in FREQUENT else exhaustive) for name in REASONS
]


@pytest.mark.parametrize("name", CASES)
def test_compiled_models_exchange_in_kernels_or_say_why_not(
    name: str, found: dict[str, Any]
):
    for rank, process in enumerate(found["processes"]):
        error, warnings = process[name]
        assert error < 1e-5
        # Those of the forward and the backward graph are the same.
        assert sorted({LINE.sub("", each) for each in warnings}) == slow(name, rank)


def slow(name: str, rank: int) -> list[str]:
    """Return the warnings of a process."""
    groups = {axis: ranks[rank] for axis, ranks in GROUPS.items()}
    reason = (REASONS[name] or "").format(**groups)
    if not reason or (name == "different graphs" and rank < 2):
        return []
    if name == "reduction":
        waits = f"{WAIT} runs in torch: it waits for what torch has begun"
        return [f"{REDUCE} runs in torch: {reason}", waits]
    return [f"{REDUCE}, {WAIT} run in torch: {reason}"]


EXCHANGES = """
import faulthandler
import sys

from torch import distributed
from torch._dispatch.python import enable_python_dispatcher

from comet.pytorch.processes import from_first_rank

faulthandler.dump_traceback_later(60, exit=True)
store = distributed.HashStore()
distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
group = distributed.group.WORLD
with enable_python_dispatcher():
    for number in map(str, range(int(sys.argv[1]))):
        assert from_first_rank(lambda: number, group) == number
"""
"""
What processes exchange while torch compiles. With torch's dispatcher in Python on, each
broadcast has a chance of about 1 in 3000 to block the process forever.
"""


def test_exchanges_during_a_compilation_do_not_block():
    count = str(10_000 if EVERY_CASE else 3_000)
    done = run_python(["-c", EXCHANGES, count], INTERPRETED, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
