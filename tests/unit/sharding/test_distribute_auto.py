"""The dimensions that `comet-accelerator` shares if it is free to choose."""

from functools import cache

import pytest
from accelerators import edge_like
from covering import EVERY_CASE, one_of
from paths import HARDWARE
from programs import graph_text
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp, StringAttr

from comet.cost.estimate import ModelName
from comet.dialects.comet import MappingOp
from comet.dialects.cost import estimate_of
from comet.passes.sharding.dim_axes import format_dims
from comet.passes.sharding.distribute.auto import (
    SHARDED_DIMS,
    candidates,
    result_dims,
    shardings,
)

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
MACHINE = f'attach-hardware{{{{path="{HARDWARE}/{{}}.yaml"}}}}'
REST = "pad=none stream=false loops=shared"
"""What else is given, so that these are the only choices."""


@cache
def mapping_of(text: str, hardware: str, options: str = "") -> MappingOp:
    passes = MACHINE.format(hardware)
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
    module = run_passes(decomposed(TEXTS[case]), MACHINE.format("edge"))
    open_dims = [format_dims(dims) for dims in shardings("test", module)]
    rows = ",".join(candidates(module)[1])
    assert {"N", rows, ""} <= set(open_dims)
    choices = {dims: latency(sharded(case, dims)) for dims in open_dims}
    dims = chosen(found)
    assert dims is not None
    assert latency(found) == choices[dims]
    assert latency(found) == min(choices.values())


def test_levels_and_directions_of_the_meshes_are_sharded_separately() -> None:
    """Of the directions of square meshes one assignment is as good as the other."""
    module = run_passes(decomposed(SOFTMAX), MACHINE.format("edge"))
    assert [format_dims(dims) for dims in shardings("test", module)] == [
        *("N", "M", ""),
        *("N:cx,cy;M:kx,ky", "N:cx,cy", "M:cx,cy;N:kx,ky", "M:cx,cy"),
        *("N:kx,ky", "M:kx,ky", "N:cx,kx;M:cy,ky"),
    ]


def test_directions_of_meshes_that_are_not_square_differ() -> None:
    machine = f'attach-hardware{{path="{edge_like((2, 4), (1, 1))}"}}'
    module = run_passes(decomposed(SOFTMAX), machine)
    found = [format_dims(dims) for dims in shardings("test", module)]
    assert found == ["N", "M", "", "N:cx;M:cy", "M:cx;N:cy"]


def test_a_side_that_no_axes_divide_is_not_combined() -> None:
    text = graph_text("gemm", (16, 8, 17))
    module = run_passes(decomposed(text), MACHINE.format("edge"))
    found = [format_dims(dims) for dims in shardings("test", module)]
    assert found == ["", "M", "M:cx,cy", "M:kx,ky"]


def test_one_row_may_be_sharded_over_the_cores_of_one_cluster() -> None:
    mapping = mapping_of(graph_text("gemm_softmax", (1, 128, 1024)), "edge", REST)
    assert chosen(mapping) == "N:kx,ky"


def test_rows_and_columns_of_the_meshes_save_cycles() -> None:
    """The weights of each column of instances and the rows of each row are less."""
    text = graph_text("gemm_softmax", (128, 64, 256))
    best = mapping_of(text, "cloud", REST)
    assert chosen(best) == "N:cx,kx;M:cy,ky"
    one_side = [mapping_of(text, "cloud", f"dim={dim} {REST}") for dim in "MN"]
    assert latency(best) < 0.8 * min(map(latency, one_side))


@pytest.mark.parametrize("model", ["paper", "tool", "ideal"])
def test_axes_of_a_level_that_are_as_long_cost_the_same(model: ModelName) -> None:
    text = graph_text("gemm_softmax", (16, 8, 32))
    options = f"{REST} strategy=full model={model}"
    found = {
        latency(mapping_of(text, "edge", f'{options} dim="{dims}"'))
        for dims in ("M:cx,kx;N:cy,ky", "N:cx,kx;M:cy,ky", "M:cx,ky;N:cy,kx")
    }
    assert len(found) == 1


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
