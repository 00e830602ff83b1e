"""comet-opt: one sentence for each mistake, places, plug-ins, whole output files."""

import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT
from preloaded_tools import preloaded_tools

from comet.api.source import Source

GOOD = "func.func @f() {\n  func.return\n}\n"
PLUGIN = """
from dataclasses import dataclass
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from comet.dialects.errors import OpError
from comet.passes.pipeline import Pipeline


@dataclass(frozen=True)
class FailPass(ModulePass):
    name = "fail"
    how: str = "pass"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.ops:
            self.visit(func)

    def visit(self, op):
        if self.how == "verify":
            op.body.block.erase_op(op.body.block.last_op)
            return
        if self.how == "pass":
            raise OpError(op, "nothing fits")
        raise KeyError("a mistake of ours")


@dataclass(frozen=True)
class FailingPipeline(Pipeline):
    name = "failing-pipeline"

    def passes(self, ctx: Context, module: ModuleOp):
        yield FailPass("verify")
"""
PLUGIN_WITHOUT_LEVELS = """
from dataclasses import dataclass
from comet.passes.function_pass import FunctionPass


@dataclass(frozen=True)
class Unfinished(FunctionPass):
    name = "unfinished"

    def rewrite(self, function, module):
        pass
"""
HALF_A_PLUGIN = """
from xdsl.passes import ModulePass


class Half(ModulePass):
    name = "half"
    n: int = 1

    def METHOD:
        pass
"""


def comet_opt(*args: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [*preloaded_tools(), "comet-opt", *args]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, cwd=ROOT, check=False
    )


def the_sentence(result: subprocess.CompletedProcess[str]) -> str:
    """Check that a run ended in one sentence and return it."""
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    return line


@pytest.fixture
def good(tmp_path: Path) -> str:
    file = tmp_path / "good.mlir"
    file.write_text(GOOD)
    return str(file)


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    file = tmp_path / "plugin.py"
    file.write_text(PLUGIN)
    return str(file)


def test_a_parse_error_has_file_line_and_column(tmp_path: Path):
    file = tmp_path / "bad.mlir"
    file.write_text(GOOD + "func.func @g( {\n}\n")
    assert the_sentence(comet_opt(str(file))).startswith(f"{file}:4:15: error: ")


def test_a_verify_error_names_the_op_behind_earlier_chunks(tmp_path: Path):
    file = tmp_path / "bad.mlir"
    file.write_text(GOOD + "// -----\nfunc.func @g() -> i32 {\n  func.return\n}\n")
    sentence = the_sentence(comet_opt(str(file), "--split-input-file"))
    assert sentence.startswith(f"{file}:6:3: error: Expected arguments to have")


def test_a_wrong_type_in_the_text_has_a_place(tmp_path: Path):
    file = tmp_path / "bad.mlir"
    op = "compound.gemm_softmax %a, %a : (tensor<4x4xi8>, tensor<4x4xi8>)"
    text = f"func.func @f(%a: tensor<4x4xi8>) {{\n  %b = {op} -> tensor<4x4xi8>\n}}\n"
    file.write_text(text)
    sentence = the_sentence(comet_opt(str(file)))
    assert sentence.startswith(f"{file}:2:3: error: expected a tensor of floats")


def test_a_pass_error_names_the_op(good: str, plugin: str):
    result = comet_opt(good, "--load-pass-plugin", plugin, "-p", "fail")
    assert the_sentence(result) == f"{good}:1:1: error: fail: nothing fits"
    assert result.stdout == ""


def test_an_op_made_by_a_pass_is_named_by_function_and_result():
    pipeline = (
        'attach-hardware{path="samples/hardware/edge.yaml"},'
        "decompose{accumulator=input},fuse{strategy=full},bind{kind=parallel}"
    )
    result = comet_opt("samples/gemm_softmax.mlir", "-p", pipeline)
    where = "in @gemm_softmax, 'schedule.spatial' op %p: error: bind: "
    assert the_sentence(result).startswith(f"samples/gemm_softmax.mlir:3:1: {where}")


