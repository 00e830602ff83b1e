"""Launches of models are recorded as CUDA graphs by torch, if they are asked to be."""

import json
from typing import Any

import pytest
from paths import ROOT, SUPPORT
from torch_python import run_python

SCRIPT = SUPPORT / "recorded_models.py"
PARAMETERS = [0, 1, 3, 4]
"""The inputs that keep their addresses; input 2 is what the model is called with."""
FORWARD: dict[str, object] = {
    "is_backward": False,
    "is_inference": False,
    "device_index": 3,
    "static": PARAMETERS,
}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Return what the script prints."""
    done = run_python([SCRIPT], {"TRITON_INTERPRET": "1"}, ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_step_is_two_graphs(found: dict[str, Any]):
    """The last input of the gradients is the gradient of the result, which moves."""
    backward = FORWARD | {"is_backward": True, "static": [0, 1, 2, 3]}
    assert found["learned"].pop("error") < 1e-5
    assert found["learned"] == {"notes": [FORWARD, backward], "others": 0}


def test_a_mode_means_the_same(found: dict[str, Any]):
    assert found["inferred"] == [FORWARD | {"is_inference": True}]


def test_gradients_are_recorded_only_behind_a_forward_graph(found: dict[str, Any]):
    assert found["forward refused"].pop("error") < 1e-5
    assert found["forward refused"] == {"notes": [], "others": 0}


def test_torch_learns_of_gradients_that_are_not_recorded(found: dict[str, Any]):
    assert found["backward refused"].pop("error") < 1e-5
    assert found["backward refused"] == {"notes": [FORWARD], "others": 1}


def test_memory_of_a_plan_is_allocated_before_it_is_recorded(
    found: dict[str, Any],
):
    assert found["split"]["error"] < 1e-3
    assert found["split"]["devices"] == [["cpu"]]


def test_nothing_is_recorded_without_a_gpu(found: dict[str, Any]):
    assert found["without a GPU"] < 1e-5
    assert found["skips"] == 1
