"""Every mistake of a user: one sentence, exit code 1, and no file left behind."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from programs import graph_text
from tool_run import comet_opt

ROOT = Path(__file__).parents[2]
HARDWARE = ROOT / "samples" / "hardware"
SIZES = (8, 4, 64)
GRAPH = graph_text("gemm_softmax", SIZES)
EDGE = f'attach-hardware{{path="{HARDWARE}/edge.yaml"}}'
H200 = f'attach-hardware{{path="{HARDWARE}/h200x1.yaml"}}'

ACCELERATOR = {
    "graph": EDGE,
    "elementary": "decompose{accumulator=input},distribute{dim=N axes=cx,cy,kx,ky}",
    "spmd": "insert-collectives",
    "placed": "place-collectives",
    "schedule": "fuse{strategy=full}",
    "mapping": "tile,lower-to-comet",
}
GPU = {
    "graph": H200,
    "elementary": "decompose",
    "schedule": "stream,fuse{strategy=full},tile",
    "dataflow": "outline-kernels",
    "target": "lower-to-triton",
}


@cache
def text_at(machine: str, level: str) -> str:
    """Return gemm_softmax at a level of the way down to a machine."""
    text = GRAPH
    for name, passes in (ACCELERATOR if machine == "edge" else GPU).items():
        run = comet_opt(text, passes)
        assert run.code == 0, run.err
        text = run.out
        if name == level:
            return text
    raise ValueError(level)


TO_ELEMENTARY, TO_SCHEDULE = "run decompose first", "run decompose, fuse first"
TO_DATAFLOW = "run decompose, fuse, outline-kernels first"
LATE = "run {} before {}"
TOO_EARLY: dict[tuple[str, str], str] = {
    **{
        ("graph", name): TO_ELEMENTARY
        for name in (
            "stream",
            "distribute{dim=N axes=cx}",
            "insert-collectives",
            "place-collectives",
            "fuse{strategy=full}",
            "fuse{strategy=auto}",
        )
    },
    **{
        ("graph", name): TO_SCHEDULE
        for name in ("tile", "bind", "annotate-cost", "lower-to-comet")
    },
    ("graph", "outline-kernels"): TO_SCHEDULE,
    ("graph", "lower-to-triton"): TO_DATAFLOW,
    **{
        (level, name): "run fuse first"
        for level in ("elementary", "spmd")
        for name in (
            "tile",
            'tile{factors="DRAM: M=2"}',
            "bind",
            "annotate-cost",
            "lower-to-comet",
            "outline-kernels",
        )
    },
    ("spmd", "fuse{strategy=full}"): "run place-collectives first",
    ("spmd", "fuse{strategy=auto}"): "run place-collectives first",
    ("elementary", "lower-to-triton"): "run fuse, outline-kernels first",
    ("schedule", "lower-to-triton"): "run outline-kernels first",
}
MAKERS = {
    "elementary": "decompose",
    "spmd": "insert-collectives",
    "schedule": "fuse",
    "dataflow": "outline-kernels",
    "target": "lower-to-triton",
}
BEFORE = {
    "decompose": ("elementary", "spmd", "schedule", "dataflow", "target"),
    "stream": ("spmd", "schedule", "dataflow", "target"),
    "distribute{dim=N axes=cx}": ("spmd", "schedule"),
    "insert-collectives": ("spmd", "schedule", "dataflow", "target"),
    "place-collectives": ("schedule", "dataflow", "target"),
    "fuse": ("schedule", "dataflow", "target"),
    "tile": ("dataflow", "target"),
    "bind": ("dataflow", "target"),
    "annotate-cost": ("target",),
    "outline-kernels": ("dataflow", "target"),
    "lower-to-comet": ("dataflow", "target"),
    "lower-to-triton": ("target",),
    "comet-accelerator": ("elementary", "spmd", "schedule"),
}
TOO_LATE = {(level, spec) for spec, levels in BEFORE.items() for level in levels}


def machine_of(level: str) -> str:
    return "h200" if level in ("dataflow", "target") else "edge"


@pytest.mark.parametrize("case", TOO_EARLY, ids=" ".join)
def test_a_pass_that_comes_too_early_says_what_to_run_first(case: tuple[str, str]):
    level, spec = case
    sentence = comet_opt(text_at("edge", level), spec).sentence
    assert sentence.startswith("in.mlir:")
    assert sentence.endswith(TOO_EARLY[case])


@pytest.mark.parametrize("case", sorted(TOO_LATE), ids=" ".join)
def test_a_pass_that_comes_too_late_says_where_it_belongs(case: tuple[str, str]):
    level, spec = case
    sentence = comet_opt(text_at(machine_of(level), level), spec).sentence
    name = spec.partition("{")[0]
    # The pipeline starts by decomposing.
    name = "decompose" if name == "comet-accelerator" else name
    again = "it has run already"
    belongs = f"run {name} before {MAKERS[level]}"
    assert sentence.endswith(again if name == MAKERS[level] else belongs)


@pytest.mark.parametrize(
    "spec",
    [
        "decompose",
        "stream",
        "distribute{dim=N axes=cx}",
        "insert-collectives",
        "place-collectives",
        "fuse",
        "tile",
        "bind",
        "lower-to-comet",
        "comet-accelerator",
        "outline-kernels",
        "lower-to-triton",
    ],
)
def test_nothing_but_prices_comes_after_a_mapping(spec: str):
    sentence = comet_opt(text_at("edge", "mapping"), spec).sentence
    assert "the module is a COMET mapping already" in sentence
    assert sentence.endswith("before lower-to-comet")


@pytest.mark.parametrize(
    "spec",
    ["fuse", "tile", "annotate-cost", "comet-accelerator", "triton-distributed"],
)
def test_a_pass_that_needs_hardware_says_how_to_attach_it(spec: str):
    before = "decompose" if spec == "fuse" else ""
    text = comet_opt(GRAPH, before).out
    assert "attach-hardware" in comet_opt(text, spec).sentence


@pytest.mark.parametrize(
    ("machine", "level", "target"),
    [
        *(("edge", level, "comet") for level in ("graph", "spmd", "schedule")),
        *(("h200", level, "comet") for level in ("dataflow", "target")),
        *(("h200", level, "triton") for level in ("graph", "schedule", "dataflow")),
        ("edge", "mapping", "triton"),
    ],
)
def test_a_target_at_the_wrong_level(machine: str, level: str, target: str):
    sentence = comet_opt(text_at(machine, level), target=target).sentence
    way_out = {"comet": ("lower-to-comet first",), "triton": ("triton", "decompose")}
    assert any(words in sentence for words in way_out[target])


TUNED = f"{EDGE},comet-accelerator"
MISTAKES = {
    "unknown dimension": (
        f"{EDGE},comet-accelerator{{dim=Q}}",
        "there is no dimension Q to share; there are M, K, N",
    ),
    "unknown dimension to distribute": (
        f"{EDGE},decompose,distribute{{dim=Q axes=cx}}",
        "no op of @main has the dimension Q; dimensions of the function are ",
    ),
    "unknown dimension in a plan": (
        f'{EDGE},comet-accelerator{{strategy=full factors="DRAM: Q=2"}}',
        "tile: plan entry 'DRAM: Q=2' names the unknown dimension Q; the nodes it "
        "fits have ",
    ),
    "unknown dimension to stream": (
        "decompose,stream{dim=Q}",
        "no op has the dimension Q; the module's dimensions are K, M, N",
    ),
    "factor that does not divide": (
        f'{EDGE},comet-accelerator{{strategy=full factors="DRAM: M=3"}}',
        "tile: factor 3 of M does not divide its extent 8 in the node at DRAM; take a "
        "divisor of 8",
    ),
    "level without nodes": (
        f'{EDGE},comet-accelerator{{strategy=full factors="L2: M=2"}}',
        "tile: plan entry 'L2: M=2' fits no node; there are nodes at DRAM, GB, OB",
    ),
    "plan that is none": (
        f'{EDGE},comet-accelerator{{strategy=full factors="DRAM=2"}}',
        "plan entry 'DRAM=2' is not of the form LEVEL/KIND: DIM=FACTOR ..",
    ),
    "row that is none": (
        f'{EDGE},comet-accelerator{{strategy=full factors="DRAM: M=0"}}',
        "plan row 'M=0' of 'DRAM: M=0' is not of the form DIM=FACTOR with a positive",
    ),
    "hardware twice": (f"{EDGE},{H200}", "already has the hardware @edge"),
    "no hardware file": (
        'attach-hardware{path="nowhere.yaml"}',
        "cannot read the hardware file nowhere.yaml: No such file or directory",
    ),
    "GPU for an accelerator": (f"{H200},comet-accelerator", "@h200x1"),
    "accelerator for a GPU": (f"{EDGE},triton-distributed", "@edge"),
    "unknown axis": (
        f"{EDGE},decompose,distribute{{dim=N axes=cx,cz}}",
        "mesh @edge has no axis cz; its axes are cx, cy, kx, ky",
    ),
    "unknown level": (f"{EDGE},comet-accelerator{{at=L3}}", "its axes lie at GB, OB"),
    "unknown strategy": (
        f"{EDGE},fuse{{strategy=most}}",
        "pass 'fuse': the option 'strategy' is one of 'none', 'partial', 'full', "
        "'auto', not most",
    ),
    "unknown binding": (f"{EDGE},bind{{kind=maybe}}", "the option 'kind' is one of "),
    "unknown model": ("annotate-cost{model=exact}", "'model' is one of 'tool', "),
    "unknown kind": ("place-collectives{kind=tree}", "the option 'kind' is one of "),
    "unknown accumulator": ("decompose{accumulator=f8}", "'accumulator' is one of "),
    "word for a number": ("triton-distributed{ranks=two}", "'ranks' is int"),
    "no rank": (f"{H200},triton-distributed{{ranks=0}}", "ranks"),
    "unknown option": ("tile{factor=2}", "has no option 'factor'; it has factors"),
    "unknown pass": ("tyle", "there is no pass named 'tyle'; did you mean 'tile'?"),
    "parallel siblings": (
        f"{EDGE},comet-accelerator{{strategy=full bind=parallel}}",
        "they cannot run in parallel, take kind=pipeline or kind=sequential",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_the_passes(case: str):
    passes, message = MISTAKES[case]
    assert message in comet_opt(GRAPH, passes).sentence


def test_a_tile_that_does_not_fit_names_buffer_tensor_and_bytes():
    text = graph_text("gemm_softmax", (512, 64, 4096))
    options = 'strategy=full factors="GB: M=512"'
    sentence = comet_opt(text, f"{EDGE},comet-accelerator{{{options}}}").sentence
    assert "level WB needs 65536 bytes and has 32768" in sentence
    assert "the largest tile is that of %b with 65536 bytes" in sentence


@pytest.mark.parametrize("strategy", ["full", "partial"])
def test_what_no_factor_makes_fit_is_named(strategy: str):
    text = graph_text("gemm_softmax", (1, 1, 2**22))
    options = f"strategy={strategy}"
    sentence = comet_opt(text, f"{EDGE},comet-accelerator{{{options}}}").sentence
    assert "tile: no valid mapping; with the finest tiles, level " in sentence
    assert " bytes and has " in sentence


TEXTS = {
    "parse error": (GRAPH.replace("%a, %b :", "%a %b :"), "in.mlir:3:"),
    "undefined value": (GRAPH.replace("%a, %b :", "%a, %c :"), "in.mlir:"),
    "unknown op": (GRAPH.replace("gemm_softmax", "gemm_softmin"), "in.mlir:3:"),
    "integers": (GRAPH.replace("f16", "i8"), "expected a tensor of floats"),
    "shapes": (GRAPH.replace("4x64", "5x64"), "in.mlir:3:"),
    "rank": (GRAPH.replace("8x4x", "2x8x4x"), "in.mlir:3:"),
    "dynamic": (GRAPH.replace("8x4x", "?x4x"), "in.mlir:3:"),
    "result": (GRAPH.replace("-> tensor<8x64xf16> {", "-> f16 {"), "in.mlir:4:"),
    "empty dimension": (graph_text("gemm_softmax", (0, 4, 8)), "in.mlir:3:"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_mistake_in_the_text(case: str):
    text, message = TEXTS[case]
    assert text != GRAPH
    assert message in comet_opt(text, f"{EDGE},comet-accelerator").sentence


UNSUPPORTED = {
    "branches": """
