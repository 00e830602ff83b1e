"""Programs that have channels keep them: which pattern that is."""

import re

import pytest
from covering import one_of
from gpu_ranks import SHARED_TEXTS, on_ranks
from semantics import parse_module, run_passes
from sync_programs import PUSHED
from tile_trees import tiled
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

TEXT = SHARED_TEXTS["gemm_all_reduce"].format(M=8, N=8, K=8)
OPTIONS = {
    "bsp": "pattern=bsp",
    "wait": "pattern=wait",
    "pull": "pattern=pull",
    "push": 'pattern=push blocks="M=2"',
    "fused": "pattern=fused",
}


def connected(pattern: str, lower: str = "") -> ModuleOp:
    """Return a program whose ranks talk by a pattern."""
    tree = run_passes(parse_module(TEXT), f"{on_ranks(2)},fuse{{strategy=auto}}")
    passes = f"outline-kernels,bsp-to-dataflow{{{OPTIONS[pattern]}}}{lower}"
    return run_passes(tiled(tree, grid="M=2"), passes)


@one_of(4)
@pytest.mark.parametrize("lower", ["", ",lower-channels"])
@pytest.mark.parametrize("pattern", OPTIONS)
def test_the_same_pattern_changes_nothing(pattern: str, lower: str):
    before = connected(pattern, lower)
    for same in (pattern, "auto"):
        after = run_passes(before, f"bsp-to-dataflow{{pattern={same}}}")
        assert str(after) == str(before)


@one_of(2)
@pytest.mark.parametrize("pattern", OPTIONS)
def test_another_pattern_does_not_apply(pattern: str):
    before = connected(pattern)
    for other in OPTIONS.keys() - {pattern, "push" if pattern == "wait" else None}:
        reason = f"pattern={other} does not apply to @f: it already has channels"
        with pytest.raises(PassFailedException, match=re.escape(reason)) as error:
            run_passes(before, f"bsp-to-dataflow{{pattern={other}}}")
        assert pattern in str(error.value).partition("; ")[2]


def test_channels_of_several_patterns_are_for_auto_only():
    """One channel is waited for, the other one is not."""
    module = parse_module(PUSHED)
    for pattern in OPTIONS:
        with pytest.raises(PassFailedException, match="another pattern; auto applies"):
            run_passes(module, f"bsp-to-dataflow{{pattern={pattern}}}")
    assert str(run_passes(module, "bsp-to-dataflow{pattern=auto}")) == str(module)
