"""COMET files: what is read is written back so that it means the same."""

import io
import json
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from covering import one_of
from paths import DATA
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from comet.codegen.comet import (
    CometTarget,
    join_files,
    read_stream,
    split_files,
    write_files,
    write_folder,
)
from comet.codegen.comet.reader import FILES, read_files, read_mapping
from comet.dialects.comet import BindingOp, OperationOp, TileOp
from comet.dialects.comet.attributes import (
    MovedTensor,
)
from comet.kinds import BindingKind
from comet.yaml_file import FileFormatError

FILE = DATA / "comet" / "accepted.jsonl"
RECORDS: list[dict[str, Any]] = [
    json.loads(line) for line in FILE.read_text().splitlines()
]
records = pytest.mark.parametrize("record", RECORDS, ids=lambda r: r["family"])

TILE = """
mapping:
  node_type: DataMovement_Tile
  type: temporal
  tensors: [A, C]
  tag: [EXP, EXP]
  target: [DRAM, DRAM]
  child: [GB, GB]
  factors: ["M=[tile,4] N=[1,2]"]
  permutation: order
  subtree:
  - node_type: Operation
    type: Exp
    name: EXP
    tensors: [A, C]
    TilePrimitive: M=1 N=tile
    TileSteps: {A: M=2 N=8, C: M=2 N=8}
"""


@one_of(3)
@records
def test_reading_writing_reading_is_a_fixpoint(record: dict[str, Any]) -> None:
    module = read_files(record["files"])
    module.verify()
    files = write_files(module)
    again = read_stream(io.BytesIO(join_files(files).encode()))
    assert again.is_structurally_equivalent(module)
    assert write_files(again) == files


@one_of(3)
@records
def test_the_architecture_keeps_every_field(record: dict[str, Any]) -> None:
    written = write_files(read_files(record["files"]))["arch.yaml"]
    assert yaml.safe_load(written) == yaml.safe_load(record["files"]["arch.yaml"])


@one_of(3)
@records
def test_the_mapping_keeps_every_value(record: dict[str, Any]) -> None:
    files = record["files"]
    written = write_files(read_files(files))["mapping.yaml"]
    constants = yaml.safe_load(files["constants.yaml"])["const"]
    assert constants == {"unused_constant": 1}, "these records spell all numbers out"
    before = yaml.safe_load(files["mapping.yaml"])
    assert _plain(yaml.safe_load(written)) == _plain(before)


