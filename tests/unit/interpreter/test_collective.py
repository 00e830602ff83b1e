"""SPMD regions and collectives in the interpreter, on sizes that do not divide."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semantics import assert_close, parse_module
from xdsl.utils.exceptions import InterpretationError, VerifyException

from comet.interpreter import Tensor, run
from comet.interpreter.instances import join, split
from comet.interpreter.tensor import Array

X = np.random.default_rng(3).standard_normal((5, 11))

HEAD = """
collective.mesh @m {x = 2, y = 3}
!MN = tensor<5x11xf64, #compound.dims<M, N>>
!M = tensor<5xf64, #compound.dims<M>>
!l = tensor<5x2xf64, #compound.dims<M, N>>
!w = tensor<5x12xf64, #compound.dims<M, N>>
!s = tensor<5x4xf64, #compound.dims<M, N>>
"""


def spmd(body: str, out: str = "!MN", sharding: str = '{N = ["x", "y"]}') -> str:
    """Run `body` on `%a`, the shard `!l` of X along N over x and y; yield `%r`."""
    return f"""{HEAD}
func.func @f(%X: !MN) -> {out} {{
  %R = collective.spmd on @m ins(%X : !MN) sharded [{{N = ["x", "y"]}}]
      outs({out}) sharded [{sharding}] {{
  ^bb0(%a: !l):
    {body}
  }}
  func.return %R : {out}
}}
"""


def result(text: str, x: Array = X, verify: bool = True) -> Array:
    return run(parse_module(text, verify), "f", [x])[0]


def test_shares_come_together():
    assert_close([result(spmd("collective.yield %a : !l"))], [X])


@pytest.mark.parametrize(("kind", "axes"), [("add", "x"), ("max", "x"), ("add", "y")])
def test_all_reduce_over_both_axes_in_either_order(kind: str, axes: str):
    other = {"x": "y", "y": "x"}[axes]
    body = f"""
    %p = compound.reduce {kind} %a : !l -> !M
    %q = collective.all_reduce {kind} %p on @m ["{axes}"] : !M -> !M
    %r = collective.all_reduce {kind} %q on @m ["{other}"] : !M -> !M
    collective.yield %r : !M"""
    expected = X.sum(axis=1) if kind == "add" else X.max(axis=1)
    assert_close([result(spmd(body, "!M", "{}"))], [expected])


def test_all_gather_lays_short_shares_side_by_side():
    body = """
    %g = collective.all_gather "N" %a on @m ["x", "y"] : !l -> !MN
    %r = compound.map neg %g : !MN -> !MN
    collective.yield %r : !MN"""
    assert_close([result(spmd(body, "!MN", "{}"))], [-X])


def test_all_gather_along_one_axis_leaves_the_other():
    """Three shares of 2 over y: 6 elements on x = 0 and 5 on x = 1."""
    body = """
    %g = collective.all_gather "N" %a on @m ["y"]
        : !l -> tensor<5x6xf64, #compound.dims<M, N>>
    collective.yield %g : tensor<5x6xf64, #compound.dims<M, N>>"""
    assert_close([result(spmd(body, "!MN", '{N = ["x"]}'))], [X])


def test_all_gather_along_a_new_dimension():
    body = """
    %p = compound.reduce max %a : !l -> !M
    %g = collective.all_gather "P" %p on @m ["x", "y"] : !M -> !MP
    %r = compound.reduce max %g : !MP -> !M
    collective.yield %r : !M"""
    text = spmd(body, "!M", "{}").replace(
        HEAD, HEAD + "!MP = tensor<5x6xf64, #compound.dims<M, P>>\n"
    )
    assert_close([result(text)], [X.max(axis=1)])


