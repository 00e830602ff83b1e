"""Random ops of torch are parts of kernels, by seeds that torch draws."""

import json
from typing import Any

import pytest
from paths import ROOT, SUPPORT
from torch_python import run_python


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Return what compiled functions do, in one process."""
    script = SUPPORT / "pytorch_dropout.py"
    done = run_python([script], {"TRITON_INTERPRET": "1"}, ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["layers", "checkpoint", "attention", "exported"])
def test_results_and_gradients_are_those_of_the_same_numbers(
    name: str, found: dict[str, Any]
):
    """Forward and backward drop the same elements, which a formula drops, too."""
    assert found[name] < 2e-6


def test_random_ops_have_their_distributions(found: dict[str, Any]):
    assert all(found["statistics"].values()), found["statistics"]


def test_a_call_draws_all_its_seeds_at_once(found: dict[str, Any]):
    assert found["draws once"]


def test_narrow_numbers_are_below_one(found: dict[str, Any]):
    assert found["narrow"]


def test_what_torch_runs_has_the_same_numbers(found: dict[str, Any]):
    assert found["philox"]
