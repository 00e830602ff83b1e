"""`comet-opt --explain`: a table for each choice."""

import re
from pathlib import Path
from typing import TypeAlias

import pytest
from programs import graph_text, mesh_text
from semantics import parse_module

from comet.passes.search.goal import Cost
from comet.passes.search.record import Choice, Row
from comet.tools.comet_opt import main
from comet.tools.explain import explained as explained_text

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "samples"


Captured: TypeAlias = pytest.CaptureFixture[str]


def explained(
    sample: str, passes: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> str:
    path = str(SAMPLES / f"{sample}.mlir")
    monkeypatch.setattr("sys.argv", ["comet-opt", path, "--explain", "-p", passes])
    main()
    return capsys.readouterr().err


def test_the_page_shows_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
):
    text = (ROOT / "docs" / "tools.md").read_text()
    example = re.search(r"```\n\$ comet-opt --explain .*\n.*\n((?:.*\n)*?)```", text)
    assert example is not None
    passes = f'attach-hardware{{path="{SAMPLES}/hardware/edge.yaml"}},comet-accelerator'
    printed = explained("gemm_softmax", passes, monkeypatch, capsys)
    tables = example[1].split("...\n")
    assert len(tables) == 3
    for table in tables:
        assert table in printed


def test_equal_choices_have_one_table():
    row = Row("M=8", Cost(2e-6, 0.0), "memory")
    kept = [Choice("tiles", place, (), (row,), 0) for place in ("@a", "@b", "@a")]
    other = Choice("tiles", "@c", ("split none",), (row,), 0)
    module = parse_module(mesh_text({"rank": 2}))
    headings = re.findall("^tiles .*$", explained_text([*kept, other], module), re.M)
    assert headings == ["tiles for @a, @b", "tiles for @c, with split none"]


def test_kernels_of_gpus_are_explained_in_microseconds(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
):
    hardware = f'attach-hardware{{path="{SAMPLES}/hardware/h200x8.yaml"}}'
    passes = f"{hardware},triton-distributed{{ranks=2 pattern=auto}}"
    printed = explained("ag_gemm", passes, monkeypatch, capsys)
    assert re.search(
        r"^strategy for @ag_gemm\n  candidate +us  limited by$", printed, re.M
    )
    assert re.search(r"^\* (push|wait|pull|fused|bsp).* \d+\.\d{3}  ", printed, re.M)
    assert re.search(
        r"^tiles for @c, with .*\n(.*\n)*\* M=\d+ N=\d+ K=\d+ warps=\d+ stages=\d+ ",
        printed,
        re.M,
    )
    assert "\nother tiles for @ag_gemm_c_kernel\n" in printed
    check_compared(printed)


def check_compared(printed: str):
    """The tiles that are taken are those with the least of what tables compare."""
    tables = re.findall(
        r"^tiles for .*\n.* us +compared, us  limited by\n((?:[ *] .*\n)+)",
        printed,
        re.M,
    )
    assert tables
    for table in tables:
        rows = re.findall(r"^([ *]) .* ([\d.,]+) +([\d.,]+)  \w", table, re.M)
        least = min(rows, key=lambda row: float(row[2].replace(",", "")))
        assert [row[2] for row in rows if row[0] == "*"] == [least[2]]


SOFTMAX = """\
!x = tensor<{m}x{n}xf32, #compound.dims<M, N>>
!row = tensor<{m}xf32, #compound.dims<M>>
func.func @softmax(%x: !x) -> !x {{
  %m = compound.reduce max %x : !x -> !row
  %s = compound.map sub %x, %m : !x, !row -> !x
  %e = compound.map exp %s : !x -> !x
  %l = compound.reduce add %e : !x -> !row
  %p = compound.map div %e, %l : !x, !row -> !x
  func.return %p : !x
}}
"""


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        (graph_text("gemm", (8192, 8192, 8192)), "tensor cores"),
        (graph_text("gemm", (1, 8192, 8192)), "device memory"),
        (graph_text("gemm", (64, 64, 64)), "launch"),
        (SOFTMAX.format(m=16384, n=4096), "device memory"),
        (SOFTMAX.format(m=64, n=64), "launch"),
    ],
)
def test_what_bounds_a_kernel(
    text: str,
    bound: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
):
    path, hardware = tmp_path / "in.mlir", f"{SAMPLES}/hardware/h200x1.yaml"
    path.write_text(text)
    passes = f'attach-hardware{{path="{hardware}"}},decompose,fuse{{strategy=auto}}'
    monkeypatch.setattr("sys.argv", ["comet-opt", str(path), "--explain", "-p", passes])
    main()
    chosen = capsys.readouterr().err.split("\nstrategy for ")[1]
    assert re.findall(r"^\* .*\.\d{3}  (.*)$", chosen, re.M)[0] == bound


