"""Named ops through `triton-distributed`: right at any size and type, and no spills."""

import re
from itertools import product
from pathlib import Path

import pytest
from covering import EVERY_CASE, covering
from triton_modules import ROOT, check_all, compile_all, emitted, hardware

OPS = ("gemm_softmax", "gemm_layernorm")
SIZES = ((37, 53, 19), (1, 7, 3), (16, 1000, 40), (130, 257, 65))
STRATEGIES = ("none", "partial", "auto")


def named_op(op: str, m: int, n: int, k: int, element: str) -> str:
    """Return a function of one named op: A is m x k, B is k x n."""
    shapes = [f"{m}x{k}", f"{k}x{n}"]
    if op == "gemm_layernorm":
        shapes += [f"{n}", f"{n}"]
    types = [f"tensor<{shape}x{element}>" for shape in shapes]
    names = ["%a", "%b", "%gamma", "%beta"][: len(types)]
    arguments = ", ".join(f"{a}: {t}" for a, t in zip(names, types, strict=True))
    result = f"tensor<{m}x{n}x{element}>"
    return f"""
    func.func @{op}({arguments}) -> {result} {{
      %y = compound.{op} {", ".join(names)} : ({", ".join(types)}) -> {result}
      func.return %y : {result}
    }}"""


def pipeline(options: str) -> str:
    """Return the pipeline for one H200."""
    return f"{hardware('h200x1.yaml')},triton-distributed{{{options}}}"


def cases() -> dict[str, tuple[str, str]]:
    """Return text and pipeline of every module that is run, by name."""
    found: dict[str, tuple[str, str]] = {}
    for op, strategy, size in covering(
        product(OPS, STRATEGIES, SIZES if EVERY_CASE else SIZES[:2]), 1
    ):
        name = f"{op}-{'x'.join(map(str, size))}-f16-{strategy}"
        found[name] = (named_op(op, *size, "f16"), f"strategy={strategy}")
    for op, element in covering(product(OPS, ("bf16", "f32")), 1):
        text = named_op(op, *SIZES[0], element)
        found[f"{op}-{element}"] = (text, "stream=false strategy=full")
    for between in ("recompute", "spill"):
        text = named_op("gemm_softmax", 20, 5000, 24, "f16")
        options = f"strategy=partial between={between}"
        found[f"gemm_softmax-wide-{between}"] = (text, options)
    return found


CASES = cases()


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """Emit every module."""
    return {n: emitted(text, pipeline(opts)) for n, (text, opts) in CASES.items()}


@pytest.fixture(scope="module")
def reports(
    sources: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, object]]:
    """Run every module once, in one process."""
    return check_all(sources, tmp_path_factory.mktemp("modules"))


@pytest.mark.parametrize("name", CASES)
def test_module_agrees_with_its_reference(
    name: str, reports: dict[str, dict[str, object]]
):
    assert reports[name]["ok"], reports[name]


def test_wide_rows_take_two_reduction_loops(sources: dict[str, str]):
    """The product is computed again, or kept in device memory."""
    again, kept = (
        sources[f"gemm_softmax-wide-{between}"] for between in ("recompute", "spill")
    )
    for source in (again, kept):
        assert source.count("@triton.jit") == 1
        assert len(re.findall(r"for n in range\(0, \w+, BLOCK_N\)", source)) == 2
    assert (again.count("tl.dot("), kept.count("tl.dot(")) == (2, 1)


def test_samples_do_not_spill(tmp_path: Path):
    """At the tiles that comet chooses, in other element types too."""
    sources: dict[str, str] = {}
    for op, element in (("gemm_softmax", "f16"), ("gemm_layernorm", "f32")):
        text = (ROOT / "samples" / f"{op}.mlir").read_text()
        name = f"{op}_{element}"
        sources[name] = emitted(text.replace("f16", element), pipeline("ranks=1"))
    if EVERY_CASE:
        large = named_op("gemm_softmax", 1024, 2048, 512, "bf16")
        sources["large"] = emitted(large, pipeline("ranks=1"))
    usage = compile_all(sources, tmp_path)
    assert {str(kernel["target"]) for kernel in usage} == {"sm_90", "gfx942"}
    assert [kernel for kernel in usage if kernel["spills"]] == []
