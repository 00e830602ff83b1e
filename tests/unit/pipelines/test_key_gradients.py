"""Gradients of keys that only later queries see: loops that a mask starts."""

from pathlib import Path

import pytest
from covering import exhaustive
from gpu_graphs import KEY_GRADIENTS
from triton_modules import emitted, hardware, wrong

SIZES = ((37, 37), (64, 64), (70, 33), (33, 70))
"""Queries and keys; with more keys than queries nothing sees the last ones."""


@pytest.mark.parametrize("gpu", ["h200x1", pytest.param("mi300x8", marks=exhaustive)])
def test_kernels_agree_with_their_references(gpu: str, tmp_path: Path):
    pipeline = (
        f"{hardware(f'{gpu}.yaml')},triton-distributed{{strategy=partial "
        'factors="d: K=2 N={keys}; d_r: R=3; d_m: M={rows}"}'
    )
    sources = {
        f"{rows} x {keys}": emitted(
            KEY_GRADIENTS.format(M=rows, N=keys),
            pipeline.replace("{rows}", str(-(-rows // 16))).replace(
                "{keys}", str(-(-keys // 16))
            ),
        )
        for rows, keys in SIZES
    }
    assert all("start = " in source for source in sources.values())
    assert not wrong(sources, tmp_path)
