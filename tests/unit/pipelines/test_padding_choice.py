"""`comet-accelerator{pad=..}`: what is chosen, what it means, and what it costs."""

import re
from functools import cache
from pathlib import Path

import pytest
from comet_rules import check
from covering import exhaustive
from programs import graph_text
from semantics import assert_same_meaning, comet_context, parse_module, run_passes
from tool_run import comet_opt_command
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.comet import write_files
from comet.dialects.comet import MappingOp
from comet.dialects.cost import estimate_of
from comet.passes.explore.quick import PAD
from comet.passes.pipelines.comet_accelerator import CometAcceleratorPass

EDGE = 'attach-hardware{path="samples/hardware/edge.yaml"}'
ODD, PADDED = (13, 5, 61), (16, 5, 64)
"""(M, K, N), and the next multiples of the 16 cores of the edge sample."""


@cache
def compiled(op: str, sizes: tuple[int, int, int], options: str) -> ModuleOp:
    """Return the mapping of an op on the edge sample."""
    module = parse_module(graph_text(op, sizes))
    return run_passes(
        module, f"{EDGE},comet-accelerator{{strategy=full stream=false {options}}}"
    )


def mapping_of(module: ModuleOp) -> MappingOp:
    """Return the only mapping of a module."""
    (mapping,) = (op for op in module.ops if isinstance(op, MappingOp))
    return mapping


def latency(module: ModuleOp) -> float:
    """Return the cycles of the mapping of a module."""
    figures = estimate_of(mapping_of(module))
    assert figures is not None
    return figures.latency


def test_every_part_means_the_same():
    """Down to the tile tree, from which the files are made."""
    before = run_passes(parse_module(graph_text("gemm_softmax", ODD)), EDGE)
    module, ctx = before.clone(), comet_context()
    names: list[str] = []
    pipeline = CometAcceleratorPass(strategy="full", stream=False)
    for pass_ in pipeline.passes(ctx, module):
        pass_.apply(ctx, module)
        module.verify()
        names.append(pass_.name)
        if pass_.name != "lower-to-comet":
            assert_same_meaning(before, module, "main")
    assert names[:2] == ["decompose", "pad"]
    assert names[-1] == "lower-to-comet"
    assert not check(write_files(module))


def test_the_cheapest_is_taken():
    chosen = compiled("gemm_softmax", ODD, "")
    without = compiled("gemm_softmax", ODD, "pad=none")
    assert mapping_of(chosen).attributes[PAD] == StringAttr("M=16,N=64")
    assert PAD not in mapping_of(without).attributes
    assert latency(chosen) < latency(without)


@pytest.mark.parametrize(
    "options", ["dim=N", pytest.param("dim=auto", marks=exhaustive)]
)
def test_the_price_is_that_of_the_padded_shape(options: str):
    """So are the files, up to comments, whether there is a choice or not."""
    padded = compiled("gemm_softmax", ODD, f'pad="M=16,N=64" {options}')
    whole = compiled("gemm_softmax", PADDED, f"pad=none {options}")
    assert latency(padded) == latency(whole)
    files, others = write_files(padded), write_files(whole)
    assert "    M: 16  # padded from 13\n" in files["problem.yaml"]
    assert "    K: 5\n" in files["problem.yaml"]
    for name, text in files.items():
        assert re.sub(r"  # padded from \d+", "", text) == others[name]


def test_extents_that_suit_are_compiled_as_before():
    chosen = compiled("gemm_softmax", PADDED, "")
    assert str(chosen) == str(compiled("gemm_softmax", PADDED, "pad=none"))


def test_what_cannot_be_padded_is_compiled_as_it_is():
    """What the padding of a fold would hold is not known."""
    before = parse_module(graph_text("gemm_softmax", ODD))
    streamed = f"{EDGE},decompose{{accumulator=input}},stream"
    module = run_passes(before, f"{streamed},comet-accelerator{{strategy=full}}")
    assert PAD not in mapping_of(module).attributes


def test_named_factors_are_for_the_true_extents():
    text = graph_text("gemm_softmax", ODD)
    options = 'strategy=full factors="y_dram: M=13"'
    module = run_passes(parse_module(text), f"{EDGE},comet-accelerator{{{options}}}")
    assert PAD not in mapping_of(module).attributes


def test_the_choice_is_explained(tmp_path: Path):
    (tmp_path / "in.mlir").write_text(graph_text("gemm_softmax", ODD))
    pipeline = f"{EDGE},comet-accelerator{{strategy=full stream=false}}"
    files = [str(tmp_path / "in.mlir"), "-o", str(tmp_path / "out.mlir")]
    shown = comet_opt_command([*files, "-p", pipeline, "--explain"]).err
    assert re.findall(r"^\* (pad=\S+) stream=", shown, re.M) == ["pad=M=16,N=64"]
    assert re.search(r"^  stream=false dim=N", shown, re.M)


@pytest.mark.parametrize(
    ("pad", "message"),
    [
        ("Q=3", "pad: no value has the dimension Q; the dimensions of the module are"),
        ("N=60", "pad: N = 61 of @main cannot be padded to 60; choose an extent that"),
        ("most", "pad: 'most' is not of the form DIM=EXTENT"),
    ],
)
def test_rejects(pad: str, message: str):
    module = parse_module(graph_text("gemm_softmax", ODD))
    with pytest.raises(PassFailedException, match=message):
        run_passes(module, f'{EDGE},comet-accelerator{{pad="{pad}"}}')
