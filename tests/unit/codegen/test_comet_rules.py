"""The checker of COMET files: it passes what the tool prices well, and only that."""

import json
from typing import Any

import plain_yaml
import pytest
import yaml
from comet_rules import check
from covering import one_of
from paths import DATA

FAMILY: dict[str, dict[str, Any]] = {
    record["family"]: record
    for file in ("accepted.jsonl", "rejected.jsonl")
    for record in map(json.loads, (DATA / "comet" / file).read_text().splitlines())
}

CLEAN = (
    "gemm",
    "softmax-fused",
    "softmax-unfused2",
    "softmax-unfusedall",
    "attention-coll",
    "collective-scatter",
    "pipeline-inner",
    "pipeline-gbtemporal",
    "archvariant-MAC",
)


@pytest.mark.parametrize("family", CLEAN)
def test_legal_files_have_no_violation(family: str) -> None:
    assert check(FAMILY[family]["files"]) == []


@one_of(2)
@pytest.mark.parametrize(
    ("family", "rules"),
    [
        ("attention-part", {"capacity"}),
        ("pipeline-gather", {"capacity"}),
        ("reject-capacity", {"capacity"}),
        ("reject-dim-mismatch", {"factors"}),
        ("reject-mesh3x3", {"mesh"}),
        ("reject-unknown-level", {"levels"}),
        ("reject-unknown-tensor", {"format"}),
        ("reject-no-factors", {"format"}),
        ("reject-no-link", {"collective"}),
        ("reject-col-input-not-produced", {"collective"}),
        ("reject-unknown-op-type", {"format"}),
        ("reject-parallel-spatial", {"binding"}),
        ("reject-sharing-spatial", {"binding"}),
        ("reject-missing-T", {"format"}),
        ("reject-T-not-in-primitive", {"unit"}),
    ],
)
def test_what_the_tool_rejects_is_found(family: str, rules: set[str]) -> None:
    assert {violation.rule for violation in check(FAMILY[family]["files"])} == rules


def _mapping(family: str) -> dict[str, Any]:
    return plain_yaml.load(FAMILY[family]["files"]["mapping.yaml"])["mapping"]


def _rules(family: str, mapping: dict[str, Any], **files: str) -> set[str]:
    text = yaml.safe_dump({"mapping": mapping})
    changed = {f"{name}.yaml": file for name, file in files.items()}
    files = FAMILY[family]["files"] | {"mapping.yaml": text} | changed
    return {violation.rule for violation in check(files)}


def _nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *(n for c in node.get("subtree", ()) for n in _nodes(c))]


def test_a_missing_spatial_node_is_found() -> None:
    mapping = _mapping("softmax-fused")
    mapping["subtree"] = mapping["subtree"][0]["subtree"]
    assert "tree" in _rules("softmax-fused", mapping)


def test_a_missing_operation_is_found() -> None:
    mapping = _mapping("softmax-unfusedall")
    del mapping["subtree"][:2]
    assert "tree" in _rules("softmax-unfusedall", mapping)


def test_a_tensor_that_the_parent_lacks_is_found() -> None:
    mapping = _mapping("softmax-fused")
    leaf = mapping["subtree"][0]["subtree"][0]
    index = leaf["tag"].index("ROWMAX")
    leaf["tag"][index] = "SUB"
    assert "parent" in _rules("softmax-fused", mapping)


def test_a_tag_of_another_operation_is_found() -> None:
    mapping = _mapping("softmax-fused")
    mapping["tag"][0] = "EXP"
    assert "tags" in _rules("softmax-fused", mapping)


@pytest.mark.parametrize(("child", "found"), [("OB", {"tags"}), ("IB", set[str]())])
def test_a_node_fetches_a_tensor_to_a_child_once(child: str, found: set[str]) -> None:
    """Two operations may read it from two buffers, but share it in one."""
    mapping = _mapping("softmax-unfused2")
    node = _nodes(mapping)[9]
    assert (node["type"], node["tag"]) == ("spatial", ["ROWMAX", "DIV"])
    assert node["child"] == ["OB", "OB"]
    for field in ("tensors", "target", "precision", "rmw", "wb_output"):
        node[field].append(node[field][0])
    node["factors"] = [text.replace("]", ",1]") for text in node["factors"]]
    node["tag"].append("SUB")
    node["child"].append(child)
    assert {"tags"} & _rules("softmax-unfused2", mapping) == found


def test_uneven_iterations_are_found() -> None:
    mapping = _mapping("softmax-fused")
    mapping["factors"] = ["M=[32,32,16] K=[1,1,1] N=[1,1,1]"]
    assert {"even", "factors"} <= _rules("softmax-fused", mapping)


def test_missing_bits_are_found() -> None:
    mapping = _mapping("softmax-fused")
    del mapping["precision"]
    assert _rules("softmax-fused", mapping) == {"bits"}


def test_a_missing_binding_is_found() -> None:
    mapping = _mapping("softmax-unfusedall")
    mapping["subtree"] = [
        node for node in mapping["subtree"] if node["node_type"] != "inter_tile_binding"
    ]
    assert "binding" in _rules("softmax-unfusedall", mapping)


def test_a_partial_tile_step_is_found() -> None:
    mapping = _mapping("softmax-fused")
    leaf = next(n for n in _nodes(mapping) if n.get("name") == "ROWMAX")
    leaf["TileSteps"] = {"C": "M=1 N=16 K=1", "R": "M=1 N=16 K=1"}
    assert "factors" in _rules("softmax-fused", mapping)


def test_swapped_axes_of_the_array_are_found() -> None:
    mapping = _mapping("gemm")
    leaf = next(n for n in _nodes(mapping) if n["node_type"] == "Operation")
    steps = "M=512 N=16 K=512"
    leaf["TilePrimitive"] = steps
    leaf["TileSteps"] = dict.fromkeys(leaf["TileSteps"], steps)
    leaf["compute_attributes"]["reduction_factors"] = [512]
    arch = FAMILY["gemm"]["files"]["arch.yaml"]
    assert "unit" not in _rules("gemm", mapping)
    lopsided = arch.replace("array_rows: 32", "array_rows: 16")
    assert "unit" in _rules("gemm", mapping, arch=lopsided)
