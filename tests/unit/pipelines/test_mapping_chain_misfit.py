"""Graphs that one mapping may hold, but whose tiles fit only where they are cut."""

from __future__ import annotations

import pytest
from comet_rules import check
from covering import exhaustive
from paths import ROOT
from semantics import comet_context, parse_module
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.comet import write_files
from comet.codegen.comet.chain import chain_of
from comet.passes.pipeline import run_settled, spelled
from comet.passes.search.record import Choice, session
from comet.universe import installed

TEXT = """
  !A = tensor<{M}x4xf16, #compound.dims<M, K>>
  !B = tensor<4x{N}xf16, #compound.dims<K, N>>
  !C = tensor<{M}x{N}xf16, #compound.dims<M, N>>
  !D = tensor<{N}x4xf16, #compound.dims<N, P>>
  !E = tensor<{M}x4xf16, #compound.dims<M, P>>
  !N = tensor<{N}xf16, #compound.dims<N>>
  !M = tensor<{M}xf16, #compound.dims<M>>
  func.func @main(%a: !A, %b: !B, %d: !D) -> !E {{
    %c = compound.contract %a, %b : !A, !B -> !C
    %m = compound.reduce max %c : !C -> !N
    %x = compound.map sub %c, %m : !C, !N -> !C
    %e = compound.contract %x, %d : !C, !D -> !E
    %r = compound.reduce max %e : !E -> !M
    %y = compound.map sub %e, %r : !E, !M -> !E
    func.return %y : !E
  }}"""
"""Columns of the first product are whole in one mapping, rows of the second in both."""

FULL = "strategy=full stream=false pad=none"
"""Options by which one nest has all ops."""


def compiled(text: str, options: str) -> tuple[str, ModuleOp, list[Choice]]:
    """Return the passes that ran, what they made, and what was compared."""
    module, context = parse_module(text), comet_context().clone()
    path = ROOT / "samples/hardware/edge.yaml"
    spec = f'attach-hardware{{path="{path}"}},comet-accelerator{{{options}}}'
    pipeline = PassPipeline.parse_spec(installed().all_passes, spec)
    with session() as searched:
        done = run_settled(pipeline.passes, context, module)
    return spelled(done), module, searched.choices


@pytest.mark.parametrize(
    "dim", ["", pytest.param("dim=N search=exact", marks=exhaustive)]
)
def test_the_graph_is_cut_where_one_mapping_has_no_fitting_tiles(dim: str):
    passes, module, choices = compiled(TEXT.format(M=1024, N=1024), f"{FULL} {dim}")
    assert 'outline-mappings{mappings="x; y"}' in passes
    chain = chain_of(module)
    assert chain is not None
    for each in chain.folders.values():
        assert check(write_files(each)) == []
    (choice,) = (each for each in choices if each.name == "chain")
    assert choice.chosen == 0
    cut, whole = choice.rows
    assert cut.label == "products: 2 mappings"
    assert whole.label == "one mapping"
    assert whole.cost is None
    assert "level OB needs 131200 bytes and has 131072" in whole.limit


def test_the_error_of_one_mapping_remains_where_no_chain_fits():
    with pytest.raises(PassFailedException, match=r"level OB needs .* that of %c with"):
        compiled(TEXT.format(M=65536, N=1024), FULL)


@pytest.mark.parametrize("option", ["mappings=one", 'factors="c_ob: K=1"'])
def test_options_of_one_mapping_cut_nothing(option: str):
    with pytest.raises(PassFailedException, match=r"tile: .*level OB needs"):
        compiled(TEXT.format(M=1024, N=1024), f"{FULL} dim=N {option}")


def test_what_one_mapping_holds_is_one():
    passes, module, choices = compiled(TEXT.format(M=64, N=64), f"{FULL} dim=N")
    assert "outline-mappings" not in passes
    assert chain_of(module) is None
    assert "chain" not in {each.name for each in choices}
