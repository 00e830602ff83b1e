"""The dimensions that `comet-accelerator` shares if it is free to choose."""

from functools import cache

import pytest
from covering import EVERY_CASE, one_of
from paths import HARDWARE
from programs import graph_text
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp, StringAttr

from comet.dialects.comet import MappingOp
from comet.dialects.cost import estimate_of
from comet.passes.sharding.distribute.auto import SHARDED_DIMS, candidates, result_dims

LEFT, RIGHT = "tensor<64x16xf16>", "tensor<16x64xf16>"
GEMM_GEMM = f"""
func.func @main(%a: {LEFT}, %b: {RIGHT}, %c: {LEFT}) -> {LEFT} {{
  %y = compound.gemm_gemm %a, %b, %c : ({LEFT}, {RIGHT}, {LEFT}) -> {LEFT}
  func.return %y : {LEFT}
}}
"""
SOFTMAX = graph_text("gemm_softmax", (64, 16, 256))
ODD_ROWS = graph_text("gemm_layernorm", (30, 16, 64))
TEXTS = {
    **({"softmax": SOFTMAX} if EVERY_CASE else {}),
    "few rows": graph_text("gemm_softmax", (2, 16, 512)),
    **({"odd rows": ODD_ROWS} if EVERY_CASE else {}),
    "two products": GEMM_GEMM,
}
STRATEGIES = {
    "softmax": "full",
    "few rows": "full",
    "odd rows": "full",
    "two products": "auto" if EVERY_CASE else "full",
}
"""What the choice of dimensions is made under: with `auto` both are chosen together."""
REST = "pad=none stream=false loops=shared"
"""What else is given, so that these are the only choices."""


@cache
def mapping_of(text: str, hardware: str, options: str = "") -> MappingOp:
    passes = f'attach-hardware{{path="{HARDWARE}/{hardware}.yaml"}}'
    module = run_passes(
        parse_module(text), f"{passes},comet-accelerator{{{options}}}".replace("{}", "")
    )
    (mapping,) = [op for op in module.walk() if isinstance(op, MappingOp)]
    return mapping


def sharded(case: str, dims: str) -> MappingOp:
    """Return the mapping of a case with these dimensions over the cores."""
    options = f'dim="{dims}" strategy={STRATEGIES[case]} {REST}'
    return mapping_of(TEXTS[case], "edge", options)


def latency(mapping: MappingOp) -> float:
    estimate = estimate_of(mapping)
    assert estimate is not None
    return estimate.latency


def chosen(mapping: MappingOp) -> str | None:
    noted = mapping.attributes.get(SHARDED_DIMS)
    return noted.data if isinstance(noted, StringAttr) else None


def decomposed(text: str) -> ModuleOp:
    return run_passes(parse_module(text), "decompose{accumulator=input}")


@one_of(2)
@pytest.mark.parametrize("case", TEXTS)
def test_the_cheapest_choice_is_sharded_and_noted(case: str) -> None:
    found = sharded(case, "auto")
    rows = ",".join(candidates(decomposed(TEXTS[case]))[1])
    choices = {dims: latency(sharded(case, dims)) for dims in ("N", rows, "")}
    dims = chosen(found)
    assert dims is not None
    assert latency(found) == choices[dims]
    assert latency(found) == min(choices.values())


def test_there_is_something_to_choose() -> None:
    found = {chosen(sharded(case, "auto")) for case in TEXTS}
    assert len(found) > 1


def test_where_nothing_is_given_there_is_a_choice() -> None:
    found = chosen(mapping_of(TEXTS["two products"], "edge", REST))
    assert found == chosen(sharded("two products", "auto"))


@one_of(2)
@pytest.mark.parametrize(
    "options", ["dim=M", "strategy=full", "kind=allreduce", 'factors="c_ob: M=2"']
)
def test_what_is_given_leaves_nothing_to_choose(options: str) -> None:
    text = graph_text("gemm_softmax", (8, 4, 16))
    assert chosen(mapping_of(text, "edge", f"{options} {REST}")) is None


def test_a_choice_can_be_asked_for() -> None:
    mapping = mapping_of(SOFTMAX, "cloud", f"dim=auto strategy=full {REST}")
    assert chosen(mapping) is not None


def test_rows_are_what_the_result_has_besides_columns() -> None:
    assert result_dims(decomposed(SOFTMAX)) == ("M", "N")
    assert candidates(decomposed(SOFTMAX)) == (("N",), ("M",))
    assert candidates(decomposed(GEMM_GEMM)) == (("N",), ("M", "L"))


def test_rows_that_ids_name_are_no_candidate():
    values, ids = (
        "tensor<8x4xf32, #compound.dims<T, D>>",
        "tensor<8xi32, #compound.dims<T>>",
    )
    sums = "tensor<9x4xf32, #compound.dims<V, D>>"
    module = parse_module(f"""
    func.func @main(%x: {values}, %ids: {ids}) -> {sums} {{
      %g = compound.scatter_add %x, %ids into "V" : {values}, {ids} -> {sums}
      func.return %g : {sums}
    }}
    """)
    assert candidates(module) == (("D",),)