def test_reduce_scatter_keeps_a_shard():
    """M = 5 over six instances: the last one holds nothing."""
    body = """
    %p = compound.reduce add %a : !l -> !M
    %r = collective.reduce_scatter add "M" %p on @m ["x", "y"]
        : !M -> tensor<1xf64, #compound.dims<M>>
    collective.yield %r : tensor<1xf64, #compound.dims<M>>"""
    text = spmd(body, "!M", '{M = ["x", "y"]}')
    assert_close([result(text)], [X.sum(axis=1)])


def test_all_to_all_moves_the_sharding():
    body = """
    %r = collective.all_to_all split "M" concat "N" %a on @m ["x", "y"]
        : !l -> tensor<1x11xf64, #compound.dims<M, N>>
    collective.yield %r : tensor<1x11xf64, #compound.dims<M, N>>"""
    assert_close([result(spmd(body, "!MN", '{M = ["x", "y"]}'))], [X])


GATHER = """
    %r = collective.gather "N" %a root 4 on @m ["x", "y"] : !l -> !MN
    """


@pytest.mark.parametrize("root", [4, 0])
def test_gather_leaves_the_others_undefined(root: int):
    """A broadcast from the gather's root is right, from another instance NaN."""
    body = f"""{GATHER}
    %b = collective.broadcast %r root {root} on @m ["x", "y"] : !MN -> !MN
    collective.yield %b : !MN"""
    text = spmd(body, "!MN", "{}")
    if root == 4:
        assert_close([result(text)], [X])
        return
    with pytest.raises(VerifyException, match="only instance 4 holds"):
        parse_module(text)
    assert np.all(np.isnan(result(text, verify=False)))


def test_a_gather_is_no_all_gather():
    text = spmd(GATHER + "collective.yield %r : !MN", "!MN", "{}")
    with pytest.raises(VerifyException, match="broadcast is missing"):
        parse_module(text)
    assert np.all(np.isnan(result(text, verify=False)))


def test_work_at_the_root():
    """Gather the terms, reduce them at the root, and send the sum back."""
    body = """
    %p = compound.reduce add %a : !l -> !M
    %g = collective.gather "P" %p root 0 on @m ["x", "y"] : !M -> !MP
    %s = compound.reduce add %g : !MP -> !M
    %b = collective.broadcast %s root 0 on @m ["x", "y"] : !M -> !M
    collective.yield %b : !M"""
    text = spmd(body, "!M", "{}").replace(
        HEAD, HEAD + "!MP = tensor<5x6xf64, #compound.dims<M, P>>\n"
    )
    assert_close([result(text)], [X.sum(axis=1)])


def test_the_order_of_axes_counts():
    text = spmd("collective.yield %a : !l", sharding='{N = ["y", "x"]}')
    with pytest.raises(VerifyException, match="the order counts"):
        parse_module(text)
    x = np.arange(60, dtype=np.float64).reshape(5, 12)
    assert not np.allclose(result(text.replace("5x11", "5x12"), x, verify=False), x)


def test_only_the_last_axes_are_laid_side_by_side():
    """Shares over x alone are not adjacent: those of y lie between them."""
    body = """
    %g = collective.all_gather "N" %a on @m ["x"]
        : !l -> tensor<5x4xf64, #compound.dims<M, N>>
    collective.yield %g : tensor<5x4xf64, #compound.dims<M, N>>"""
    text = spmd(body, sharding='{N = ["y"]}').replace("5x11", "5x12")
    with pytest.raises(VerifyException, match="only the last axes, in order, can be"):
        parse_module(text)
    x = np.arange(60, dtype=np.float64).reshape(5, 12)
    assert not np.allclose(result(text, x, verify=False), x)


def test_scatter_gives_shares_of_the_root():
    body = f"""{GATHER}
    %s = collective.scatter "N" %r root 4 on @m ["x", "y"] : !MN -> !l
    collective.yield %s : !l"""
    assert_close([result(spmd(body))], [X])


