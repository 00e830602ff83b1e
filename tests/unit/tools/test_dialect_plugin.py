"""comet-opt --load-dialect-plugin: named ops of other packages, and their mistakes."""

import subprocess
import sys
from pathlib import Path

import pytest
from paths import HARDWARE, ROOT
from preloaded_tools import preloaded_tools
from torch_python import run_python

import comet
from comet.batch.store import digest

SAMPLE = ROOT / "samples" / "custom_op" / "gemm_sigmoid_gate.mlir"
PLUGIN = SAMPLE.with_suffix(".py")
H200 = f'attach-hardware{{path="{HARDWARE}/h200x1.yaml"}},triton-distributed'
EDGE = f'attach-hardware{{path="{HARDWARE}/edge.yaml"}},comet-accelerator'


def comet_opt(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*preloaded_tools(), "comet-opt", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_an_op_of_a_plugin_is_compiled_for_gpus(tmp_path: Path):
    kernel = tmp_path / "kernel.py"
    args = (SAMPLE, "--load-dialect-plugin", PLUGIN, "-p", H200, "-t", "triton")
    done = comet_opt(*args, "-o", kernel)
    assert (done.returncode, done.stderr) == (0, "")
    checked = run_python([str(kernel), "--check"])
    assert checked.stdout.startswith("right: "), checked.stderr


def test_an_op_of_a_plugin_is_compiled_for_accelerators():
    args = (SAMPLE, "--load-dialect-plugin", PLUGIN, "-p", EDGE, "-t", "comet")
    done = comet_opt(*args)
    assert done.returncode == 0, done.stderr
    assert "//--- mapping.yaml" in done.stdout


BROKEN = {
    "no dialect": (
        'SAMPLE = Dialect("sample", [',
        "x = ([",
        "must define a Dialect with an op",
    ),
    "a taken name": ('Dialect("sample"', 'Dialect("func"', "is already a dialect"),
    "raises": ("a, b, g =", "a, b =", "fails at {file}:42: ValueError: too many"),
    "no rule": ("def decompose", "def other", "or a method decompose to its class"),
    "two of a name": ("[GemmS", "2 * [GemmS", "are called 'sample.gemm_sigmoid_gate'"),
    "no result": ("return emit", "emit", "returns None, and the op's result has the"),
    "another result": (
        'MapKind.DIV, site.wide(g), divisor, name="y"',
        'MapKind.DIV, one, one, name="y"',
        "returns tensor<f32, #compound.dims<>>, and the op's result has the "
        "dimensions M, N",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_plugin(case: str, tmp_path: Path):
    old, new, message = BROKEN[case]
    text = PLUGIN.read_text()
    assert old in text
    file = tmp_path / "broken.py"
    file.write_text(text.replace(old, new))
    done = comet_opt(SAMPLE, "--load-dialect-plugin", file, "-p", "decompose")
    (sentence,) = done.stderr.splitlines()
    assert message.format(file=file) in sentence
    assert "a bug in comet" not in sentence


LIMITS = "{stream: false, strategy: full, dim: N}"


def comet_explore(*args: str | Path) -> subprocess.CompletedProcess[str]:
    module = "comet.tools.comet_explore"
    command = [sys.executable, "-m", module, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_a_program_with_an_op_of_a_plugin_is_searched(tmp_path: Path):
    limits, proof = tmp_path / "limits.yaml", tmp_path / "proof.json"
    limits.write_text(LIMITS)
    plugin = ("--load-dialect-plugin", PLUGIN)
    about = (SAMPLE, "--hardware", HARDWARE / "edge.yaml", "--constraints", limits)
    done = comet_explore(*about, *plugin, "--tolerance", "0.9", "--certificate", proof)
    assert done.stdout.startswith("model paper: "), done.stderr
    assert ": true; " in comet_explore("--verify", proof, *plugin).stdout
    assert "load its dialect" in comet_explore("--verify", proof).stderr


def test_processes_of_a_batch_load_the_plugin(tmp_path: Path):
    batch = tmp_path / "batch.yaml"
    entry = f"{{program: {SAMPLE}, constraints: {LIMITS}, tolerance: 0.9}}"
    batch.write_text(f"- {entry}\n")
    args = ("--batch", batch, "--hardware", HARDWARE / "edge.yaml", "--jobs", "2")
    done = comet_explore(*args, "--load-dialect-plugin", PLUGIN)
    assert done.returncode == 0, done.stdout


def test_a_file_is_loaded_in_python(tmp_path: Path):
    file = tmp_path / "gate.py"
    text = PLUGIN.read_text().replace('"sample', '"loaded')
    file.write_text(text)
    program = SAMPLE.read_text().replace("sample.", "loaded.")
    with pytest.raises(comet.CometError, match="there is no operation loaded"):
        comet.parse(program)
    comet.load_dialects(file)
    assert "loaded.gemm_sigmoid_gate" in str(comet.parse(program))
    before = comet.question(program, HARDWARE / "edge.yaml")
    file.write_text(f"{text}\n# a change\n")
    comet.load_dialects(file)
    assert digest(before) != digest(comet.question(program, HARDWARE / "edge.yaml"))
    other = tmp_path / "other.py"
    other.write_text(text)
    with pytest.raises(comet.CometError, match=r"other\.py: there is already a"):
        comet.load_dialects(other)


def test_a_pass_knows_the_ops_of_its_own_file(tmp_path: Path):
    file = tmp_path / "both.py"
    file.write_text(PLUGIN.read_text() + COUNT_GATES)
    args = (SAMPLE, "--load-dialect-plugin", file, "--load-pass-plugin", file)
    assert "sample.gates" in comet_opt(*args, "-p", "count-gates").stdout


COUNT_GATES = """
from xdsl.dialects.builtin import UnitAttr
from xdsl.passes import ModulePass


class CountGates(ModulePass):
    name = "count-gates"

    def apply(self, ctx, op):
        for gate in op.walk():
            if isinstance(gate, GemmSigmoidGateOp):
                op.attributes["sample.gates"] = UnitAttr()
"""
