"""Modules of one rank with a class: as a function, without a scheduler, and timed."""

import json
from pathlib import Path

import pytest
from group_programs import grouped
from interpreting import write_modules
from split_programs import merging
from torch_python import run_python

from comet.runtime import command
from comet.runtime.command import back_ends

BODY = """
import json, sys, torch
from comet.runtime.bench import bench_microseconds
from comet.runtime.check import check, random_inputs
from comet.runtime.one_rank import one_rank
from comet.runtime.program import RankProgram, load_module, program_of

def of(path):
    return program_of(load_module(path), path)

def refusal(work):
    try:
        work()
    except ValueError as error:
        return str(error)

merging, waiting = map(of, sys.argv[1:])
alone = one_rank(merging)
f = load_module(sys.argv[1]).f
inputs = [random_inputs(merging, seed, "cpu") for seed in (1, 2)]
first = f(*inputs[0])
copy = first.clone()
second = f(*inputs[1])
several = RankProgram(merging.plan, merging.reference, 2, (), ())
print(json.dumps({
    "right": [check(alone, seed, "cpu").ok for seed in range(2)],
    "repeats": torch.equal(f(*inputs[0]), first),
    "kept": torch.equal(first, copy),
    "differs": not torch.equal(first, second),
    "waiting": refusal(lambda: check(one_rank(waiting), 0, "cpu")),
    "several": one_rank(several) is None,
    "timed": refusal(lambda: bench_microseconds(several, 0)),
}))
"""


def test_a_class_is_a_function_whose_counters_end_at_zero(tmp_path: Path):
    modules = {"merging": merging("gemm"), "waiting": grouped("softmax", 3, "")}
    paths = write_modules(modules, tmp_path)
    done = run_python(["-c", BODY, *paths], {"TRITON_INTERPRET": "1"})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["right"] == [True, True]
    assert found["repeats"]
    assert found["kept"], "a call overwrote the result of an earlier one"
    assert found["differs"]
    assert "runs one after the other; use --backend scheduler" in found["waiting"]
    assert found["several"]
    assert found["timed"] == "a program of several ranks is timed by benchmarks/gpu.py"


def test_a_class_of_one_rank_takes_all_back_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "module.py"
    path.write_text(merging("gemm"))
    monkeypatch.setattr(command, "has_gpu", lambda: True)
    parse = command.argument_parser().parse_args
    assert command.problem_with(parse([str(path), "--bench"])) is None
    for backend in ("interpreter", "scheduler", "gpu"):
        found = command.problem_with(parse([str(path), "--backend", backend]))
        assert found is None
    assert back_ends(command.ranks_of(str(path)))[0] == "scheduler"
