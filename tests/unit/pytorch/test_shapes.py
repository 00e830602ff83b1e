"""Models whose shapes change are compiled for each of the first ones."""

import json
from typing import Any

import pytest
from paths import ROOT, SUPPORT
from torch_python import run_python


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Return what compiled models do, in one process."""
    script = SUPPORT / "pytorch_shapes.py"
    done = run_python([script], {"TRITON_INTERPRET": "1"}, ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["few", "many"])
def test_results_and_gradients_are_right(name: str, found: dict[str, Any]):
    assert found[name]["error"] < 1e-5


def test_each_shape_is_compiled_once(found: dict[str, Any]):
    """Two shapes have a forward and a backward graph each."""
    assert (found["few"]["regions"], found["few"]["slow"]) == (4, [])


def test_shapes_beyond_the_limit_of_torch_run_in_torch(found: dict[str, Any]):
    """They are warned of once."""
    (slow,) = found["many"]["slow"]
    assert "runs in torch for other shapes than the first 2" in slow
    assert found["many"]["regions"] == 4
