"""`scale-maxima`: maxima of unscaled scores, so that k x - m is one instruction."""

import re
from pathlib import Path

import pytest
from covering import one_of, some
from masked_programs import causal, decode, first_rows_see_nothing
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import emitted, hardware, wrong
from xdsl.dialects.builtin import ModuleOp

from comet.dialects.compound import MapKind, MapOp, ReduceKind, ReduceOp
from comet.passes.analysis.functions import compute_functions

H200 = hardware("h200x1.yaml")
TILED = f"{H200},decompose,stream,use-exp2,fuse{{strategy=full}},tile"
PROGRAMS = {
    "full": causal(37, 101).replace(" causal :", " :"),
    "causal": causal(37, 101),
    "lengths": decode(70),
    "blind": first_rows_see_nothing(),
}
"""Programs whose masks, if they have one, select finite numbers."""


def scaled_maxima(module: ModuleOp) -> int:
    """Return how many maxima of kernels read a product."""
    ops = [op for func in compute_functions(module) for op in func.walk()]
    maxima = (op for op in ops if isinstance(op, ReduceOp))
    read = [op.input.owner for op in maxima if op.kind.data is ReduceKind.MAX]
    products = (op for op in read if isinstance(op, MapOp))
    return [op.kind.data for op in products].count(MapKind.MULT)


@one_of(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_meaning_stays(name: str):
    before = run_passes(parse_module(PROGRAMS[name]), TILED)
    after = run_passes(before, "scale-maxima")
    assert str(after) != str(before)
    assert scaled_maxima(after) == 0
    assert_same_meaning(before, after, "main")


def test_kernels_compute_the_same(tmp_path: Path):
    sources = {
        name: emitted(text, f"{H200},triton-distributed{{strategy=full}}")
        for name, text in PROGRAMS.items()
    }
    maxima = [
        re.findall(r"tl\.max\(.*(products|masked|scores)", text)
        for text in sources.values()
    ]
    assert maxima == [["products"], ["masked"], ["masked"], ["masked"]]
    assert not wrong(dict(some(sources.items(), 2)), tmp_path)


def test_rows_that_infinities_hide_are_nan(tmp_path: Path):
    text = re.sub(r"-\d\.\d+e\+38", "-inf", first_rows_see_nothing())
    source = emitted(text, f"{H200},triton-distributed{{strategy=full}}")
    assert re.search(r"tl\.where\(.*float\(.-inf.\)", source)
    assert not wrong({"blind": source}, tmp_path)
