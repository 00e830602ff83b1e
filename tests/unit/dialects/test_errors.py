"""Errors carry the op that they are about."""

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp, i32

from comet.dialects.errors import OpError, about, called, op_of

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


def test_a_value_is_called_by_its_name_if_it_has_one():
    (value,) = test.TestOp(result_types=[i32]).results
    assert called(value) == "a value without a name"
    value.name_hint = "x"
    assert called(value) == "%x"
