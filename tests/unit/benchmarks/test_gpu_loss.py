"""What the first choice of the model loses, by hand."""

from __future__ import annotations

from typing import Any

from gpu_loss import Kernel, kernels, of_sizes, rows, with_powers_of_two


def test_the_loss_is_that_of_the_kernel_with_the_lowest_price():
    found = [Kernel("a", 1.0, 12.0), Kernel("b", 2.0, 10.0), Kernel("c", 3.0, 30.0)]
    ((loss, row),) = rows({"gemm M1": found, "too few": found[:2]})
    assert round(loss, 3) == 0.2
    assert row == ["gemm M1", "3", "1.0", "12.0", "10.0", "20%", "0.50"]


def test_warps_that_load_and_what_the_compiler_refuses_are_left_out():
    extents = {"M": 256, "N": 256, "K": 64}
    plan = "c: M=2 N=2 warps=4 stages=3 group=1; c_k: K=1"
    times: list[Any] = [
        ["torch", 1.0, 1.0],
        ["ahead", 2.0, 2.0, 2.0, {"specialize": True}],
        ["refused", 3.0, 3.0, 3.0, {"factors": "no_such_node: M=2"}],
        ["comet", 4.0, 4.0, 4.0, {}],
        ["again", 5.0, 5.0, 5.0, {}],
    ]
    case: dict[str, Any] = {
        "id": "a",
        "sample": "gemm",
        "extents": extents,
        "dtype": "bfloat16",
    }
    case |= {"ragged": False, "options": {"factors": plan}, "times": times}
    ((name, found),) = of_sizes([case]).items()
    assert name == "gemm M256 N256 K64"
    assert [kernel.measured for kernel in found] == [4.0]


def test_kernels_are_priced_in_the_form_that_they_had():
    """Reciprocals are younger than the record, as are powers of two without a scale."""
    extents = {"M": 16384, "N": 256, "K": 64}
    case: dict[str, Any] = {
        "id": "a",
        "sample": "gemm_softmax",
        "extents": extents,
        "dtype": "bfloat16",
        "ragged": False,
        "options": {"factors": "p: M=128 warps=8 stages=2 group=1; c_k: K=1"},
        "times": [["comet", 4.0, 4.0, 4.0, {}]],
    }
    ((then,),) = of_sizes([case]).values()
    (now,) = kernels(case, {})
    assert now.predicted < then.predicted
    with_form = case | {"times": [["exp", 4.0, 4.0, 4.0, {"exp": "exp"}]]}
    assert list(with_powers_of_two([case, with_form])) == ["gemm_softmax"]
