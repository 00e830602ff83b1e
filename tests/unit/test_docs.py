"""The documents tell the truth: examples verify, and the pass table is complete."""

import re
import shlex
from dataclasses import MISSING, Field, fields
from pathlib import Path
from textwrap import dedent

import pytest
from covering import one_of
from ladder_programs import resized
from named_ops import NAMED_OPS, NamedOp
from paths import ROOT
from semantics import parse_module, run_passes
from shown_pages import pattern
from tool_run import comet_opt, comet_opt_command
from triton_modules import emitted, hardware
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.parser import Parser
from xdsl.utils.hints import isa

import comet
from comet.api.answer import FIGURES
from comet.cost.accelerator.compute import MATRIX_UNITS, VECTOR_UNITS
from comet.dialects import get_all_dialects
from comet.dialects.arch.schema import GPU
from comet.dialects.comet import MappingOp
from comet.dialects.compound.named import named_ops
from comet.dialects.cost import estimate_of
from comet.passes import get_all_passes
from comet.tools.demo import format_figures
from comet.tools.mapping_table import format_table, mapping_rows

EXAMPLES = re.findall(r"```mlir\n(.*?)```", (ROOT / "docs/ir.md").read_text(), re.S)
HARDWARE = f'attach-hardware{{path="{ROOT}/samples/hardware'
OPS = (ROOT / "docs/ops.md").read_text()
EXPLORE = (ROOT / "docs/explore.md").read_text()
TOOLS = (ROOT / "docs/tools.md").read_text()
ROWS = {
    row[0].strip(" `"): row[1].strip()
    for line in (ROOT / "docs/passes.md").read_text().splitlines()
    if line.startswith("| `") and (row := line.strip("|").split("|"))
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_verify(example: str):
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(Func)
    for name, factory in get_all_dialects().items():
        ctx.register_dialect(name, factory)
    Parser(ctx, example).parse_module().verify()


def test_every_level_has_an_example():
    assert len(EXAMPLES) == 15


def test_the_table_names_every_pass():
    assert set(ROWS) == set(get_all_passes())


def _text(field: "Field[object]") -> str:
    if field.default is MISSING:
        return f"`{field.name}`"
    default = field.default
    text = ",".join(default) if isa(default, tuple[str, ...]) else str(default)
    text = text.lower() if isinstance(default, bool) else text
    return f"`{field.name}` ({'none' if default is None else f'`{text}`'})"


@pytest.mark.parametrize("name", sorted(get_all_passes()))
def test_the_table_lists_every_option(name: str):
    options = fields(get_all_passes()[name]())
    assert ROWS[name] == ", ".join(_text(option) for option in options)


def test_the_dimensions_of_the_named_ops_are_listed():
    rows = re.findall(r"^\| `(\w+)` \|(.*?)\|(.*?)\|", OPS, re.M)
    kinds = {kind.name.removeprefix("compound."): kind for kind in named_ops()}
    assert len(rows) >= 14
    for name, operands, result in rows:
        assert _dims(operands) == list(kinds[name].OPERANDS)
        assert _dims(result) == [kinds[name].RESULT]


LISTED = re.compile(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", re.M)


@one_of(6)
@pytest.mark.parametrize(
    "op",
    [op for op in NAMED_OPS if op.name in dict(LISTED.findall(OPS))],
    ids=lambda op: op.title,
)
def test_the_named_ops_have_files_where_that_is_listed(op: NamedOp):
    said = dict(LISTED.findall(OPS))[op.name]
    listed = {"yes": True, "no": False, "unless causal": not op.positions}[said]
    batch = [dim for dim in op.result[:-2] if op.even[dim] > 1]
    options = "strategy=full stream=false pad=none chunks=shared dim=" + op.result[-1]
    loops = " ".join(f"{dim}={op.even[dim]}" for dim in batch)
    options += f' factors="{f"y_dram: {loops}" if batch else ""}"'
    edge = f'{HARDWARE}/edge.yaml"}},comet-accelerator{{{options}}}'
    assert (comet_opt(op.text(op.even), edge, "comet").code == 0) == listed


def _dims(cell: str) -> list[tuple[str, ...]]:
    return [tuple(dims.split(", ")) for dims in re.findall(r"\((.*?)\)", cell)]


def test_the_readme_shows_what_its_pass_writes(monkeypatch: pytest.MonkeyPatch):
    readme = (ROOT / "README.md").read_text()
    (command, shown) = re.findall(
        r"^comet-opt ([^`]*?annotate-flops)\n```.*?^(%c = .*?) \.\.\.$",
        readme,
        re.M | re.S,
    )[0]
    monkeypatch.chdir(ROOT)
    done = comet_opt_command(shlex.split(command.replace("\\\n", " ")))
    assert done.code == 0, done.err
    assert [line for line in done.out.splitlines() if "flops" in line] == [
        line for line in done.out.splitlines() if line.strip().startswith(shown)
    ]
    assert shown in done.out


def test_the_pass_for_contributors_runs(tmp_path: Path):
    page = (ROOT / "CONTRIBUTING.md").read_text()
    (text,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    plugin = tmp_path / "count_maps.py"
    plugin.write_text(text)
    (args,) = re.findall(r"^`comet-opt (.*count-maps)`", page, re.M)
    args = args.replace("samples", f"{ROOT}/samples").replace(plugin.name, str(plugin))
    assert "{sample.maps = 3 : i64}" in comet_opt_command(args.split()).out


def test_the_readme_shows_the_mapping_that_is_chosen():
    hardware = ROOT / "samples/hardware/edge.yaml"
    passes = f'attach-hardware{{path="{hardware}"}},comet-accelerator'
    sample = (ROOT / "samples/gemm_softmax.mlir").read_text()
    module = run_passes(parse_module(sample), passes)
    mapping = next(op for op in module.ops if isinstance(op, MappingOp))
    readme = (ROOT / "README.md").read_text()
    assert format_table(tuple(mapping_rows(mapping.root))) in readme
    figures = estimate_of(mapping)
    assert figures is not None
    assert format_figures(figures) in readme


def test_the_readme_shows_the_kernel_that_is_written():
    readme = (ROOT / "README.md").read_text()
    sample = (ROOT / "samples/gemm_softmax.mlir").read_text()
    passes = f"{hardware('h200x1.yaml')},triton-distributed{{ranks=1}}"
    shown = re.findall(r"^```python\n(.*?)^```", readme, re.M | re.S)[0]
    assert shown in dedent(kernel_body(emitted(sample, passes))) + "\n"


HEADS = {1: 4, 8: 32, 128: 4096, 256: 4096, 64: 128, 32: 128}
"""4 x 32 x 4096 x 128, by the extents of the samples of attention."""
SQUARE = {128: 4096, 64: 4096, 256: 4096}
EXPLAINED = {
    "warps for @o": (resized("attention", HEADS).replace("f16", "bf16"), ""),
    "program order for @o": (
        resized("attention_causal", HEADS).replace("f16", "bf16"),
        " persist=none",
    ),
    "stores for @gemm_kernel": (
        resized("gemm", SQUARE),
        ' stores=all persist=all factors="c: M=32 N=16 warps=8 stages=4 group=8;'
        ' c_k: K=64"',
    ),
}
"""Tables of docs/gpu-passes.md: the program, and the options that it names."""


@pytest.mark.parametrize("title", EXPLAINED)
def test_the_passes_show_what_is_explained(title: str, tmp_path: Path):
    program, options = EXPLAINED[title]
    (tmp_path / "in.mlir").write_text(program)
    passes = f"{hardware('h200x1.yaml')},triton-distributed{{to=dataflow{options}}}"
    done = comet_opt_command([f"{tmp_path}/in.mlir", "-p", passes, "--explain"])
    assert done.code == 0, done.err
    text = (ROOT / "docs/gpu-passes.md").read_text()
    (shown,) = re.findall(rf"^```\n({title}\n.*?)^```", text, re.M | re.S)
    assert f"{shown}\n" in done.err


def test_groups_of_programs_have_the_mesh_that_is_shown():
    text = (ROOT / "docs/gpu-groups.md").read_text()
    sample = (ROOT / "samples/gemm_softmax.mlir").read_text()
    done = comet_opt(sample, f"{hardware('h200x1.yaml')},add-ctas{{ctas=4}}")
    (shown,) = re.findall(r"^collective\.mesh .*$", text, re.M)
    assert shown in done.out


def kernel_body(module: str) -> str:
    """Return what the first kernel of an emitted module does, without its header."""
    start = module.index("    offs_m =")
    return module[start : module.index("\n\n\n", start)]


def test_the_tools_page_shows_what_a_pipeline_expands_to(
    monkeypatch: pytest.MonkeyPatch,
):
    (command, shown) = re.findall(
        r"^\$ comet-opt (--expand .*\n.*)\n((?:.+\n)*?)```", TOOLS, re.M
    )[0]
    monkeypatch.chdir(ROOT)
    done = comet_opt_command(shlex.split(command.replace("\\\n", " ")))
    assert done.code == 0, done.err
    assert "".join(done.out.split()) == "".join(shown.split())


@pytest.mark.parametrize(
    "passes", ["tile", 'decompose,fuse,tile{factors="c_dram: M=7"}']
)
def test_the_tools_page_shows_errors_as_they_are(passes: str):
    sample = (ROOT / "samples/gemm.mlir").read_text().replace("@gemm", "@main")
    done = comet_opt(sample, f'{HARDWARE}/edge.yaml"}},{passes}')
    assert f"{done.sentence}\n" in TOOLS


def test_the_page_of_named_ops_shows_a_class_and_its_decomposition():
    op = (ROOT / "dialects/compound/named/epilogue.py").read_text()
    rule = (ROOT / "passes/graph/decompose/rules/gemm_bias_relu.py").read_text()
    shown, decomposition = re.findall(r"^```python\n(.*?)^```", OPS, re.M | re.S)
    assert shown in op
    assert decomposition in rule


def test_every_unit_and_figure_of_a_machine_is_described():
    page = (ROOT / "docs/hardware.md").read_text()
    units, figures = (
        re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", part, re.M)))
        for part in page.split("## GPUs")
    )
    assert sorted(units) == sorted((*MATRIX_UNITS, *VECTOR_UNITS))
    assert sorted(figures) == sorted(GPU)


def test_every_script_of_benchmarks_is_listed():
    listed = set(
        re.findall(r"`(\w+\.py)`", (ROOT / "benchmarks/README.md").read_text())
    )
    scripts = {
        file.name
        for file in (ROOT / "benchmarks").glob("*.py")
        if "__main__" in file.read_text()
    }
    assert scripts <= listed


def test_the_page_of_the_search_shows_an_answer(monkeypatch: pytest.MonkeyPatch):
    command = "comet-explore samples/gemm.mlir --hardware samples/hardware/edge.yaml"
    shown = re.findall(rf"^\$ {command}\n((?:.+\n)*?)```", EXPLORE, re.M)[0]
    monkeypatch.chdir(ROOT)
    answer = comet.explore("samples/gemm.mlir", "samples/hardware/edge.yaml")
    assert pattern(shown).fullmatch(f"{answer}\n")


def test_the_keys_of_an_answer_are_listed():
    table = re.findall(r"^\| key of `--json` .*\n.*\n((?:\|.*\n)+)", EXPLORE, re.M)[0]
    cells = "".join(row.split("|")[1] for row in table.splitlines())
    assert sorted(re.findall(r"`(\w+)`", cells)) == sorted(FIGURES)