def test_a_pass_that_breaks_the_ir_is_named(good: str, plugin: str):
    result = comet_opt(good, "--load-pass-plugin", plugin, "-p", "fail{how=verify}")
    sentence = the_sentence(result)
    assert "the pass 'fail' made IR that does not verify: " in sentence
    assert sentence.startswith(f"{good}:1:1: error: ")


@pytest.mark.parametrize(
    ("flags", "name"), [((), "failing-pipeline"), (("--verify-each",), "fail")]
)
def test_the_parts_of_a_pipeline_are_verified_on_request(
    good: str, plugin: str, flags: tuple[str, ...], name: str
):
    plugged = "--load-pass-plugin", plugin, "-p", "failing-pipeline"
    sentence = the_sentence(comet_opt(good, *plugged, *flags))
    assert f"the pass '{name}' made IR that does not verify: " in sentence


def test_a_mistake_in_a_plugin_is_the_plugins(
    good: str, plugin: str, monkeypatch: pytest.MonkeyPatch
):
    args = (good, "--load-pass-plugin", plugin, "-p", "fail{how=bug}")
    line = 1 + PLUGIN.splitlines().index('        raise KeyError("a mistake of ours")')
    assert the_sentence(comet_opt(*args)) == (
        f"comet-opt: error: the pass 'fail' of a plug-in fails at {plugin}:{line}: "
        "KeyError: 'a mistake of ours'; set COMET_TRACEBACK=1 to see the traceback"
    )
    monkeypatch.setenv("COMET_TRACEBACK", "1")
    assert "Traceback (most recent call last)" in comet_opt(*args).stderr


def test_what_a_plugin_lacks_is_its_mistake(good: str, plugin: str):
    Path(plugin).write_text(PLUGIN_WITHOUT_LEVELS)
    args = (good, "--load-pass-plugin", plugin, "-p", "unfinished")
    assert the_sentence(comet_opt(*args)).startswith(
        f"comet-opt: error: the pass 'unfinished' of a plug-in fails at {plugin}: "
        "AttributeError: 'Unfinished' object has no attribute 'LEVELS'"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "pass 'half': its class Half lacks apply; define it there"),
        (
            "{n=2}",
            "'half' has no option 'n'; write @dataclass(frozen=True) above class",
        ),
    ],
)
def test_what_the_class_of_a_plugin_lacks_is_named(
    options: str, message: str, good: str, plugin: str
):
    method = "apply(self, ctx, op)" if options else "levels(self)"
    Path(plugin).write_text(HALF_A_PLUGIN.replace("METHOD", method))
    args = (good, "--load-pass-plugin", plugin, "-p", f"half{options}")
    assert message in the_sentence(comet_opt(*args))


def test_an_error_without_a_text_is_named(good: str, plugin: str):
    text = PLUGIN.replace('raise KeyError("a mistake of ours")', "assert False")
    Path(plugin).write_text(text)
    args = (good, "--load-pass-plugin", plugin, "-p", "fail{how=bug}")
    assert ": AssertionError; set COMET_TRACEBACK=1" in the_sentence(comet_opt(*args))


def test_a_mistake_of_comet_below_a_plugin_is_a_bug_in_comet(good: str, plugin: str):
    text = PLUGIN.replace("self.visit(func)", "LowerToCometPass().apply(1, 2)")
    own = "from comet.passes.comet.lower_to_comet import LowerToCometPass\n"
    Path(plugin).write_text(own + text)
    sentence = the_sentence(comet_opt(good, "--load-pass-plugin", plugin, "-p", "fail"))
    assert "a bug in comet, please report it: AttributeError" in sentence


