"""Named ops beside elementary ones, in functions whose types have named dimensions."""

from pathlib import Path

import numpy as np
import pytest
from covering import exhaustive
from semantics import assert_close, parse_module, random_inputs, run_passes
from triton_modules import emitted, hardware, wrong
from xdsl.utils.exceptions import PassFailedException

from comet.interpreter import run
from comet.interpreter.tensor import Array

EMBEDDED = """
!table = tensor<11x6xf32, #compound.dims<V, K>>
!ids = tensor<7xi32, #compound.dims<M>>
!x = tensor<7x6xf32, #compound.dims<M, K>>
!w = tensor<6x9xf32, #compound.dims<K, N>>
!y = tensor<7x9xf32, #compound.dims<M, N>>
func.func @main(%table: !table, %ids: !ids, %w: !w) -> !y {
  %x = compound.gather %table, %ids along "V" : !table, !ids -> !x
  %y = compound.gemm_softmax %x, %w : (!x, !w) -> !y
  func.return %y : !y
}"""
# The chosen rows are queries, keys and values, so that the op has two dimensions of M.
ATTENDED = """
!table = tensor<1x2x11x4xf32, #compound.dims<B, H, V, D>>
!ids = tensor<5xi64, #compound.dims<M>>
!x = tensor<1x2x5x4xf32, #compound.dims<B, H, M, D>>
func.func @main(%table: !table, %ids: !ids) -> !x {
  %x = compound.gather %table, %ids along "V" : !table, !ids -> !x
  %o = compound.attention %x, %x, %x causal : (!x, !x, !x) -> !x
  %y = compound.map add %x, %o : !x, !x -> !x
  func.return %y : !x
}"""
# The second product sums over what the first one calls N, beside an N of its own.
CHAINED = """
!x = tensor<7x6xf32, #compound.dims<M, K>>
!w = tensor<6x9xf32, #compound.dims<K, N>>
!h = tensor<7x9xf32, #compound.dims<M, N>>
!u = tensor<9x9xf32, #compound.dims<A, N>>
func.func @main(%x: !x, %w: !w, %u: !u) -> !h {
  %h = compound.gemm_silu %x, %w : (!x, !w) -> !h
  %g = compound.map tanh %h : !h -> !h
  %y = compound.gemm %g, %u : (!h, !u) -> !h
  func.return %y : !h
}"""


def plain(op: str, *arrays: Array) -> Array:
    """Return what one named op makes of arrays, in a function of plain tensors."""
    types = [f"tensor<{'x'.join(map(str, array.shape))}xf32>" for array in arrays]
    first, last = arrays[0].shape, arrays[-1].shape
    result = f"tensor<{'x'.join(map(str, (*first[:-1], last[-1])))}xf32>"
    arguments = ", ".join(f"%x{i}: {type_}" for i, type_ in enumerate(types))
    names = ", ".join(f"%x{i}" for i in range(len(types)))
    name, _, attribute = op.partition(" ")
    text = f"""func.func @main({arguments}) -> {result} {{
      %y = compound.{name} {names} {attribute} : ({", ".join(types)}) -> {result}
      func.return %y : {result}
    }}"""
    (made,) = run(run_passes(parse_module(text), "decompose"), "main", list(arrays))
    return made


def embedded(table: Array, ids: Array, w: Array) -> Array:
    """Return what EMBEDDED means."""
    return plain("gemm_softmax", table[ids.astype(int)], w)


def attended(table: Array, ids: Array) -> Array:
    """Return what ATTENDED means."""
    x = table[:, :, ids.astype(int)]
    return x + plain("attention causal", x, x, x)


def chained(x: Array, w: Array, u: Array) -> Array:
    """Return what CHAINED means."""
    return np.tanh(plain("gemm_silu", x, w)) @ u


PROGRAMS = {
    "embedded": (EMBEDDED, embedded),
    "attended": (ATTENDED, attended),
    "chained": (CHAINED, chained),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_meaning(name: str):
    text, formula = PROGRAMS[name]
    module = run_passes(parse_module(text), "decompose")
    inputs = random_inputs(module, "main")
    assert_close(run(module, "main", inputs), [formula(*inputs)])


def test_signatures_keep_their_names():
    module = run_passes(parse_module(ATTENDED), "decompose")
    assert "@main(%table: tensor<1x2x11x4xf32, #compound.dims<B, H, V, D>>" in str(
        module
    )


@exhaustive
def test_kernels_are_right(tmp_path: Path):
    one, two = hardware("h200x1.yaml"), hardware("h200x8.yaml")
    sources = {
        name: emitted(text, f"{one},triton-distributed{{strategy=full}}")
        for name, (text, _) in PROGRAMS.items()
    } | {
        "ranks": emitted(
            EMBEDDED, f"{two},triton-distributed{{ranks=2 dim=M strategy=full}}"
        ),
    }
    assert not wrong(sources, tmp_path)


def test_accelerators_take_maps_beside_named_ops():
    text = """
    !x = tensor<8x6xf32, #compound.dims<M, K>>
    !w = tensor<6x16xf32, #compound.dims<K, N>>
    !y = tensor<8x16xf32, #compound.dims<M, N>>
    func.func @main(%x: !x, %w: !w) -> !y {
      %h = compound.gemm %x, %w : (!x, !w) -> !y
      %y = compound.map exp %h : !y -> !y
      func.return %y : !y
    }"""
    passes = f"{hardware('edge.yaml')},comet-accelerator{{strategy=full pad=none}}"
    assert "comet.mapping" in str(run_passes(parse_module(text), passes))


def test_accelerators_name_a_gather_beside_named_ops():
    passes = f"{hardware('edge.yaml')},comet-accelerator"
    with pytest.raises(PassFailedException, match=r"has 'compound\.gather', and addr"):
        run_passes(parse_module(EMBEDDED), passes)
