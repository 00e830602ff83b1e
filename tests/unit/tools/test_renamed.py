"""An old name of a pass, an op or an option's value is an error with the new name."""

import pytest
from tool_run import comet_opt

from comet.dialects import get_all_dialects
from comet.passes import get_all_passes
from comet.tools.renamed import RENAMED

FUNCTION = """
func.func @f(%a: tensor<4xf32, #compound.dims<M>>) -> tensor<4xf32, #compound.dims<M>> {
  func.return %a : tensor<4xf32, #compound.dims<M>>
}
"""
OPS = sorted(name for name in RENAMED if "." in name)


@pytest.mark.parametrize("old", OPS)
def test_an_old_op_is_named_with_its_new_name(old: str):
    done = comet_opt(f'"{old}"() : () -> ()')
    assert f"there is no operation {old}; it is called '{RENAMED[old]}' now" in done.err


def test_an_old_pass_is_named_with_its_new_name():
    done = comet_opt(FUNCTION, "exchange-terms")
    assert "no pass named 'exchange-terms'; it is called 'lower-reductions'" in done.err


def test_an_old_value_is_named_with_its_new_name():
    done = comet_opt(FUNCTION, "fuse{strategy=apart}")
    assert "not apart; it is called 'isolate_contractions' now" in done.err


def test_new_names_are_there_and_old_ones_are_not():
    ops = {op.name for make in get_all_dialects().values() for op in make().operations}
    there = ops | set(get_all_passes()) | {"isolate_contractions"}
    assert set(RENAMED.values()) <= there
    assert not set(RENAMED) & there