USAGE = {
    "no such pass": (["-p", "decompse"], "'decompse'; did you mean 'decompose'?"),
    "no such pass at all": (["-p", "qqqqqq"], "'comet-opt --help' lists them"),
    "no options": (["-p", "cse{speed=3}"], "pass 'cse' has no option 'speed'; it has "),
    "option": (["-p", "decompose{accu=f32}"], "no option 'accu'; it has accumulator"),
    "value": (
        ["-p", "decompose{accumulator=f8}"],
        "pass 'decompose': the option 'accumulator' is one of 'f32', 'input', not f8",
    ),
    "no value": (
        ["-p", "attach-hardware"],
        "the option 'path' is missing; write path=..",
    ),
    "syntax": (["-p", "cse{a=b/c}"], "column 8 of the pass or target specification"),
    "target": (["-t", "paper"], "invalid choice: 'paper'"),
    "target option": (
        ["-t", "mlir{speed=3}"],
        "target 'mlir' has no option 'speed'",
    ),
    "flag": (["--fast"], "unrecognized arguments: --fast"),
    "output": (["-o", "no/out.mlir"], "-o: no file can be written at no/out.mlir"),
    "report": (["--report", "no/r.html"], "--report: no file can be written at no/r"),
    "plug-in": (
        ["--load-pass-plugin", "no.py"],
        "no.py: no such file; a plug-in is",
    ),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_wrong_call(case: str, good: str):
    args, message = USAGE[case]
    sentence = the_sentence(comet_opt(good, *args))
    assert sentence.startswith("comet-opt: error: ")
    assert message in sentence


def test_an_input_that_is_not_there():
    sentence = the_sentence(comet_opt("nowhere.mlir"))
    assert sentence == "comet-opt: error: nowhere.mlir: No such file or directory"


def test_an_input_of_unknown_format():
    assert "must end in one of .mlir" in the_sentence(comet_opt("README.md"))


def test_an_input_that_is_no_text(tmp_path: Path):
    file = tmp_path / "binary.mlir"
    file.write_bytes(b"\xff\xfe")
    message = f"comet-opt: error: {file}: the file is not UTF-8 text"
    assert the_sentence(comet_opt(str(file))) == message


def test_a_dash_is_the_standard_input_or_output():
    result = comet_opt("-", "-o", "-", text=GOOD)
    assert (result.returncode, result.stderr) == (0, "")
    assert "func.func @f()" in result.stdout


def test_a_byte_order_mark_is_not_a_part_of_a_program(tmp_path: Path):
    file = tmp_path / "marked.mlir"
    file.write_text(f"\ufeff{GOOD}")
    assert comet_opt(str(file)).returncode == 0
    assert Source.read(file).text == GOOD


BROKEN_PLUGINS = {
    "empty": ("x = 1\n", "must define a ModulePass with a name"),
    "syntax": ("x = 1\ny = = 2\n", ":2: the plug-in fails: SyntaxError"),
    "raises": ("x = 1\n\nraise OSError('no')\n", ":3: the plug-in fails: OSError"),
    "clash": (PLUGIN.replace('"fail"', '"cse"'), "already a pass named 'cse'"),
}


@pytest.mark.parametrize("case", BROKEN_PLUGINS)
def test_a_broken_plugin(case: str, good: str, tmp_path: Path):
    text, message = BROKEN_PLUGINS[case]
    file = tmp_path / "broken.py"
    file.write_text(text)
    sentence = the_sentence(comet_opt(good, "--load-pass-plugin", str(file)))
    assert sentence.startswith(f"comet-opt: error: {file}")
    assert message in sentence


def test_an_output_file_appears_whole_or_not_at_all(good: str, plugin: str):
    out = Path(good).with_name("out.mlir")
    args = (good, "--load-pass-plugin", plugin, "-o", str(out))
    assert comet_opt(*args, "-p", "fail").returncode == 1
    assert not out.exists()
    assert comet_opt(*args).returncode == 0
    assert comet_opt(str(out)).stdout == out.read_text()


def test_locations_are_printed_on_request():
    result = comet_opt("--print-debuginfo", text=GOOD)
    assert 'loc("stdin":2:3)' in result.stdout


def test_the_version_names_comet_and_xdsl():
    assert comet_opt("--version").stdout.startswith("comet-opt 0.")


def test_plain_xdsl_opt_runs_our_passes(good: str):
    path = ROOT / "samples" / "hardware" / "edge.yaml"
    spec = f'attach-hardware{{path="{path}"}}'
    result = subprocess.run(
        [Path(sys.executable).with_name("xdsl-opt"), good, "-p", spec],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "arch.system @edge" in result.stdout


def test_jobs_are_positive(tmp_path: Path):
    file = tmp_path / "in.mlir"
    file.write_text("builtin.module {}")
    sentence = the_sentence(comet_opt(str(file), "--jobs", "0"))
    assert sentence == "comet-opt: error: --jobs is a number of processes, 1 or more"
