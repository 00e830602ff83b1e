"""Python source text: width and precedence."""

import pytest

from comet.codegen.python_text import (
    Expr,
    Precedence,
    PythonNames,
    call,
    infix,
    tuple_of,
    wrapped,
)


def test_short_lines_stay():
    assert wrapped("f(x, y)", "    ") == ["    f(x, y)"]


def test_arguments_move_to_one_line_if_they_fit():
    line = f"result = function({'a' * 40}, {'b' * 40})"
    assert wrapped(line, "") == [
        "result = function(",
        f"    {'a' * 40}, {'b' * 40}",
        ")",
    ]


def test_else_every_argument_gets_a_line():
    line = f"f({'a' * 60}, g({'b' * 50}, {'c' * 50}), (d,))"
    assert wrapped(line, "") == [
        "f(",
        f"    {'a' * 60},",
        "    g(",
        f"        {'b' * 50},",
        f"        {'c' * 50},",
        "    ),",
        "    (d,),",
        ")",
    ]


def test_a_line_without_brackets_cannot_be_broken():
    assert wrapped("a" * 100, "") == ["a" * 100]


@pytest.mark.parametrize("tail", ["", "[:, None]"])
def test_the_longest_bracket_is_opened(tail: str):
    line = f"x = f(a) + g({'b' * 80}){tail}"
    assert wrapped(line, "") == ["x = f(a) + g(", f"    {'b' * 80}", f"){tail}"]


def test_lines_in_brackets_break_in_front_of_the_loosest_operators():
    a, b, c = "a" * 20, "b" * 40, "c" * 50
    assert wrapped(f"f({a} * {b} + g({c}, {a}) - x[:, None], mask={b} & {c})", "") == [
        "f(",
        f"    {a} * {b}",
        f"    + g({c}, {a})",
        "    - x[:, None],",
        f"    mask={b}",
        f"    & {c},",
        ")",
    ]


def test_a_group_of_one_is_no_tuple():
    a, b = "a" * 40, "b" * 60
    assert wrapped(f"x = ({a} - {b}) * y[:, None]", "") == [
        "x = (",
        f"    {a}",
        f"    - {b}",
        ") * y[:, None]",
    ]


def test_subscripts_are_left_whole():
    line = f"x = {'a' * 80}[:, None, None] * f(y)"
    assert wrapped(line, "") == [f"x = {'a' * 80}[:, None, None] * f(", "    y", ")"]


def test_infix_is_left_associative():
    a, b, c = Expr("a"), Expr("b"), Expr("c")
    left = infix("-", Precedence.SUM, infix("-", Precedence.SUM, a, b), c)
    right = infix("-", Precedence.SUM, a, infix("-", Precedence.SUM, b, c))
    assert (left.text, right.text) == ("a - b - c", "a - (b - c)")


def test_calls_and_tuples():
    assert call("f", "a", "b=c").text == "f(a, b=c)"
    assert tuple_of(["a"]) == "(a,)"
    assert tuple_of(["a", "b"]) == "(a, b)"


def test_names_are_numbered_and_released():
    names = PythonNames(["taken"])
    assert [names.fresh(hint) for hint in ("taken", "n", "n", "for", "2x", "")] == [
        "taken_1",
        "n",
        "n_1",
        "for_1",
        "v2x",
        "v",
    ]
    names.release(["n"])
    assert names.fresh("n") == "n"
