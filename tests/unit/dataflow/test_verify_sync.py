"""The pass `verify-sync`: every safeguard, taken from a right program, is missed."""

import re
from pathlib import Path

import pytest
from broken_sync import BROKEN, CUT, Broken
from covering import exhaustive, one_of, some
from rank_runs import outcomes
from semantics import parse_module, run_passes
from shim_mutations import weakened
from sync_programs import (
    BARRIER,
    BOX,
    BUFFER,
    DESTINATIONS,
    FIVE_ROWS,
    IN_ONE_KERNEL,
    IN_PLACE,
    IN_TWO,
    OF_INPUT,
    PULLED,
    PUSHED,
    SIGNAL,
    SPLIT,
    WAIT,
    edited,
)
from triton_modules import to_triton
from xdsl.utils.exceptions import PassFailedException

RIGHT = {
    "pushed": PUSHED,
    "pulled": PULLED,
    "an input in place": IN_PLACE,
    "an input in place, after a barrier": edited(
        (SIGNAL, ""), (WAIT, ""), (BUFFER, BARRIER + BUFFER), text=IN_PLACE
    ),
    "an input in one slot, between barriers": edited(
        (OF_INPUT, OF_INPUT.replace("2", "1")),
        ("      dataflow.yield %y : !O\n", f"{BARRIER}      dataflow.yield %y : !O\n"),
        text=IN_PLACE,
    ),
    "an input in three slots": edited(
        (OF_INPUT, OF_INPUT.replace("2", "3")), text=IN_PLACE
    ),
    "split": SPLIT,
    "a short tile": FIVE_ROWS,
    "two tiles a block": IN_TWO,
    "one kernel": IN_ONE_KERNEL,
    "a barrier for waits": edited((WAIT, ""), (SIGNAL, ""), (BUFFER, BARRIER + BUFFER)),
    "one slot": edited(
        (BOX, BOX.replace("2", "1")),
        ("      dataflow.kernel @send", f"{BARRIER}      dataflow.kernel @send"),
    ),
    "three slots": edited((BOX, BOX.replace("2", "3"))),
    "one row over the receivers": edited(
        ("[g0: M = 2, g1: M = 1]", "[g0: M = 2]"), text=SPLIT
    ),
    "what all receivers get": SPLIT.replace("[g0: M = 2, g1: M = 1]", "[g0: K = 1]")
    .replace(DESTINATIONS, "")
    .replace("^bb0(%t0: !T)", "^bb0(%t0: tensor<4x8xf32, #compound.dims<M, K @REG>>)")
    .replace(
        "yield %t0 : !T", "yield %t0 : tensor<4x8xf32, #compound.dims<M, K @REG>>"
    ),
    "sources all at once": PUSHED.replace(' sources ["K"]', ""),
}
"""Programs in which nothing is missing."""


@one_of(3)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_is_accepted_as_it_is(name: str):
    module = parse_module(RIGHT[name])
    assert str(run_passes(module, "verify-sync")) == str(module)


@one_of(3)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_program_is_rejected_with_the_reason(name: str):
    broken = BROKEN[name]
    with pytest.raises(PassFailedException, match=re.escape(broken.reason)):
        run_passes(parse_module(broken.text), "verify-sync")


UNORDERED = {
    "a signal before the stores": "signal",
    "a signal of who does not give": "signal",
    "a wait after the read": "wait",
    "an input that is signalled after the wait": "wait",
    "what no grid makes": "push",
}
"""Programs with an op that cannot move into a node, and that op."""


@pytest.mark.parametrize("name", UNORDERED)
def test_what_cannot_move_into_a_node_is_not_written(name: str):
    reason = f"no node of kernel @.* does its dataflow.{UNORDERED[name]}; verify-sync"
    with pytest.raises(PassFailedException, match=reason):
        to_triton(parse_module(BROKEN[name].text))


def test_the_reasons_are_many():
    assert len({broken.reason for broken in BROKEN.values()}) >= 25


ON_FLAGS = r"(dataflow.{} \S+ flags \S+ epoch \S+) \w+ \w+( fence)?"


def unverified(broken: Broken) -> str:
    """
    Write a broken program in Triton.

    What kernels cannot say, the runtime does: its shim lacks the same safeguard.
    """
    text = re.sub(ON_FLAGS.format("signal"), r"\1 release system fence", broken.text)
    text = re.sub(ON_FLAGS.format("wait"), r"\1 acquire system", text)
    source = to_triton(parse_module(text))
    if broken.shim is None:
        return source
    return source.replace("comet.runtime.shim", module_name(broken.shim))


def module_name(name: str) -> str:
    """Return a name as that of a Python module."""
    return re.sub(r"\W", "_", name)


@exhaustive
def test_what_is_accepted_is_right_and_what_is_rejected_fails(tmp_path: Path):
    """Of a fifth of the programs; of all by `make exhaustive`."""
    runnable = {
        name: broken for name, broken in some(BROKEN.items(), 5) if broken.kept != CUT
    }
    right = dict(some(RIGHT.items(), 5))
    sources = {name: to_triton(parse_module(text)) for name, text in right.items()}
    sources |= {name: unverified(broken) for name, broken in runnable.items()}
    expected = dict.fromkeys(right, "right")
    expected |= {name: broken.outcome for name, broken in runnable.items()}
    for shim in {broken.shim for broken in runnable.values() if broken.shim}:
        (tmp_path / f"{module_name(shim)}.py").write_text(weakened(shim))
    found = outcomes(
        {module_name(name): source for name, source in sources.items()}, tmp_path
    )
    assert found == {module_name(name): outcome for name, outcome in expected.items()}
