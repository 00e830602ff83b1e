"""A few seconds of `make fuzz` with fixed seeds."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from covering import EVERY_CASE
from fuzz import Worker
from fuzz_compiling import fault
from fuzz_families import FAMILIES
from fuzz_judge import spoken
from fuzz_meaning import difference, meaning_of, sensitivity
from fuzz_refusal import unclear
from fuzz_worker import Task
from semantics import parse_module, random_inputs, run_passes
from tool_run import ToolRun

CASES = {
    "mlir": range(6, 7),
    "hardware": range(7, 10),
    "cost": range(6),
    "pipeline": range(2, 9, 2),
    "plan": range(5, 8),
    "elementary": range(3, 8, 2),
    "shared": range(1, 2),
    "named": range(3, 4),
    "options": range(7, 9),
    "several": range(2, 3),
    "sync": range(7, 8),
}
"""The cases of each family that are tried; `make exhaustive` tries more."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as found:
        yield found


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_found(family: str, worker: Worker) -> None:
    tried = range(30) if EVERY_CASE else CASES[family]
    seeds = [f"fixed-{number}" for number in tried]
    tasks = [Task(family, seed, reducing=0) for seed in seeds]
    verdicts = {task.seed: worker.ask(task).verdict for task in tasks}
    assert {seed: v for seed, v in verdicts.items() if v.is_finding} == {}
    assert any(verdict.kind == "accepted" for verdict in verdicts.values())


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("there is no operation builtin.modules", "refused"),
        ("builtin.module { }", "message"),
        ('"builtin.module"() ({ })', "message"),
    ],
)
def test_an_error_quotes_no_module(what: str, kind: str) -> None:
    error = f"in.mlir:1:1: error: {what}; correct its name"
    assert spoken(ToolRun(1, "", error), Path("folder")).kind == kind


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("comet-opt: warning: a better mapping does not fit", "accepted"),
        ("something else", "message"),
        ("comet-opt: warning: builtin.module {", "message"),
    ],
)
def test_what_succeeds_says_warnings_only(said: str, kind: str) -> None:
    assert spoken(ToolRun(0, "", f"{said}\n"), Path("folder")).kind == kind


@pytest.mark.parametrize(
    ("said", "lacking"),
    [
        ("in.mlir:1:1: error: tile: M = 4 has no 3 tiles; take 2", ""),
        ("in.mlir:1:1: in @f, 'compound.map' op %y: error: tile: no; take K=2", ""),
        ("comet-opt: error: pass 'tile': it is no number; write one", ""),
        ("comet-opt: error: tile: M = 4 has no 3 tiles; take 2", "no location"),
        ("in.mlir:1:1: error: M = 4 has no 3 tiles; take 2", "no location, or no pass"),
        ("in.mlir:1:1: error: tiles: M = 4 has no 3 tiles; take 2", "there is no pass"),
        ("in.mlir:1:1: error: tile: M = 4 has no 3 tiles", "no way out"),
        ("in.mlir:1:1: error: tile: too many; use ctas=1", "ctas is no option of tile"),
        ("in.mlir:1:1: error: split: too many; use ranks=1", ""),
        ("in.mlir:1:1: error: split: no; take dim=N:cx=2,cy=4 with ranks=8", ""),
    ],
)
def test_a_refusal_says_where_which_pass_why_and_what_then(said: str, lacking: str):
    pipeline = "triton-distributed{ranks=2}" if "ranks" in said else "decompose,tile"
    found = unclear(said, pipeline)
    assert found.startswith(lacking) if lacking else not found


NUMBER_IN_A_LOOP = """
import torch
import triton
import triton.language as tl
from comet.runtime import Program, Tensor


@triton.jit
def kernel(x_ptr, N: tl.constexpr):
    most = {start}
    for n in range(N):
        most = tl.maximum(most, tl.load(x_ptr + n)).to(tl.bfloat16)
    tl.store(x_ptr, most)


def launch(x):
    kernel[(1,)](x, N=4, num_warps=1, num_stages=1)
    return x


PROGRAM = Program(
    launch=launch,
    reference=lambda x: x,
    inputs=(Tensor((4,), "bfloat16"),),
    outputs=(Tensor((4,), "bfloat16"),),
)
"""
"""A kernel that Triton compiles if its loop keeps a type."""


@pytest.mark.parametrize("whole", [False, True])
def test_a_kernel_that_only_the_interpreter_takes_is_found(whole: bool, tmp_path: Path):
    starts = {"right": "tl.full((), 0.0, dtype=tl.bfloat16)", "wrong": "0.0"}
    reasons: dict[str, str] = {}
    for name, start in starts.items():
        path = tmp_path / f"{name}.py"
        path.write_text(NUMBER_IN_A_LOOP.format(start=start))
        reasons[name] = fault(path, "sm_90", whole)
    assert reasons["right"] == ""
    assert "Loop-carried variable most has initial type fp32" in reasons["wrong"]