@pytest.mark.parametrize(("offset", "wrap"), [(1, "true"), (-2, "true"), (1, "false")])
def test_send_shifts_along_an_axis(offset: int, wrap: str):
    body = f"""
    %t = collective.send %a offset {offset} wrap {wrap} on @m ["y"]
        : !l -> !collective.token<!l>
    %r = collective.recv %t : !collective.token<!l> -> !l
    collective.yield %r : !l"""
    text = spmd(body).replace("5x11", "5x12")
    x = np.random.default_rng(5).standard_normal((5, 12))
    shares = np.roll(x.reshape(5, 2, 3, 2), offset, axis=2)
    if wrap == "false":
        shares[:, :, 0] = 0.0
    assert_close([result(text, x)], [shares.reshape(5, 12)])


SUM = """
    %p = compound.reduce add %a : !l -> !M
    %r = collective.all_reduce add %p on @m ["x", "y"] : !M -> !M
    %n = compound.map neg %r : !M -> !M
    collective.yield %n : !M"""

MUTATIONS = {
    "removed": SUM.replace("neg %r", "neg %p"),
    "yielded partial": SUM.replace("yield %n", "yield %p"),
    "wrong kind": SUM.replace("all_reduce add", "all_reduce max"),
    "one axis forgotten": SUM.replace('["x", "y"]', '["x"]'),
    "one axis twice": SUM.replace(
        "%n = compound",
        '%z = collective.all_reduce add %r on @m ["x"] : !M -> !M\n    %n = compound',
    ).replace("neg %r", "neg %z"),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_collective_is_caught_and_computes_wrong_numbers(mutation: str):
    assert_close([result(spmd(SUM, "!M", "{}"))], [-X.sum(axis=1)])
    text = spmd(MUTATIONS[mutation], "!M", "{}")
    with pytest.raises(VerifyException, match=r"partial|replicated"):
        parse_module(text)
    wrong = result(text, verify=False)
    with pytest.raises(AssertionError):
        assert_close([wrong], [-X.sum(axis=1)])


def test_slices_that_hold_too_much_are_an_error():
    body = """
    %g = collective.all_gather "N" %a on @m ["y"]
        : !l -> tensor<5x5xf64, #compound.dims<M, N>>
    collective.yield %g : tensor<5x5xf64, #compound.dims<M, N>>"""
    x = np.zeros((5, 10))
    text = spmd(body, "!MN", '{N = ["x"]}').replace("5x11", "5x10")
    with pytest.raises(InterpretationError, match="6 elements are concatenated along"):
        result(text, x, verify=False)


def test_a_value_is_split_over_an_axis_once():
    body = """
    %r = collective.scatter "M" %a root 0 on @m ["x"]
        : !l -> tensor<3x2xf64, #compound.dims<M, N>>
    %s = collective.spmd on @m ins(%r : tensor<3x2xf64, #compound.dims<M, N>>)
        sharded [{N = ["y"]}] outs(tensor<3x2xf64, #compound.dims<M, N>>) sharded [{}] {
    ^bb0(%z: tensor<3x1xf64, #compound.dims<M, N>>):
      collective.yield %z : tensor<3x1xf64, #compound.dims<M, N>>
    }
    collective.yield %s : tensor<3x2xf64, #compound.dims<M, N>>"""
    with pytest.raises(InterpretationError, match="a value is split over an axis once"):
        result(spmd(body), verify=False)


@given(
    extent=st.integers(1, 20),
    axes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_join_inverts_split(extent: int, axes: list[int]):
    """Also axis by axis, from the innermost, where groups hold ragged shares."""
    data = np.random.default_rng(extent).standard_normal((2, extent))
    named = {f"x{i}": n for i, n in enumerate(axes)}
    count = int(np.prod(axes))
    tile = -(-extent // count)
    whole = Tensor((), ("M", "N"), data)
    shares = split(whole, "N", named, tile)
    assert_close([join(shares, "N", named, extent).data], [data])
    for axis, size in reversed(named.items()):
        tile *= size
        shares = join(shares, "N", {axis: size}, tile)
    assert_close([shares.data[:, :extent]], [data])
