"""The command comet-cost: the original tool's flags, JSON, a report, one sentence."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from covering import one_of
from html_pages import Reader, expect_one_file
from recorded_runs import REJECTED, RUNS, run_of, texts_of

from comet.codegen.comet import split_files
from comet.tools.comet_cost import main


def flags(folder: Path, run: dict[str, Any]) -> list[str]:
    """Writes a record's files and returns the flags that name them."""
    result: list[str] = []
    for kind, text in texts_of(run).items():
        path = folder / f"{kind}.yaml"
        path.write_text(text)
        result += [f"--{kind}_file", str(path)]
    return result


@pytest.mark.parametrize("run", RUNS[::9], ids=lambda r: r["family"])
def test_json_has_the_figures(
    run: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = ["--calc_noc_energy"] if run["network_energy"] else []
    main([*flags(tmp_path, run), *network, "--json"])
    got = json.loads(capsys.readouterr().out)
    expected = run["result"]
    for key in ("root_cycles", "total_cycles", "table", "nodes"):
        assert got[key] == expected[key]
    assert got["ideal_cycles"] == expected["ideal"]
    energy = got["total_energy_pj"]
    assert float(f"{energy:.6e}") == expected["total_energy"]
    assert got["model"] == "tool"
    assert got["network_energy"] == run["network_energy"]
    assert got.keys() == {
        *("root_cycles", "total_cycles", "total_energy_pj", "energy_by_level"),
        *("table", "nodes", "ideal_cycles", "utilization", "model", "network_energy"),
    }


def test_a_report_is_that_of_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of("roofline-violation")
    given, page = flags(tmp_path, run), tmp_path / "r.html"
    main([*given, "--report", str(page)])
    capsys.readouterr()
    main([*given, "--model", "paper", "--calc_noc_energy", "--json"])
    paper = json.loads(capsys.readouterr().out)
    expect_one_file(page.read_text())
    reader = Reader(page.read_text())
    assert f"{paper['root_cycles']:,.0f}" in reader.text
    assert f"{paper['total_energy_pj']:,.0f}" in reader.text
    assert "Model paper" in reader.text
    assert "--model=paper --calc_noc_energy" in reader.text


def test_what_is_below_the_roofline_is_called_impossible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of("roofline-violation")
    main(flags(tmp_path, run))
    said = "impossible: the transfers of the root memory take 42,035 cycles"
    assert said in capsys.readouterr().out
    main([*flags(tmp_path, run), "--model", "paper"])
    assert "impossible" not in capsys.readouterr().out


def without_entry(mapping: str, entry: int) -> str:
    """Return a mapping whose third node, the temporal one at GB, lacks an entry."""
    tree = json.loads(mapping)
    node = tree["mapping"]["subtree"][0]["subtree"][0]
    for key in ("target", "tensors", "precision", "rmw", "wb_output", "tag", "child"):
        del node[key][entry]
    factors = re.sub(r"\[1,", "[", node["factors"][0])
    return json.dumps(tree).replace(json.dumps(node["factors"]), f'["{factors}"]')


def test_only_the_tool_prices_what_the_node_above_does_not_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of("softmax-fused")
    given = flags(tmp_path, {**run, "mapping": without_entry(run["mapping"], 5)})
    main(given)
    assert capsys.readouterr().out.startswith("model tool: ")
    for more, said in (
        (["--model", "paper"], "error: DataMovementTileNode"),
        (["--report", str(tmp_path / "r.html")], "error: the report is that of model"),
    ):
        with pytest.raises(SystemExit):
            main([*given, *more])
        error = capsys.readouterr().err
        assert said in error
        assert "moves tensor X for EXP" in error


@pytest.mark.parametrize("model", ["tool", "paper", "ideal"])
def test_report_for_people(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of("pipeline-inner")
    main([*flags(tmp_path, run), "--model", model])
    text = capsys.readouterr().out
    assert text.startswith(f"model {model}: ")
    assert " cycles\n" in text
    assert " pJ, without the energy of networks\n" in text
    assert "##" in text
    assert ("(pipeline)" in text) == (model != "ideal")
    assert ("Total Cycles" in text) == (model == "tool")


@pytest.mark.parametrize("model", ["tool", "paper", "ideal"])
def test_the_energy_of_networks_is_said_where_it_is_counted(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of("pipeline-inner")
    main([*flags(tmp_path, run), "--model", model, "--calc_noc_energy"])
    counted = "without" if model == "ideal" else "with"
    assert f" pJ, {counted} the energy of networks\n" in capsys.readouterr().out


def test_paper_table_sums_to_the_latency(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in RUNS[::8]:
        main([*flags(tmp_path, run), "--model", "paper", "--json"])
        got = json.loads(capsys.readouterr().out)
        rows = sum(cells["Total"] for cells in got["table"].values())
        assert rows == pytest.approx(got["root_cycles"], abs=1)
        assert got["total_cycles"] == got["root_cycles"]


def test_networks_count_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spent: list[float] = []
    for more in ([], ["--calc_noc_energy"]):
        main([*flags(tmp_path, RUNS[0]), "--model", "paper", "--json", *more])
        spent.append(json.loads(capsys.readouterr().out)["total_energy_pj"])
    assert spent[0] < spent[1]


def test_to_ir_prints_one_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*flags(tmp_path, RUNS[0]), "--to-ir"])
    stream = capsys.readouterr().out
    files = split_files(stream)
    assert split_files(stream.replace("\n", "\r\n")).keys() == files.keys()
    assert list(files) == [f"{kind}.yaml" for kind in texts_of(RUNS[0])]
    assert files["mapping.yaml"].rstrip() == RUNS[0]["mapping"]


@one_of(2)
@pytest.mark.parametrize("run", REJECTED, ids=lambda r: r["family"])
def test_rejected_inputs_end_with_one_sentence(
    run: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*flags(tmp_path, run), "--json"])
    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "bug" not in printed.err
    assert re.search(r"\w+\.yaml:\d+", printed.err), "it names file and line"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "--arch_file"),
        (["--model", "best"], "invalid choice"),
        (["--arch_file", "nowhere.yaml"], "nowhere.yaml: No such file"),
        (["--to-ir", "--json"], "--to-ir prices nothing, so --json has no effect"),
    ],
)
def test_wrong_flags(
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = flags(tmp_path, RUNS[0]) if arguments else []
    with pytest.raises(SystemExit) as ended:
        main([*named, *arguments])
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1


def chain(folder: Path, runs: list[dict[str, Any]]) -> Path:
    """Write a plan, a folder of files for each run, and return the plan's path."""
    steps: list[object] = [{"view": "t", "of": ["y"], "by": "rename"}]
    for number, run in enumerate(runs, 1):
        (own := folder / str(number)).mkdir()
        _ = flags(own, run)
        steps.append({"mapping": f"m{number}", "folder": number})
    (plan := folder / "plan.yaml").write_text(json.dumps({"steps": steps}))
    return plan


def test_a_chain_costs_the_sum_of_its_mappings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = chain(tmp_path, RUNS[:2])
    main(["--plan", str(plan), "--json"])
    got = json.loads(capsys.readouterr().out)
    cycles = [run["result"]["root_cycles"] for run in RUNS[:2]]
    assert [each["root_cycles"] for each in got["mappings"]] == cycles
    assert [each["folder"] for each in got["mappings"]] == ["1", "2"]
    assert got["root_cycles"] == sum(cycles)
    energies = [each["total_energy_pj"] for each in got["mappings"]]
    assert got["total_energy_pj"] == sum(energies)
    main(["--plan", str(plan)])
    text = capsys.readouterr().out.splitlines()
    assert text[0] == f"model tool: {sum(cycles):,.0f} cycles in 2 mappings"
    assert [line.split()[:2] for line in text[4:]] == [
        [str(i), f"{n:,.0f}"] for i, n in enumerate(cycles, 1)
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("steps: []", "1: 'steps' of a plan name the folder of at least one mapping"),
        ("steps:\n- {of: [x]}", "2: a step is a mapping with its 'folder', or a"),
        ("problem: {}", "1: 'steps' of a plan name the folder of at least one"),
        ("steps:\n- folder: true", "2: 'folder' is the name of a folder, not true"),
        ("steps:\n- folder: ''", "2: 'folder' is the name of a folder, not ''"),
    ],
)
def test_what_is_no_plan_is_named(
    text: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (plan := tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(SystemExit):
        main(["--plan", str(plan)])
    assert f"{plan}:{error}" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--to-ir", "--report=r.html", "--arch_file=a.yaml"])
def test_a_plan_is_of_several_mappings(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--plan", str(tmp_path / "plan.yaml"), flag])
    name = flag.split("=")[0]
    assert f"{name} is of one mapping, and --plan of several" in capsys.readouterr().err