def test_products_in_a_narrow_type_are_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
):
    hardware = f'attach-hardware{{path="{SAMPLES}/hardware/h200x1.yaml"}}'
    passes = f"{hardware},decompose,fuse{{strategy=auto narrow=auto}}"
    printed = explained("gated_mlp", passes, monkeypatch, capsys)
    wide, narrow = re.findall(r"^strategy for @gated_mlp(.*)$", printed, re.M)
    assert (wide, narrow) == ("", ", with narrow auto")
    table = printed[printed.index("\nnarrow for @gated_mlp\n") :]
    candidates = re.findall(r"^[* ] (\S.*?)  ", table, re.M)
    assert candidates == ["candidate", "none", "opening wide"]
    assert table.count("\n* ") == 1


def test_launch_plans_of_ranks_are_limited_by_their_taxes(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
):
    hardware = f'attach-hardware{{path="{SAMPLES}/hardware/h200x8.yaml"}}'
    passes = f"{hardware},triton-distributed{{ranks=2 pattern=push}}"
    printed = explained("gated_mlp", passes, monkeypatch, capsys)
    table = printed[printed.index("\nkernels of ranks for ") :].partition("\n\n")[0]
    limits = set(re.findall(r"\.\d{3}  (.*)$", table, re.M))
    assert limits
    assert limits <= {"kernels", "launch", "synchronization", "intermediates"}


def test_a_table_without_limits_has_no_column_for_them():
    row = Row("trial=0", Cost(2e-6, 0.0), "")
    module = parse_module(mesh_text({"rank": 2}))
    text = explained_text([Choice("shardings", "@f", (), (row,), 0)], module)
    assert "limited by" not in text


def test_a_refusal_is_explained_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
):
    path, hardware = tmp_path / "in.mlir", f"{SAMPLES}/hardware/edge.yaml"
    path.write_text(graph_text("gemm_softmax", (384, 512, 1536)))
    options = "strategy=full dim=auto kind=allreduce stream=false"
    passes = f'attach-hardware{{path="{hardware}"}},comet-accelerator{{{options}}}'
    monkeypatch.setattr("sys.argv", ["comet-opt", str(path), "--explain", "-p", passes])
    with pytest.raises(SystemExit):
        main()
    printed = capsys.readouterr().err
    rows = re.findall(
        r"(?:^ .*\n)+", printed[printed.index("mapping for @main") :], re.M
    )
    assert rows[0].count("no valid mapping") == 10


def test_what_a_buffer_forbids_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
):
    path, hardware = tmp_path / "in.mlir", f"{SAMPLES}/hardware/edge.yaml"
    path.write_text(graph_text("gemm_softmax", (384, 512, 1536)))
    passes = f'attach-hardware{{path="{hardware}"}},comet-accelerator{{dim=N}}'
    monkeypatch.setattr("sys.argv", ["comet-opt", str(path), "-p", passes])
    main()
    assert re.fullmatch(
        r"comet-opt: warning: mapping for @\w+: stream=false dim=N "
        r"strategy=isolate_contractions costs [\d,]+ cycles; stream=false dim=N "
        r"strategy=full might cost as little as [\d,]+, and is rejected: tile: no "
        r"valid mapping; with the finest tiles, level WB needs 98304 bytes and has "
        r"32768; .* may cut K = 512 and N = 96, .*\n",
        capsys.readouterr().err,
    )