CANCELLED = """
!x = tensor<31xf32, #compound.dims<M>>
!s = tensor<f32, #compound.dims<>>
func.func @main(%x: !x) -> !s {{
  %sum = compound.reduce add %x : !x -> !s
  %m = compound.extent "M" of %x : !x -> !s
  %mean = compound.map div %sum, %m : !s, !s -> !s
  %centred = compound.map sub %x, {mean} : !x, !s -> !x
  %zero = compound.reduce add %centred : !x -> !s
  func.return %zero : !s
}}
"""
"""The sum of differences from a mean."""


def test_what_roundings_leave_of_nothing_is_no_other_value() -> None:
    before = meaning_of(parse_module(CANCELLED.format(mean="%mean")))
    passes = (
        'attach-hardware{path="samples/hardware/h200x8.yaml"},select-ranks{ranks=3}'
    )
    spread = f"{passes},distribute{{dim=M axes=rank}},insert-collectives"
    assert difference(before, run_passes(before.module, spread)) == ""
    wrong = parse_module(CANCELLED.format(mean="%sum"))
    assert difference(before, wrong) == "another value"


def test_roundings_do_not_move_a_mask() -> None:
    type_ = "tensor<1x2x8x4xf16>"
    text = f"""
    func.func @main(%q: {type_}, %k: {type_}, %v: {type_}) -> {type_} {{
      %o = compound.attention %q, %k, %v causal : ({type_}, {type_}, {type_}) -> {type_}
      func.return %o : {type_}
    }}"""
    module = run_passes(parse_module(text), "decompose")
    assert sensitivity(module, "main", [random_inputs(module, "main")]) < 0.05


def test_what_is_beyond_the_lowest_number_is_the_minimum() -> None:
    type_ = "tensor<4xf32, #compound.dims<M>>"
    text = f"""
    func.func @main(%x: {type_}) -> {type_} {{
      %low = compound.fill -3.0e+38 : {type_}
      %lower = compound.map add %low, %low : {type_}, {type_} -> {type_}
      %least = compound.map min %lower, %x : {type_}, {type_} -> {type_}
      func.return %least : {type_}
    }}"""
    module = parse_module(text)
    assert sensitivity(module, "main", [random_inputs(module, "main")]) == math.inf


def test_a_sum_may_overflow_in_some_order() -> None:
    type_, sum_ = "tensor<7xf32, #compound.dims<M>>", "tensor<f32, #compound.dims<>>"
    text = f"""
    func.func @main(%x: {type_}) -> {sum_} {{
      %large = compound.fill 3.0e+38 : {type_}
      %sum = compound.contract %x, %large : {type_}, {type_} -> {sum_}
      func.return %sum : {sum_}
    }}"""
    module, terms = parse_module(text), [1.0, -1.0, 0.5, 0.5, -1.0, 0.0, 1.0]
    assert sensitivity(module, "main", [[np.array(terms)]]) == math.inf
    assert sensitivity(module, "main", [[np.array(terms) / 8]]) < 0.05


def test_an_overflow_has_the_sign_of_its_product() -> None:
    type_ = "tensor<2xf32, #compound.dims<M>>"
    text = f"""
    func.func @main(%x: {type_}) -> {type_} {{
      %large = compound.fill 3.0e+38 : {type_}
      %product = compound.contract %x, %large : {type_}, {type_} -> {type_}
      %least = compound.map min %x, %product : {type_}, {type_} -> {type_}
      func.return %least : {type_}
    }}"""
    module = parse_module(text)
    assert sensitivity(module, "main", [[np.array([1.0, -2.0])]]) == math.inf
    assert sensitivity(module, "main", [[np.array([1.0, 2.0])]]) < 0.05


MAXIMUM = """
!x = tensor<4x6xf32, #compound.dims<M, K>>
!m = tensor<4xf32, #compound.dims<M>>
func.func @main(%x: !x) -> !m {{
  %low = compound.fill -1.0e+30 : !m
  %m = compound.fold over "K" ins(%x : !x) init(%low : !m) step {{
  ^bb0(%c: !x, %old: !m):
    %top = compound.reduce max %c : !x -> !m
    %now = compound.map max %old, %top : !m, !m -> !m
    compound.yield %now : !m
  }} merge {{
  ^bb1(%one: !m, %other: !m):
    %both = compound.map {merge} %one, %other : !m, !m -> !m
    compound.yield {yielded} : !m
  }} -> !m
  func.return %m : !m
}}
"""
"""A running maximum, if its merge is one."""


@pytest.mark.parametrize(
    ("merge", "yielded", "lawful"),
    [("max", "%both", True), ("max", "%other", False), ("add", "%both", False)],
)
def test_a_fold_that_depends_on_its_cut_has_no_meaning(
    merge: str, yielded: str, lawful: bool
) -> None:
    module = parse_module(MAXIMUM.format(merge=merge, yielded=yielded))
    assert ("main" in meaning_of(module).results) is lawful
