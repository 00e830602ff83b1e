"""What the tools say of an error: one line, brief, without what the error dumps."""

import re
from time import perf_counter

import pytest
from covering import one_of
from gpu_ranks import H200X8
from paths import HARDWARE
from programs import graph_text
from tool_run import comet_opt
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException, VerifyException

from comet.dialects.arch.fields import dictionary_of
from comet.runtime.request import request_of
from comet.tools.diagnostics import (
    LONGEST,
    UsageError,
    brief,
    one_sentence_errors,
    sentence,
)


def large_module() -> ModuleOp:
    """Return a module that prints over hundreds of lines."""
    inner = [ModuleOp([], {"name": StringAttr(f"part {i}")}) for i in range(300)]
    return ModuleOp(inner)


def test_a_module_in_a_message_is_left_out():
    error = VerifyException(f"the op {large_module()} is wrong; write it anew")
    expected = "error: the op ModuleOp( builtin.module {..} ) is wrong; write it anew"
    assert sentence(error) == expected


@pytest.mark.parametrize("number", ["1e-05", "12E5"])
def test_a_number_without_a_point_is_shown_with_one(number: str):
    meant = number.replace("e", ".0e").replace("E", ".0E")
    program = f"func.func @f() {{ %c = compound.fill {number} : tensor<f32> }}"
    assert f"write {number} as {meant}\n" in comet_opt(program).err
    assert "as" not in comet_opt(program.replace(number, meant)).err


def test_an_op_of_an_unknown_dialect_may_be_of_a_plugin():
    error = "no operation my.op; correct its name, or load its dialect by --load-dialec"
    assert error in comet_opt('"my.op"() : () -> ()').err


def test_a_dictionary_in_a_message_is_left_out():
    fields = dictionary_of({f"field{i}": i for i in range(100)})
    text = sentence(PassFailedException(f"expected text, got {fields}; write text"))
    assert text == "error: expected text, got {..}; write text"


@pytest.mark.parametrize("ranks", [1, 2])
def test_an_error_in_a_kernel_has_the_location_of_its_function(ranks: int):
    text = graph_text("gemm", (32, 32, 32)).replace("xf16", "xf64")
    passes = f"{H200X8},triton-distributed{{ranks={ranks} to=dataflow}},lower-to-triton"
    found = comet_opt(text, passes).sentence
    assert re.match(r"in.mlir:\d+:\d+: in @main_\w*kernel, 'dataflow.kernel' op", found)


@one_of(2)
@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("option", ["inputs=symmetric", "persistent=true"])
def test_an_option_that_does_not_apply_has_the_location_of_a_function(
    option: str, copies: int
):
    text = graph_text("ag_gemm", (32, 32, 32))
    text = "".join(text.replace("@main", f"@main{i}") for i in range(copies))
    options = f"ranks=2 dim=K {option} pattern=push to=dataflow"
    passes = f"{H200X8},triton-distributed{{{options}}}"
    found = comet_opt(text, passes).sentence
    name = option.partition("=")[0]
    assert re.match(rf"in.mlir:\d+:\d+: error: bsp-to-dataflow: {name}", found)


def test_what_is_short_stays():
    text = "the mesh is {cx = 2, cy = 2}; take {cx = 4}"
    assert brief(text) == text


def test_a_long_message_keeps_its_start_and_its_end():
    text = sentence(
        UsageError(f"no level L3; it has {', '.join(['GB'] * 900)}; mend it")
    )
    assert text is not None
    assert len(text) == LONGEST
    assert text.startswith("error: no level L3; it has GB, ")
    assert " .. " in text
    assert text.endswith("GB; mend it")


def test_characters_that_cannot_be_seen_are_named():
    assert brief("found \0\nand \x1b[31m") == "found U+0000 and U+001B[31m"


def test_a_bug_is_brief(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit), one_sentence_errors("tool"):
        raise TypeError(f"cannot use {large_module()}\n" * 90)
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) < 800
    assert "a bug in comet" in line
    assert line.endswith("to see the traceback")


def test_a_bug_is_where_comet_was(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit), one_sentence_errors("tool"):
        request_of("no JSON, so that Python's decoder raises")
    assert "comet/runtime/request.py:" in capsys.readouterr().err


def nested(opening: str, closing: str, depth: int = 4000) -> str:
    return opening * depth + closing * depth


EDGE = HARDWARE / "edge.yaml"
SYSTEM = 'arch.system @a {{\n  arch.memory "M" {{width = {}}}\n}}'
UNREADABLE = {
    "ops": (nested("builtin.module {\n", "}"), "nested too deep"),
    "attributes": (
        f"builtin.module attributes {{a = {nested('[', ']')}}} {{}}",
        "deep",
    ),
    "fields": (f"arch.system @a extra {{v = {nested('[', ']')}}} {{}}", "too deep"),
    "types": (f"func.func private @f({nested('tuple<', '>')})", "nested too deep"),
    "control character": ("func.func @f() {\n \0}", "in.mlir:2:2: error: Unexpected"),
    "beyond 64 bits": (SYSTEM.format("9" * 30), "in.mlir:2:3: error: Integer value 9"),
    "too many digits": (SYSTEM.format("9" * 6000), "in.mlir:2:28: error: a number has"),
    "integer key": (SYSTEM.format("8, 1 = 4"), "in.mlir:2:31: error: identifier or"),
    "negative": (SYSTEM.format("-1"), "'width' is a positive integer, not -1"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_text_that_cannot_be_read_is_one_sentence_at_once(case: str):
    text, message = UNREADABLE[case]
    start = perf_counter()
    found = comet_opt(text).sentence
    assert perf_counter() - start < 10
    assert message in found
    assert len(found) < 800


def test_options_that_are_text_are_checked_before_the_input_is_read():
    for spec in ("tile{factors=N}", "comet-accelerator{factors=N}"):
        found = comet_opt("no module", spec).sentence
        assert "plan entry 'N' is not of the form" in found
    found = comet_opt("no module", "bsp-to-dataflow{blocks=N}").sentence
    assert "'N' in plan entry 'every: N' is not of the form" in found


def test_names_in_options_are_checked_before_any_search():
    text = graph_text("gemm_softmax", (8, 4, 64))
    spec = f'attach-hardware{{path="{EDGE}"}},comet-accelerator'
    found = comet_opt(text, f'{spec}{{factors="c_ob: Q=2"}}').sentence
    assert "unknown dimension Q; there are K, M, N" in found
    assert "tile: plan entry" in found
