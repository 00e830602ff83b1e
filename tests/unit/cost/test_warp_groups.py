"""Groups of warps that compute in turns, and kernels in which others load for them."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from covering import one_of
from gpu_programs import of_one_rank
from ladder_programs import Case, after_passes, predicted_times

from comet.cost.gpu.warp_groups import in_turns, refilling
from comet.passes.pipelines.triton_distributed import TritonDistributedPass

FULL = {"B": 4, "H": 32, "M": 4096, "N": 4096, "D": 128, "E": 128}
LONG = {"B": 1, "H": 32, "M": 16384, "N": 16384, "D": 128, "E": 128}


def test_groups_share_units_as_two_queues():
    """By hand: two customers, services 3 and 1; the queue of the first is 3/4 long."""
    assert in_turns(6.0, 2.0, 1) == 8.0
    assert in_turns(6.0, 2.0, 2) == pytest.approx(3 * 1.75 + 1 * 1.25)
    assert in_turns(2.0, 6.0, 2) == in_turns(6.0, 2.0, 2)
    assert in_turns(6.0, 0.0, 2) == 6.0
    assert in_turns(0.0, 0.0, 2) == 0.0
    both = in_turns(np.array([6.0, 6.0]), 2.0, np.array([1.0, 2.0]))
    assert np.array_equal(both, [8.0, 6.5])
    assert 6.0 < in_turns(6.0, 2.0, 3) < 6.5


def test_buffers_are_loaded_again_when_they_are_free():
    assert refilling(4.0, 2.0, 2) == 3.0


def predicted(sample: str, extents: dict[str, int], **options: object) -> float:
    """Return the microseconds of a launch in tiles of 128 rows, specialized."""
    program = of_one_rank(sample, extents, "bfloat16")
    compiler = TritonDistributedPass(to="dataflow", **options)  # pyright: ignore[reportArgumentType]
    plan = after_passes(Case("", 1, program.text), program.hardware, [compiler])
    return 1e6 * predicted_times(plan).eager


@one_of(2)
@pytest.mark.parametrize(
    ("keys", "persist", "measured"),
    [
        (128, "none", 1988.5),
        (128, "specialized", 1713.4),
        (64, "none", 2023.4),
        (64, "specialized", 1938.7),
    ],
)
def test_specialized_attention_is_near_what_was_measured(
    keys: int, persist: str, measured: float
):
    """The third run of benchmarks/figures/h200.md."""
    grid = "o: B=4 H=32 M=32 E=1 warps=4 stages=2 group=1 specialize=1"
    factors = f"{grid}; m_n: N={4096 // keys}; products_d: D=1"
    found = predicted("attention", FULL, factors=factors, persist=persist)
    assert abs(log(found / measured)) < log(1.15)


@one_of(2)
@pytest.mark.parametrize(
    ("sample", "extents", "fastest"),
    [
        ("attention", FULL, 1627.1),
        ("attention_causal", FULL, 1037.2),
        ("attention_causal", LONG, 3786.6),
    ],
)
def test_attention_is_specialized_by_default(
    sample: str, extents: dict[str, int], fastest: float
):
    """The fastest measured forms; 1231 and 4413 us without it, for causal attention."""
    found = predicted(sample, extents)
    assert abs(log(found / fastest)) < log(1.12)
