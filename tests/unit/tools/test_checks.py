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


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("arg_attrs = [{}]", "arg_attrs of @main has 1 dictionaries for 2 values"),
        ("res_attrs = [{}, {}]", "res_attrs of @main has 2 dictionaries for 1 values"),
    ],
)
def test_a_signature_has_one_dictionary_for_each_value(signature: str, message: str):
    text = f"""
    "func.func"() <{{sym_name = "main", {signature},
        function_type = (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>}}> ({{
    ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>):
      "func.return"(%a) : (tensor<2xf32>) -> ()
    }}) : () -> ()
    """
    with pytest.raises(VerifyException, match=message):
        check_structure(parse_module(text, verify=False))
