"""`choose-shardings`: every trial keeps the meaning, and the best ones are known."""

from collections.abc import Mapping
from math import isclose

import pytest
from covering import fraction, one_of
from gpu_ranks import H200X8
from paths import ROOT
from sample_blocks import BLOCKS
from semantics import assert_same_meaning, parse_module, run_passes
from sharded_programs import MOVES, SIZES, collectives
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from comet.cost.from_ir.gpus import machine_of
from comet.dialects.arch import attached_system
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.spmd import sharding_attr
from comet.passes.analysis.functions import compute_functions
from comet.passes.sharding.choose_shardings.trials import Trial, trials_of
from comet.passes.sharding.shardings import SHARD, sharding_of_op

RANKS = (1, 2, 3, 8)


def attached(text: str, ranks: int) -> ModuleOp:
    """Return a module on some H200."""
    return run_passes(parse_module(text), f"{H200X8},select-ranks{{ranks={ranks}}}")


def trials(module: ModuleOp) -> list[Trial]:
    """Return the trials of the only function of a module."""
    func = next(compute_functions(module))
    mesh = next(op for op in module.walk() if isinstance(op, MeshOp))
    machine = machine_of(attached_system(module), mesh.size(mesh.rank_axes))
    return trials_of(func, mesh, machine)


def sharded(module: ModuleOp, trial: Trial) -> ModuleOp:
    """Return a copy of a module with the shardings of a trial on its ops."""
    func = next(compute_functions(module))
    places = {op: place for place, op in enumerate(func.body.block.ops)}
    copy = module.clone()
    ops = list(next(compute_functions(copy)).body.block.ops)
    for op, sharding in trial.known.ops.items():
        ops[places[op]].attributes[SHARD] = sharding_attr(sharding)
    return copy


@one_of(4)
@pytest.mark.parametrize(("case", "ranks"), fraction(MOVES, RANKS))
@pytest.mark.parametrize("stated", [True, False])
def test_every_trial_keeps_the_meaning(case: str, ranks: int, stated: bool) -> None:
    """With the shardings that a function says, and with those that are free."""
    write, said, _ = MOVES[case]
    for sizes in SIZES:
        before = attached(write(sizes, said if stated else {}), ranks)
        found = trials(before)
        assert [trial.seconds for trial in found] == sorted(t.seconds for t in found)
        for trial in found:
            after = run_passes(sharded(before, trial), "insert-collectives")
            assert_same_meaning(before, after, "main")


def block(name: str, sizes: Mapping[str, int], ranks: int) -> ModuleOp:
    """Return a sample block after the passes before `choose-shardings`."""
    written = BLOCKS[name]
    text = written.text(name, {**written.wide, **sizes}, "bf16")
    return run_passes(attached(text, ranks), "decompose,sink-renames,stream")


def shardings(module: ModuleOp) -> dict[str, str]:
    """Return the dimension that is sharded of each named op."""
    func = next(op for op in module.walk() if isinstance(op, FuncOp))
    return {
        op.results[0].name_hint: "".join(sharding_of_op(op))
        for op in func.body.block.ops
        if op.results and op.results[0].name_hint
    }


def test_a_block_is_tensor_parallel() -> None:
    """Heads K in attention and columns F between them, with two all-reduces."""
    after = run_passes(block("llama", {"M": 128, "N": 128}, 8), "choose-shardings")
    found = shardings(after)
    assert {found[name] for name in ("q1_p", "k2_p", "v", "mixed", "a")} == {"K"}
    assert {found[name] for name in ("gate", "up", "gated", "d")} == {"F"}
    assert {found[name] for name in ("h1", "y", "h2", "z")} == {""}
    moved = run_passes(after, "insert-collectives")
    assert collectives(moved) == ["all_reduce", "all_reduce"]


def test_the_guide_shows_what_is_tried_for_a_block() -> None:
    found = trials(block("llama", {"M": 128, "N": 128}, 8))
    tried = {trial.label: f"{1e6 * trial.seconds:.3f}" for trial in found}
    page = (ROOT / "docs" / "multi-gpu.md").read_text()
    table = page.partition("shardings for @llama\n")[2].partition("```")[0]
    shown = [line[2:].rsplit(maxsplit=1) for line in table.splitlines()[1:]]
    assert len(shown) > 4
    assert [(label.strip(), tried[label.strip()]) for label, _ in shown] == [
        (label.strip(), time) for label, time in shown
    ]
    assert shown[0][0].strip() == found[0].label


def test_many_tokens_are_sharded_and_few_are_not() -> None:
    """Each rank computes its tokens with whole weights, or all with its columns."""
    text = MOVES["tokens alone"][0]
    many = attached(text({"T": 8192, "D": 4096, "F": 4096}, {}), 8)
    few = attached(text({"T": 8, "D": 4096, "F": 16384}, {}), 8)
    assert shardings(run_passes(many, "choose-shardings"))["up"] == "T"
    assert shardings(run_passes(few.clone(), "choose-shardings"))["up"] == "F"
    second = shardings(run_passes(few, "choose-shardings{trial=1}"))
    assert (second["up"], second["d"]) == ("D", "D")


def test_a_small_program_is_computed_by_every_rank() -> None:
    """An exchange takes longer than all of it."""
    small = attached(MOVES["columns of a softmax"][0](SIZES[-1], {}), 8)
    moved = run_passes(small, "choose-shardings,insert-collectives")
    assert collectives(moved) == []


def test_what_a_function_says_stays() -> None:
    """An op that is sharded in tokens, of a product that has columns otherwise."""
    write = MOVES["tokens alone"][0]
    text = write({"T": 8, "D": 4096, "F": 4096}, {"z": "T"})
    before = attached(
        text.replace(
            "%up = compound.contract %h, %w1 :",
            '%up = compound.contract %h, %w1 {collective.shard = {T = ["rank"]}} :',
        ),
        8,
    )
    after = run_passes(before, "choose-shardings")
    assert shardings(after)["up"] == "T"
    assert shardings(after)["d"] == "T"


def test_the_estimate_of_one_rank_is_that_of_its_products() -> None:
    """2 * 8 * 4096 * 4096 operations take less than 2 * 4096 * 4096 bytes of f32."""
    before = attached(MOVES["a gradient"][0]({"T": 8, "D": 4096, "F": 4096}, {}), 2)
    whole = next(trial for trial in trials(before) if not trial.chosen)
    device = machine_of(attached_system(before), 2).device
    loaded = 2 * 8 * 4096 * 4 / device.memory.hbm_bandwidth
    operations = 2 * 8 * 4096 * 4096 / device.units.vector["f32"]
    assert isclose(whole.seconds, max(loaded, operations))
