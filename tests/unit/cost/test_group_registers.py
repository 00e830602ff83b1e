"""
The registers of programs that exchange, against kernels that ptxas compiled for sm_90.

`tests/data/group_registers.csv` was written by `benchmarks/group_registers.py`, with
Triton 3.6 and 3.9.
"""

from dataclasses import replace

import numpy as np
import pytest
from exchange_tables import Row, group_rows
from register_table import spills

VERSIONS = ("3.6", "3.9")
LEFT = 240
"""Kernels with fewer registers have some left."""


def found(triton: str) -> list[Row]:
    """Return the kernels of a version, of which there are enough."""
    listed = list(group_rows(triton))
    assert len(listed) >= 100
    return listed


@pytest.mark.parametrize("triton", VERSIONS)
def test_no_group_that_the_model_admits_spills(triton: str):
    spilling = [row for row in found(triton) if spills(row)]
    assert len(spilling) >= 30
    assert not any(row.admitted for row in spilling)


@pytest.mark.parametrize("triton", VERSIONS)
def test_most_groups_that_do_not_spill_are_admitted(triton: str):
    whole = [row for row in found(triton) if not spills(row)]
    assert sum(row.admitted for row in whole) >= 0.75 * len(whole)


@pytest.mark.parametrize("triton", VERSIONS)
def test_the_loop_over_rows_takes_registers(triton: str):
    """Without them, the estimate of nearly each kernel is too low."""
    without: list[float] = []
    errors: list[float] = []
    for row in found(triton):
        if row.registers < LEFT and not spills(row):
            nest = replace(row.summary.nest, group={})
            alone = replace(row, summary=replace(row.summary, nest=nest))
            errors.append(row.registers - row.expected)
            without.append(row.registers - alone.expected)
    assert np.mean(np.abs(errors)) < 0.6 * np.mean(np.abs(without))
