"""Producer warps: whether a kernel can have them is tried where they are faster."""

from collections.abc import Sequence

import pytest
from paths import ROOT
from semantics import parse_module, run_passes
from xdsl.dialects.func import FuncOp

from comet.dialects.arch import SystemOp
from comet.passes.schedule.plan_string import PlanEntry
from comet.passes.search import session
from comet.passes.search.record import Choice
from comet.passes.triton import specialize_tiles

H200 = f'attach-hardware{{path="{ROOT}/samples/hardware/h200x1.yaml"}}'
ATTENTION = """
!x = tensor<4x32x{M}x128xbf16>
func.func @attention(%q: !x, %k: !x, %v: !x) -> !x {{
  %o = compound.attention %q, %k, %v : (!x, !x, !x) -> !x
  func.return %o : !x
}}
"""


def choice_of_warps(rows: int) -> Choice:
    """Return the choice of warps for an attention of so many queries and keys."""
    tiled = "decompose,stream,fuse{strategy=full},tile"
    module = run_passes(parse_module(ATTENTION.format(M=rows)), f"{H200},{tiled}")
    with session() as current:
        run_passes(module, "specialize-tiles")
    (choice,) = (each for each in current.choices if each.name == "warps")
    return choice


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[FuncOp]:
    """The functions that are lowered to try; no loop is taken."""
    found = list[FuncOp]()

    def none(func: FuncOp, _: Sequence[PlanEntry], __: SystemOp) -> frozenset[str]:
        found.append(func)
        return frozenset()

    monkeypatch.setattr(specialize_tiles, "loading_nodes", none)
    return found


def test_a_kernel_that_is_slower_with_them_is_not_tried(lowered: list[FuncOp]) -> None:
    """Few keys do not pay for the start of a pipeline."""
    choice = choice_of_warps(256)
    assert choice.chosen == 0
    assert lowered == []


def test_a_faster_kernel_that_cannot_have_them_stays(lowered: list[FuncOp]) -> None:
    choice = choice_of_warps(4096)
    assert choice.chosen == 0
    assert "specialize-warps" in choice.rows[1].limit
    assert len(lowered) == 1
