"""The page on a chain of mappings: its parts add up, and each mapping is there."""

from functools import cache

import pytest
from paths import ROOT
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp

from comet.codegen.comet.chain import chain_of
from comet.report.chain_report import chain_figures
from comet.report.compiled_report import Compilation, page_of_compiled
from comet.report.page import Page, Table

EDGE = f'attach-hardware{{path="{ROOT / "samples/hardware/edge.yaml"}"}}'
TEXT = """
  !X = tensor<8x16xf16, #compound.dims<M, D>>
  !N = tensor<8x16xf16, #compound.dims<N, D>>
  !S = tensor<8x8xf16, #compound.dims<M, N>>
  func.func @scores(%x: !X) -> !S {
    %q = compound.map exp %x : !X -> !X
    %keys = compound.rename %q : !X -> !N
    %s = compound.contract %q, %keys : !X, !N -> !S
    func.return %s : !S
  }"""


@cache
def chain() -> ModuleOp:
    return run_passes(parse_module(TEXT), f"{EDGE},comet-accelerator{{pad=none}}")


def page(other: tuple[str, ModuleOp] | None = None) -> Page:
    made = Compilation(chain(), "scores.mlir", {}, (), ())
    return page_of_compiled(made, other)


def test_the_headline_is_the_sum():
    found = chain_of(chain())
    assert found is not None
    figures = chain_figures(found, "paper")
    assert figures.latency == sum(each.latency for each in figures.mappings)
    facts = page().facts
    assert facts["latency, cycles"] == f"{figures.latency:,.0f}"
    assert facts["energy, pJ"] == f"{figures.energy:,.0f}"
    assert facts["mappings"] == "2"
    assert "2 mappings run one after the other" in page().summary


def test_the_mappings_are_listed_and_each_has_a_section():
    sections = {section.name: section for section in page().sections}
    assert list(sections) == [
        "chain",
        "mapping-1",
        "mapping-2",
        "choices",
        "reproduce",
    ]
    (listed,) = (part for part in sections["chain"].parts if isinstance(part, Table))
    rows = [row.cells for row in listed.rows]
    assert [row[0] for row in rows] == ["mapping 1", "mapping 2", "sum"]
    assert [row[4:] for row in rows[:2]] == [("x", "q"), ("q keys", "s")]
    assert "resident" not in page().html()


@pytest.mark.parametrize("single", [False, True])
def test_another_program_may_be_beside_it(single: bool):
    other = chain()
    if single:
        text = (ROOT / "samples/gemm.mlir").read_text()
        options = "strategy=full pad=none dim=M"
        other = run_passes(parse_module(text), f"{EDGE},comet-accelerator{{{options}}}")
    sections = {section.name: section for section in page(("b.mlir", other)).sections}
    (numbers,) = (p for p in sections["compare"].parts if isinstance(p, Table))
    assert [row.cells[0] for row in numbers.rows] == ["latency, cycles", "energy, pJ"]
    same = [row.cells[3] == "1.000 x" for row in numbers.rows]
    assert same == [not single] * 2
