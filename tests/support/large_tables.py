"""Tables of more numbers than 32 bits address, of which only a few rows are touched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from comet.runtime.program import load_module, program_of


def sums_of_rows(path: Path, ids: Sequence[int]) -> list[float]:
    """
    Run a module that multiplies chosen rows; return the first product of each.

    Row i of those that `ids` name holds i + 1, and all weights are 1. The rest of the
    table is memory that nobody writes, so it takes no room.
    """
    import torch

    from comet.runtime.check import as_tuple
    from comet.runtime.one_rank import one_rank

    program = one_rank(program_of(load_module(str(path)), str(path)))
    assert program is not None
    table, chosen, weights = (
        torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype))
        for tensor in program.inputs
    )
    for number, row in enumerate(ids):
        table[row] = number + 1
        chosen[number] = row
    weights.fill_(1)
    (products,) = as_tuple(program.launch(table, chosen, weights))
    return [float(product) for product in products[:, 0]]