def _plain(value: Any) -> Any:
    """Drop what a COMET file may vary without meaning: case of types, blanks."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {
            key: str(item).lower() if key == "type" else _plain(item)
            for key, item in fields.items()
        }
    if isinstance(value, list):
        return [_plain(item) for item in cast(list[Any], value)]
    return "".join(value.split()) if isinstance(value, str) else value


def test_constants_and_defaults_become_values() -> None:
    mapping = read_mapping(TILE, {"tile": 8, "order": "NM"})
    root = mapping.root
    assert root.permutation.data == "NM"
    assert root.entries == (
        MovedTensor("A", "EXP", "DRAM", "GB", 1, ((("M", 8), ("N", 1)),)),
        MovedTensor("C", "EXP", "DRAM", "GB", 1, ((("M", 4), ("N", 2)),)),
    )
    (leaf,) = root.children
    assert isinstance(leaf, OperationOp)
    assert leaf.primitive.data == (("M", 1), ("N", 8))


def test_names_that_yaml_takes_for_booleans_stay_names() -> None:
    text = TILE.replace("order", "NO").replace("M=", "O=")
    assert read_mapping(text, {"tile": 8}).root.permutation.data == "NO"


def test_a_binding_is_found_by_its_first_letters() -> None:
    leaf = TILE[TILE.index("  - node_type: Operation") :]
    text = TILE + "  - {node_type: inter_tile_binding, binding: pipelined}\n" + leaf
    with pytest.raises(DiagnosticException, match="bindings are misplaced"):
        read_mapping(text, {"tile": 8, "order": "NM"}).verify()
    head = TILE.removesuffix(leaf)
    text = head + "  - {node_type: inter_tile_binding, binding: pipelined}\n" + leaf * 2
    root = read_mapping(text, {"tile": 8, "order": "NM"}).root
    assert isinstance(root, TileOp)
    bindings = [op for op in root.body.block.ops if isinstance(op, BindingOp)]
    assert [op.kind.data for op in bindings] == [BindingKind.PIPELINE]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  type: temporal", " type: temporal", r"mapping.yaml:4: malformed YAML"),
        (
            "mapping:",
            "mappings:",
            r"mapping.yaml:\d: the file lacks the field 'mapping'",
        ),
        ("tag: [EXP, EXP]", "tag: [EXP]", "'tag' lists 1 values for 2 tensors"),
        ("tag: [EXP, EXP]", "tag: EXP", "the field 'tag' must be a list"),
        ("tag: [EXP, EXP]", "tag: [EXP, [EXP]]", "'tag' must hold plain values"),
        ("tag: [EXP, EXP]", "rmw: [maybe, true]", "'maybe' is neither true nor"),
        ("[tile,4]", "[tile]", "the factors of M are 1 values for 2 tensors"),
        ("[tile,4]", "[tyle,4]", "'tyle' .* is neither a number nor a constant"),
        ("DataMovement_Tile", "Tile", "'tile' is no node_type; there are"),
        ("type: Exp", "type: gelu", "'gelu' is no type; there are gemm, softmax"),
        ("C: M=2 N=8", "D: M=2 N=8", "'TileSteps' lacks the field 'C'; add it"),
        ("{A: M=2 N=8, C: M=2 N=8}", "M=2", "'TileSteps' must be a mapping of fields"),
        (
            "name: EXP",
            "name: EXP\n    compute_attributes: {reduction_dimensions: [M], "
            "reduction_factors: [1, 2], rmw: true, specd: true}",
            "reduction_dimensions and reduction_factors differ in number",
        ),
        (
            "node_type: Operation",
            "node_type: inter_tile_binding\n    binding: tight",
            "'tight' is no binding; there are sequential",
        ),
        (
            "node_type: Operation",
            "node_type: CollectiveOperation\n    target: GB\n    child: OB",
            "target and child of a collective must be the same level",
        ),
    ],
)
def test_a_bad_mapping_is_one_sentence(old: str, new: str, message: str) -> None:
    assert old in TILE
    with pytest.raises(FileFormatError, match=message) as error:
        read_mapping(TILE.replace(old, new, 1), {"tile": 8, "order": "NM"})
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named() -> None:
    files = dict(RECORDS[0]["files"])
    del files["problem.yaml"]
    with pytest.raises(FileFormatError, match=r"problem\.yaml is missing"):
        read_files(files)


@pytest.mark.parametrize(
    ("projection", "message"),
    [("[M]", "a projection lists terms"), ("[[[M, N]]]", "is a list of one dimension")],
)
def test_a_bad_projection_is_one_sentence(projection: str, message: str) -> None:
    files = dict(RECORDS[0]["files"])
    problem = yaml.safe_load(files["problem.yaml"])
    tensors = problem["problem"]["operations"][0]["tensors"]
    tensors[0]["projection"] = yaml.safe_load(projection)
    files["problem.yaml"] = yaml.safe_dump(problem)
    with pytest.raises(FileFormatError, match=message):
        read_files(files)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1", "is a map of fields"),
        ("Hierarchy: 3", "2 fields are missing: .ComputeTiles."),
    ],
)
def test_a_bad_architecture_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        read_files(RECORDS[0]["files"] | {"arch.yaml": text})


def test_split_files_undoes_join_files() -> None:
    files = {"a.yaml": "x: 1\n", "b.yaml": "", "c.yaml": "y: 2\n"}
    assert split_files("ignored\n" + join_files(files)) == files


def test_the_target_writes_a_folder(tmp_path: Path) -> None:
    module = read_files(RECORDS[0]["files"])
    folder = tmp_path / "new" / "out"
    stream = io.StringIO()
    CometTarget(dir=str(folder)).emit(Context(), module, stream)
    assert stream.getvalue() == ""
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert {p.name: p.read_text() for p in folder.iterdir()} == write_files(module)


def test_the_target_writes_a_stream() -> None:
    module = read_files(RECORDS[0]["files"])
    stream = io.StringIO()
    CometTarget().emit(Context(), module, stream)
    assert split_files(stream.getvalue()) == write_files(module)


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(DiagnosticException, match="cannot write into"):
        write_folder(tmp_path / "out", {"a.yaml": ""})


@pytest.mark.parametrize("name", ["missing/further/b.yaml", "b.yaml/c.yaml"])
def test_a_failing_write_leaves_the_old_files(name: str, tmp_path: Path) -> None:
    write_folder(tmp_path, {"a.yaml": "old", "b.yaml": "old"})
    with pytest.raises(DiagnosticException, match="cannot write into"):
        write_folder(tmp_path, {"a.yaml": "new", name: "new"})
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {
        "a.yaml": "old",
        "b.yaml": "old",
    }


def test_a_module_at_another_level_is_an_error() -> None:
    with pytest.raises(DiagnosticException, match=r"0 ops 'arch\.system'"):
        write_files(ModuleOp([]))
