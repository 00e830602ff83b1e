"""Errors carry the op that they are about."""

import pytest
from xdsl.dialects.builtin import ModuleOp

from comet.dialects.errors import OpError, about, op_of

OUTER, INNER = ModuleOp([]), ModuleOp([])


def test_an_error_without_op_is_about_that_of_the_innermost_body():
    with pytest.raises(ValueError, match="wrong") as raised:
        with about(OUTER), about(INNER):
            raise ValueError("wrong")
    assert op_of(raised.value) is INNER


def test_an_op_that_an_error_carries_stays():
    with pytest.raises(OpError) as raised:
        with about(OUTER):
            raise OpError(INNER, "wrong")
    assert op_of(raised.value) is INNER
    assert op_of(ValueError("wrong")) is None
