"""The blocks of `samples/blocks` at their published widths, as cases."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ladder_programs import Case, parsed
from xdsl.ir import SSAValue

from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import compute_block

SCRIPT = Path(__file__).parents[1] / "tests" / "support" / "sample_blocks.py"

BLOCKS = (
    *("llama", "llama_backward", "llama_decode"),
    *("gpt2", "gpt2_backward", "vit", "experts"),
)
"""Those of one GPU."""
TOKENS: Mapping[str, str] = {"llama": "M={0} N={0}", "gpt2": "M={0} N={0}"}
"""How many tokens a block has; the others have one published size."""


def blocks(names: Iterable[str], tokens: Iterable[int]) -> Iterator[Case]:
    """Yield blocks, those of sequences with each number of tokens."""
    for name in names:
        extents = TOKENS.get(name.removesuffix("_backward"))
        if extents is None:
            yield Case(name, 1, written(name))
            continue
        for count in tokens:
            yield Case(
                f"{name} M={count}", 1, written(name, *extents.format(count).split())
            )


def written(name: str, *extents: str) -> str:
    """Return the text of a block; `extents` are arguments such as M=128."""
    command = [sys.executable, str(SCRIPT), name, *extents]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def stacked(text: str, count: int) -> str:
    """
    Return the text of so many blocks in a row.

    Each reads the result of the one before as its first argument, which has the same
    type; the other arguments are those of all blocks.
    """
    _, module = parsed(text)
    (func,) = compute_functions(module)
    block = compute_block(func)
    *ops, end = block.ops
    (result,) = end.operands
    for number in range(1, count):
        copied: dict[SSAValue, SSAValue] = {block.args[0]: end.operands[0]}
        for op in ops:
            made = op.clone(copied)
            block.insert_op_before(made, end)
            for value in made.results:
                value.name_hint = f"{value.name_hint}_{number}"
        end.operands[0] = copied[result]
    return str(module)
