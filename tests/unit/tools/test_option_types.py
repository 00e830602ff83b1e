"""The types of options in plain words."""

from typing import Literal

import pytest
from xdsl.utils.arg_spec import parse_spec

from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.tools.diagnostics import UsageError
from comet.tools.option_check import checked
from comet.tools.option_types import type_in_words


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (int | None, "a whole number"),
        (bool | None, "true or false"),
        (int | float, "a number"),
        (tuple[int, ...] | None, "a list of whole numbers"),
        (Literal["each", "all"] | None, "one of 'each', 'all'"),
        (bool | Literal["auto"], "true, false or 'auto'"),
        (Literal["fast", "none"] | tuple[str, ...], "'fast', 'none' or a list of na"),
    ],
)
def test_types_have_plain_words(kind: object, words: str) -> None:
    assert type_in_words(kind).startswith(words)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("sources=foo", "'sources' is one of 'each', 'all', not foo"),
        ("persistent=yes", "'persistent' is true or false, not yes"),
        ("ctas=two", "'ctas' is a whole number or 'auto', not two"),
        ("ctas", "'ctas' has no value; it is a whole number or 'auto'"),
        ("ranks", "'ranks' has no value; it is a whole number"),
        ("ranks=true", "'ranks' is a whole number, not true"),
        ('ranks="2"', "'ranks' is a whole number, not \"2\"; leave out the quotes"),
        ('stream="false"', 'is true or false, not "false"; leave out the quotes'),
    ],
)
def test_a_wrong_value_has_the_right_type_in_plain_words(
    options: str, reason: str
) -> None:
    spec = parse_spec(f"triton-distributed{{{options}}}")
    with pytest.raises(UsageError, match=f"{reason}$"):
        checked("pass", spec, TritonDistributedPass)


@pytest.mark.parametrize("version", ["3.8", "3.8,3.9"])
def test_a_number_or_a_list_for_text_lacks_quotes(version: str) -> None:
    spec = parse_spec(f"attach-hardware{{path=a triton={version}}}")
    with pytest.raises(UsageError, match=f"is text, not {version}; put it in quotes$"):
        checked("pass", spec, AttachHardwarePass)
