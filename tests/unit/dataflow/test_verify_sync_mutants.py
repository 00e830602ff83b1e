"""What `verify-sync` accepts is right: mutants of emitted programs."""

from pathlib import Path

import pytest
from covering import EVERY_CASE, exhaustive, one_of, some
from gpu_ranks import SHARED_TEXTS, on_ranks
from rank_runs import outcomes
from semantics import parse_module, run_passes
from split_programs import H200, SPLITS
from sync_mutations import mutants
from tile_trees import tiled
from triton_modules import to_triton
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

PLACED = "materialize-copies,hoist-copies,place-waits"
PROGRAMS = {
    "messages in tiles and blocks": ("ag_gemm", 'pattern=push blocks="M=2 K=2"'),
    "waits in nodes": ("ag_gemm", "pattern=push", PLACED),
    "parts for every rank, in one kernel": (
        "gemm_reduce_scatter",
        "pattern=fused persistent=true",
    ),
    "barriers": ("ag_gemm_rows", "pattern=bsp"),
    "an input in place": ("ag_gemm", "pattern=pull inputs=symmetric"),
}


def lowered(name: str, options: str, *then: str) -> ModuleOp:
    """Return a small program on three ranks, with receive buffers and flags."""
    text = SHARED_TEXTS[name].format(M=8, N=4, K=12)
    tree = run_passes(parse_module(text), f"{on_ranks(3)},fuse{{strategy=full}}")
    passes = (f"outline-kernels,bsp-to-dataflow{{{options}}}", "lower-channels", *then)
    return run_passes(tiled(tree, grid="M=2"), ",".join(passes))


def is_accepted(module: ModuleOp) -> bool:
    """Whether neither the ops nor `verify-sync` find fault with a program."""
    try:
        module.verify()
        run_passes(module, "verify-sync")
    except (VerifyException, PassFailedException):
        return False
    return True


def merging(name: str) -> ModuleOp:
    """Return a program of one GPU whose last programs merge partial results."""
    text, dim, parts = SPLITS[name]
    options = f'split="{dim}={parts}" merge=last strategy=full to=dataflow'
    return run_passes(parse_module(text), f"{H200},triton-distributed{{{options}}}")


@one_of(4)
@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_mutant_is_rejected_or_right(kind: str, tmp_path: Path):
    check_mutants(lowered(*PROGRAMS[kind]), tmp_path)


@exhaustive
@pytest.mark.parametrize("name", [*SPLITS][: None if EVERY_CASE else 1])
def test_a_mutant_that_merges_is_rejected_or_right(name: str, tmp_path: Path):
    check_mutants(merging(name), tmp_path)


def check_mutants(module: ModuleOp, tmp_path: Path) -> None:
    """Check that mutants are rejected or right, and that there are some of both."""
    found = dict(some(mutants(module), 5))
    accepted = {name: mutant for name, mutant in found.items() if is_accepted(mutant)}
    assert 0 < len(accepted) < len(found)
    by_text = {to_triton(mutant): name for name, mutant in accepted.items()}
    by_text[to_triton(module)] = "the program itself"
    sources = {f"mutant_{index}": text for index, text in enumerate(by_text)}
    wrong = {
        by_text[sources[name]]: outcome
        for name, outcome in outcomes(sources, tmp_path, seeds=1).items()
        if outcome != "right"
    }
    assert not wrong
