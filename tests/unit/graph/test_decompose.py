"""`decompose`: meaning, the names of dimensions, and what it rejects."""

import numpy as np
import pytest
from paths import SAMPLES
from programs import ODD_SIZES, graph_text
from semantics import (
    assert_close,
    assert_same_meaning,
    parse_module,
    random_inputs,
    run_passes,
)
from xdsl.dialects.func import FuncOp

from comet.dialects.compound.dims import element_type_of, names_of
from comet.interpreter import run
from comet.interpreter.tensor import Array


def softmax(inputs: list[Array]) -> Array:
    """Return softmax(a b) over the rows."""
    c = inputs[0] @ inputs[1]
    e = np.exp(c - c.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layernorm(inputs: list[Array]) -> Array:
    """Return LayerNorm(a b) over the rows, with numpy's biased variance."""
    c = inputs[0] @ inputs[1]
    normal = (c - c.mean(axis=1, keepdims=True)) / np.sqrt(
        c.var(axis=1, keepdims=True) + 1e-5
    )
    return normal * inputs[2] + inputs[3]


EXPECTED = {"gemm_softmax": softmax, "gemm_layernorm": layernorm}


@pytest.mark.parametrize("accumulator", ["f32", "input"])
@pytest.mark.parametrize("sizes", ODD_SIZES)
@pytest.mark.parametrize("op", EXPECTED)
def test_meaning(op: str, sizes: tuple[int, int, int], accumulator: str):
    before = parse_module(graph_text(op, sizes))
    after = run_passes(before, f"decompose{{accumulator={accumulator}}}")
    inputs = random_inputs(before, "main", seed=3)
    assert_close(run(after, "main", inputs), [EXPECTED[op](inputs)])
    assert_same_meaning(after, after, "main", after_name="main__reference")


@pytest.mark.parametrize("op", EXPECTED)
def test_samples(op: str):
    """The samples keep their meaning; their dimensions can be distinguished by size."""
    module = parse_module((SAMPLES / f"{op}.mlir").read_text())
    inputs = random_inputs(module, op)
    after = run_passes(module, "decompose")
    assert_close(run(after, op, inputs), [EXPECTED[op](inputs)])
    (m, k), (_, n) = inputs[0].shape, inputs[1].shape
    assert len({m, k, n}) == 3


@pytest.mark.parametrize(
    ("element", "accumulator", "expected"),
    [
        ("f16", "f32", "f32"),
        ("bf16", "f32", "f32"),
        ("f32", "f32", "f32"),
        ("f64", "f32", "f64"),
        ("f16", "input", "f16"),
    ],
)
def test_accumulator(element: str, accumulator: str, expected: str):
    module = parse_module(graph_text("gemm_softmax", (3, 4, 5), element))
    after = run_passes(module, f"decompose{{accumulator={accumulator}}}")
    contract = next(op for op in after.walk() if op.name == "compound.contract")
    assert str(element_type_of(contract.results[0])) == expected


def names_in(text: str) -> list[tuple[str, ...]]:
    """Return the names in the signature of @main after `decompose`."""
    after = run_passes(parse_module(text), "decompose")
    main = next(op for op in after.ops if isinstance(op, FuncOp))
    types = main.function_type
    return [names_of(t) for t in (*types.inputs.data, *types.outputs.data)]


def test_two_ops_share_the_axes_of_the_value_between_them():
    text = """
    func.func @main(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %v: tensor<5x6xf32>)
        -> tensor<3x6xf32> {
      %p = compound.gemm_softmax %a, %b
          : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
      %q = compound.gemm_softmax %p, %v
          : (tensor<3x5xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
      func.return %q : tensor<3x6xf32>
    }
    """
    assert names_in(text) == [("M", "K"), ("K", "N"), ("N", "N1"), ("M", "N1")]


def test_axes_become_one_through_a_later_op():
    text = """
    func.func @main(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>,
                    %c: tensor<5x2xf32>, %d: tensor<2x6xf32>) -> tensor<3x6xf32> {
      %p = compound.gemm_softmax %a, %b
          : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
      %q = compound.gemm_softmax %c, %d
          : (tensor<5x2xf32>, tensor<2x6xf32>) -> tensor<5x6xf32>
      %r = compound.gemm_softmax %p, %q
          : (tensor<3x5xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
      func.return %r : tensor<3x6xf32>
    }
    """
    expected = [("M", "K"), ("K", "N"), ("N", "K1"), ("K1", "N1"), ("M", "N1")]
    assert names_in(text) == expected


def test_an_operand_that_would_repeat_a_name_is_renamed():
    text = """
    func.func @main(%x: tensor<5x5xf32>) -> tensor<5x5xf32> {
      %p = compound.gemm_softmax %x, %x
          : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
      func.return %p : tensor<5x5xf32>
    }
    """
    assert names_in(text) == [("M", "K"), ("M", "N")]
    before = parse_module(text)
    inputs = random_inputs(before, "main")
    after = run_passes(before, "decompose")
    assert sum(op.name == "compound.rename" for op in after.walk()) == 2
    assert_close(run(after, "main", inputs), [softmax([*inputs, *inputs])])


def test_an_unused_argument_is_named_too():
    text = graph_text("gemm_softmax", (3, 4, 5)).replace(
        "%a:", "%unused: tensor<2x2xf16>, %a:"
    )
    assert names_in(text)[0] == ("D", "D1")


@pytest.mark.parametrize("op", ["gemm_gelu", "gemm_silu"])
def test_activations_of_negative_numbers_lose_no_digits(op: str):
    """Far below 0 both are small: 1 + tanh would be a difference of equal numbers."""
    before = parse_module(
        f"""
        func.func @main(%a: tensor<9x1xf32>, %b: tensor<1x1xf32>) -> tensor<9x1xf32> {{
          %p = compound.{op} %a, %b
              : (tensor<9x1xf32>, tensor<1x1xf32>) -> tensor<9x1xf32>
          func.return %p : tensor<9x1xf32>
        }}
        """
    )
    inputs = [np.linspace(-8.0, 8.0, 9).reshape(9, 1), np.ones((1, 1))]
    (expected,) = run(before, "main", inputs)
    (found,) = run(run_passes(before, "decompose"), "main", inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_hidden_keys_may_be_anything():
    """A key behind the length of its entry is not seen, not even if it is NaN."""
    before = parse_module(
        """
        !q = tensor<2x1x3x4xf32>
        !k = tensor<2x1x6x4xf32>
        func.func @main(%q: !q, %k: !k, %v: !k, %lens: tensor<2xi32>) -> !q {
          %o = compound.flash_decode %q, %k, %v, %lens
              : (!q, !k, !k, tensor<2xi32>) -> !q
          func.return %o : !q
        }
        """
    )
    q, k, v, _ = random_inputs(before, "main")
    lens = np.array([4.0, 1.0])
    after = run_passes(before, "decompose,stream")
    expected = run(after, "main", [q, k, v, lens])
    k[0, :, 4:], k[1, :, 1:] = np.nan, np.inf
    assert_close(run(after, "main", [q, k, v, lens]), expected)
