"""Checks of IR before its ops verify what is around them."""

import pytest
from semantics import parse_module
from xdsl.utils.exceptions import VerifyException

from comet.tools.checks import check_structure


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('arch.memory "DRAM" {width = 8}', "expects parent op 'arch.system'"),
        (
            'arch.level @GB : "GBuffer" {\n}',
            "expects parent op to be one of 'arch.system', 'arch.level'",
        ),
        ("%e = dataflow.epoch", "expects parent op 'dataflow.kernel'"),
    ],
)
def test_an_op_that_stands_elsewhere_is_rejected_before_it_verifies(
    text: str, message: str
):
    with pytest.raises(VerifyException, match=message):
        check_structure(parse_module(text, verify=False))
