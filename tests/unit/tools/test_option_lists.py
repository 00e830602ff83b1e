"""Options that are lists may be quoted."""

import pytest
from xdsl.utils.arg_spec import parse_spec

from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.pipelines.comet_accelerator import CometAcceleratorPass
from comet.passes.schedule.fuse import FusePass
from comet.passes.sharding.distribute import DistributePass
from comet.tools.diagnostics import UsageError
from comet.tools.option_check import checked


@pytest.mark.parametrize("axes", ["cx,cy", '"cx,cy"', '"cx, cy"', '"cx","cy"'])
def test_a_list_may_be_quoted(axes: str) -> None:
    made = checked(
        "pass", parse_spec(f"distribute{{dim=N axes={axes}}}"), DistributePass
    )
    assert made == DistributePass("N", ("cx", "cy"))


def test_a_list_that_may_be_left_out_may_be_quoted() -> None:
    made = checked(
        "pass", parse_spec('comet-accelerator{dim="H,M"}'), CometAcceleratorPass
    )
    assert made.dim == ("H", "M")


def test_text_with_commas_is_no_list() -> None:
    spec = parse_spec('attach-hardware{path="one, two.yaml"}')
    assert checked("pass", spec, AttachHardwarePass).path == "one, two.yaml"


def test_of_two_options_with_one_value_the_wrong_one_is_named() -> None:
    spec = parse_spec("fuse{strategy=none between=none}")
    with pytest.raises(UsageError, match="'between' is one of"):
        checked("pass", spec, FusePass)


def test_a_list_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(UsageError, match="'axes' is"):
        checked("pass", parse_spec("distribute{dim=N axes=1,2}"), DistributePass)