func.func @f(%a: tensor<8x4xf16>) -> tensor<8x4xf16> {
  "cf.br"() [^bb1] : () -> ()
^bb1:
  func.return %a : tensor<8x4xf16>
}
""",
    "other ops": """
func.func @f(%a: tensor<8x4xf16>) -> tensor<8x4xf16> {
  %b = arith.addf %a, %a : tensor<8x4xf16>
  func.return %b : tensor<8x4xf16>
}
""",
    "scalars": """
func.func @f(%a: f16) -> f16 {
  func.return %a : f16
}
""",
    "no result": """
func.func @f(%a: tensor<8x4xf16>) {
  func.return
}
""",
    "no body": "func.func private @f(tensor<8x4xf16>) -> tensor<8x4xf16>",
    "nothing": "",
    "two functions": GRAPH + GRAPH.replace("@main", "@other"),
}


@pytest.mark.parametrize("pipeline", [TUNED, f"{H200},triton-distributed"])
@pytest.mark.parametrize("case", UNSUPPORTED)
def test_what_is_no_tensor_program_is_rejected(case: str, pipeline: str):
    target = "comet" if "accelerator" in pipeline else "triton"
    assert comet_opt(UNSUPPORTED[case], pipeline, target).sentence


MESHES = {
    "extent": "collective.mesh @edge {cx = 4, cy = 2, kx = 2, ky = 2}",
    "axes": "collective.mesh @edge {rank = 16}",
}


@pytest.mark.parametrize("case", MESHES)
def test_a_mesh_that_is_not_the_machines(case: str):
    sentence = comet_opt(MESHES[case] + GRAPH, EDGE).sentence
    assert "remove the mesh or correct it" in sentence


EDGE_TEXT = (HARDWARE / "edge.yaml").read_text()
FILES = {
    "malformed": ("Hierarchy:", "Hierarchy: [", "hw.yaml:"),
    "tabs": ("  - name: DRAM\n    type", "\t- name: DRAM\n    type", "hw.yaml:"),
    "misspelt": ("doublebuffered", "doublebufered", "did you mean 'doublebuffered'?"),
    "unknown field": ("  mesh:\n", "  speed: 3\n  mesh:\n", "unknown field 'speed'"),
    "unknown type": ("type: GBuffer", "type: LBuffer", "no entry named 'LBuffer'"),
    "wrong kind": ("width: 2048", "width: wide", "hw.yaml:"),
    "unknown level": ("    GB: [cx, cy]", "    L2: [cx, cy]", "no level 'L2'"),
    "no table": ("MemoryTypes:", "MemoryKinds:", "hw.yaml:"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_mistake_in_a_hardware_file_has_file_and_line(case: str, tmp_path: Path):
    old, new, message = FILES[case]
    assert old in EDGE_TEXT
    file = tmp_path / "hw.yaml"
    file.write_text(EDGE_TEXT.replace(old, new))
    sentence = comet_opt(GRAPH, f'attach-hardware{{path="{file}"}}').sentence
    assert f"{file}:" in sentence
    assert message in sentence


def test_output_files_appear_whole_or_not_at_all(tmp_path: Path):
    good, out = tmp_path / "in.mlir", tmp_path / "out"
    good.write_text(GRAPH)
    target = f'comet{{dir="{out}"}}'
    command = [sys.executable, "-m", "comet.tools.comet_opt", str(good), "-t", target]

    def run(passes: str) -> int:
        return subprocess.run(
            [*command, "-p", passes], capture_output=True, check=False
        ).returncode

    assert run(f"{EDGE},comet-accelerator{{at=L3}}") == 1
    assert not out.exists()
    assert run(f"{EDGE},comet-accelerator{{strategy=full}}") == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == ["arch.yaml", "constants.yaml", "mapping.yaml", "problem.yaml"]
    before = {path: path.read_bytes() for path in out.iterdir()}
    assert run(f"{EDGE},comet-accelerator{{strategy=none at=L3}}") == 1
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_a_new_process_says_the_same():
    arguments = ["-p", f"{EDGE},comet-accelerator{{dim=Q}}"]
    run = subprocess.run(
        [sys.executable, "-m", "comet.tools.comet_opt", *arguments],
        input=GRAPH,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (1, "")
    (line,) = run.stderr.splitlines()
    assert line.endswith("there is no dimension Q to share; there are M, K, N")
