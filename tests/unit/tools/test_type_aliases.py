"""Types printed by aliases: the parser reads them, and each alias is one type."""

from functools import cache

import pytest
from covering import one_of
from paths import HARDWARE, SAMPLES
from xdsl.dialects.builtin import ModuleOp

import comet
from comet.tools.type_aliases import with_type_aliases

DATAFLOW = "triton-distributed{ranks=2 pattern=PATTERN to=dataflow}"
PROGRAMS = {
    "graph": ("gemm_softmax", "edge", ""),
    "elementary": ("attention_causal", "edge", "decompose"),
    "push": ("ag_gemm", "h200x8", DATAFLOW.replace("PATTERN", "push")),
    "pull": ("expert_gemm", "h200x8", DATAFLOW.replace("PATTERN", "pull")),
    "lengths": ("flash_decode", "h200x8", DATAFLOW.replace("PATTERN", "fused")),
    "triton": ("gemm_layernorm", "h200x1", "triton-distributed"),
    "files": ("gemm", "edge", "comet-accelerator{dim=N strategy=full}"),
}


@cache
def compiled(name: str) -> ModuleOp:
    """Return a program after its passes."""
    sample, machine, passes = PROGRAMS[name]
    program = str(SAMPLES / f"{sample}.mlir")
    if not passes:
        return comet.parse(program)
    return comet.compile(program, HARDWARE / f"{machine}.yaml", passes).module


@one_of(2)
@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_printed_is_read_back(name: str, generic: bool):
    module = compiled(name)
    text = with_type_aliases(module, generic)
    assert comet.parse(text).is_structurally_equivalent(module)
    long = [line for line in text.splitlines() if "#compound.dims" in line]
    assert all(line.startswith("!") for line in long)


def test_an_alias_says_extents_element_and_level():
    module = comet.parse(
        f"func.func @f(%a: {TILE}, %n: {NUMBER}) {{\n  func.return\n}}"
    )
    assert with_type_aliases(module).splitlines()[:2] == [
        f"!M4_K8_f16_OB = {TILE}",
        f"!number_f32 = {NUMBER}",
    ]


TILE = "tensor<4x8xf16, #compound.dims<M, K @OB>>"
NUMBER = "tensor<f32, #compound.dims<>>"


def test_two_types_with_one_name_have_two_aliases():
    types = ("tensor<4xf16, #compound.dims<M1>>", "tensor<14xf16, #compound.dims<M>>")
    module = comet.parse(
        f"func.func @f(%a: {types[0]}, %b: {types[1]}) {{\n  func.return\n}}"
    )
    text = with_type_aliases(module)
    assert "@f(%a: !M14_f16, %b: !M14_f16_)" in text
    assert comet.parse(text).is_structurally_equivalent(module)


def test_a_channel_is_named_by_what_is_received():
    assert (
        "!push_K_M64_K128_f16_HBM = !dataflow.channel<push gather K : "
        "!M64_K64_f16_HBM -> !M64_K128_f16_HBM>\n"
    ) in with_type_aliases(compiled("push"))
