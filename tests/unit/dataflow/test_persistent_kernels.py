"""Persistent kernels on ranks that do not keep step: with room for one program, too."""

from pathlib import Path

import pytest
from covering import one_of, some
from gpu_ranks import H200X8, SHARED_TEXTS, TEXTS
from interpreting import reports
from triton_modules import emitted

from comet.runtime.request import Request

ALL_TEXTS = {**TEXTS, **SHARED_TEXTS}
SIZES = {"M": 5, "N": 7, "K": 6}
KINDS = [
    ("softmax", 3),  # what the producer keeps is read beside what it sends
    ("ring_attention", 2),  # the kernel sends two inputs before it reads them
    ("gemm_reduce_scatter", 2),  # ranks get different parts of what is made
    ("expert_gemm", 2),  # ranks get different parts of an input
]


@one_of(2)
@pytest.mark.parametrize(("name", "ranks"), some(KINDS, 2))
def test_one_program_at_a_time_is_enough(name: str, ranks: int, tmp_path: Path) -> None:
    text = ALL_TEXTS[name].format(**SIZES)
    dim = "" if "collective.shard" in text else " dim=N"
    options = f"ranks={ranks} pattern=fused persistent=true{dim}"
    path = tmp_path / "module.py"
    path.write_text(emitted(text, f"{H200X8},triton-distributed{{{options}}}"))
    found = reports(
        [
            Request(str(path), "scheduler", seed, ranks, room)
            for seed, room in enumerate((1, None))
        ]
    )
    assert all(report["ok"] for report in found), found
