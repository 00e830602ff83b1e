"""Renames that move behind the ops that read them: what programs mean stays."""

from collections.abc import Callable
from random import Random

import pytest
from graph_text import Program
from paths import ROOT
from semantics import assert_same_meaning, parse_module, run_passes
from transformer_blocks import gpt2_block, llama_block

from comet.dialects.compound import RenameOp

EXAMPLES = ROOT / "tests/filecheck/passes/graph/sink-renames.mlir"
SIZES = {"M": 3, "N": 3, "T": 3, "D": 5, "E": 4}


def random_program(seed: int) -> str:
    """Return ops on values of one sequence that has three names, at random."""
    random, p = Random(seed), Program(SIZES)
    values = [p.argument("x", "MD"), p.argument("y", "ND"), p.argument("v", "D")]
    weight = p.argument("w", "DE")
    dims = {"x": "MD", "y": "ND", "v": "D"}
    for number in range(12):
        name, value = f"t{number}", random.choice(values)
        match random.choice(("rename", "exp", "mult", "sum", "product")):
            case "rename" if len(dims[value]) == 2:
                dims[name] = random.choice("MNT") + "D"
                values.append(p.rename(name, value, dims[name]))
            case "exp":
                dims[name] = dims[value]
                values.append(p.map(name, "tanh", value))
            case "mult":
                near = [v for v in values if dims[v] in (dims[value], "D")]
                dims[name] = dims[value]
                values.append(p.map(name, "mult", value, random.choice(near)))
            case "sum" if len(dims[value]) == 2:
                dims[name] = "D"
                values.append(p.reduce(name, "add", value, dims[value][0]))
            case _:
                continue
    last = next(v for v in reversed(values) if len(dims[v]) == 2)
    return p.returning(p.contract("last", last, weight, dims[last][0] + "E"))


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_keep_their_meaning(seed: int):
    before = parse_module(random_program(seed))
    assert_same_meaning(before, run_passes(before, "sink-renames"), "main")


@pytest.mark.parametrize("block", [llama_block, gpt2_block])
def test_keys_and_values_are_renamed_after_their_products(block: Callable[[], str]):
    before = parse_module(block())
    after = run_passes(before, "sink-renames")
    renamed = [op.result.name_hint for op in after.walk() if isinstance(op, RenameOp)]
    assert renamed == ["k", "v"]
    assert_same_meaning(before, after, "main")


def test_functions_with_shardings_stay():
    argument = "%x: !MD_f32"
    sharded = argument + ' {collective.shard = {M = ["rank"]}}'
    before = parse_module(random_program(0).replace(argument, sharded))
    assert "shard" in str(before)
    assert str(run_passes(before, "sink-renames")) == str(before)


@pytest.mark.parametrize("name", ["scores", "alike", "stay", "sent"])
def test_programs_of_the_examples_keep_their_meaning(name: str):
    before = parse_module(EXAMPLES.read_text())
    after = run_passes(before, "sink-renames")
    assert_same_meaning(before, after, name)
