"""The pass `place-waits`: what programs mean, and what is rejected, afterwards too."""

import re

import pytest
from broken_sync import BROKEN
from covering import one_of
from semantics import assert_same_meaning, parse_module, run_passes
from sync_programs import IN_ONE_KERNEL, IN_PLACE, PULLED, PUSHED, SPLIT
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.dataflow import KernelOp, SignalOp, WaitOp
from comet.dialects.schedule import SpatialOp, TemporalOp

PLACED = "materialize-copies,hoist-copies,place-waits"
PROGRAMS = {
    "pushed": PUSHED,
    "pulled": PULLED,
    "split": SPLIT,
    "one kernel": IN_ONE_KERNEL,
    "in place": IN_PLACE,
}


def waits(module: ModuleOp) -> list[WaitOp]:
    return [op for op in module.walk() if isinstance(op, WaitOp)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_mean_the_same_and_are_proven(name: str):
    before = parse_module(PROGRAMS[name])
    after = run_passes(before, f"{PLACED},verify-sync")
    assert all(isinstance(op.parent_op(), KernelOp) for op in waits(before))
    assert not any(isinstance(op.parent_op(), KernelOp) for op in waits(after))
    assert_same_meaning(before, after, "f")


@one_of(3)
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_rejected_at_the_border_is_rejected_in_nodes_too(name: str):
    broken = BROKEN[name]
    with pytest.raises(PassFailedException, match=re.escape(broken.reason)):
        run_passes(parse_module(broken.text), f"{PLACED},verify-sync")


def without(wait: WaitOp) -> None:
    """Let loads take what a wait takes."""
    for view, value in zip(wait.views, wait.awaited, strict=True):
        value.replace_all_uses_with(view)
    wait.detach()
    wait.erase()


def test_a_load_that_no_wait_comes_before_is_rejected():
    module = run_passes(parse_module(PUSHED), PLACED)
    (wait,) = waits(module)
    without(wait)
    reason = "@sum reads %box without a wait on its flags, and no barrier"
    with pytest.raises(PassFailedException, match=reason):
        run_passes(module, "verify-sync")


def test_a_signal_that_does_not_cover_what_is_stored_is_rejected():
    text = PUSHED.replace("outs(!L) {", "outs(!L, !L) {").replace(
        "yield %t0 : !T", "yield %t0, %t0 : !T, !T"
    )
    text = text.replace("yield %tile : !T", "yield %tile, %tile : !T, !T")
    text = re.sub(r"%t = (schedule.spatial)", r"%t, %u = \1", text)
    module = run_passes(parse_module(text), PLACED)
    run_passes(module, "verify-sync")
    *_, signal = (op for op in module.walk() if isinstance(op, SignalOp))
    node = signal.parent_op()
    assert isinstance(node, SpatialOp)
    other = node.yielded[1]
    less = SignalOp(signal.channel, signal.flags, signal.epoch, covered=[other])
    Rewriter.replace_op(signal, less)
    with pytest.raises(PassFailedException, match="@send signals %box before it stor"):
        run_passes(module, "verify-sync")


def test_a_wait_for_another_view_is_none():
    module = run_passes(parse_module(PUSHED), PLACED)
    (wait,) = waits(module)
    wait.awaited[0].replace_all_uses_with(wait.views[0])
    with pytest.raises(PassFailedException, match="@sum reads %box before it waits"):
        run_passes(module, "verify-sync")


def test_a_wait_for_its_own_rank_is_none_for_peers():
    module = run_passes(parse_module(PUSHED), PLACED)
    (wait,) = waits(module)
    own = WaitOp(wait.channel, wait.flags, wait.epoch, views=wait.views, own=True)
    assert isinstance(wait.parent_op(), SpatialOp | TemporalOp)
    block = wait.parent
    assert block is not None
    block.insert_op_before(own, wait)
    wait.awaited[0].replace_all_uses_with(own.awaited[0])
    without(wait)
    with pytest.raises(PassFailedException, match="@sum reads %box"):
        run_passes(module, "verify-sync")
