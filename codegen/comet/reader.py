"""
Reads the four COMET files into a module of the `arch` and `comet` dialects.

Names of constants are replaced by their numbers and the tool's defaults are added, so
the IR holds values; fields that the tool ignores are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.utils.exceptions import VerifyException

from comet.codegen.comet.arch import read_arch
from comet.codegen.comet.yaml import Constants, Node
from comet.dialects.comet import (
    BindingOp,
    CollectiveOp,
    ConstantsOp,
    DeclareOp,
    MappingOp,
    OperationOp,
    ProblemOp,
    TileOp,
)
from comet.dialects.comet.attributes import (
    Compute,
    MovedTensor,
    Sizes,
    Step,
)
from comet.kinds import (
    Access,
    BindingKind,
    CollectiveKind,
    OperationKind,
    ReductionKind,
    TileKind,
)
from comet.yaml_file import FileFormatError, read_yaml

OpT = TypeVar("OpT", bound=Operation)

FILES = ("arch.yaml", "problem.yaml", "mapping.yaml", "constants.yaml")
"""The names of the files of a set, in the order in which they are printed."""


def read_files(
    texts: Mapping[str, str], paths: Mapping[str, str] | None = None
) -> ModuleOp:
    """
    Build a module from the texts of the files named in `FILES`.

    `paths` has the names of the files for messages. Raises FileFormatError, with file
    and line, for what the format does not allow.
    """
    for file in FILES:
        if file not in texts:
            raise FileFormatError(f"{file} is missing; a set is {', '.join(FILES)}")
    arch, problem, mapping, constants = ((paths or {}).get(f, f) for f in FILES)
    table = read_constants(texts["constants.yaml"], constants)
    return ModuleOp(
        [
            read_arch(texts["arch.yaml"], arch),
            ConstantsOp(table),
            read_problem(texts["problem.yaml"], table, problem),
            read_mapping(texts["mapping.yaml"], table, mapping),
        ]
    )


def read_constants(text: str, file: str = "constants.yaml") -> dict[str, int | str]:
    """Return the constants table of a file; it may be empty."""
    top = Node.top(read_yaml(text, file))
    if top.get("const") == "":
        return {}
    node = top.node("const")
    values = {name: node.text(name) for name in node.fields}
    return {
        name: node.fitting(value, name) if value.isdecimal() else value
        for name, value in values.items()
    }


def read_problem(
    text: str, constants: Constants, file: str = "problem.yaml"
) -> ProblemOp:
    """Build the problem from the text of its file."""
    problem = Node.top(read_yaml(text, file), constants).node("problem")
    return _located(problem, _read_problem)


def _read_problem(problem: Node) -> ProblemOp:
    io = problem.node("io")
    instance = problem.node("instance")
    sizes = tuple(
        (dim, instance.constant(instance.text(dim), f"size of {dim}"))
        for dim in problem.texts("dimensions")
    )
    # A problem without a list of operations is its own single operation.
    nodes = problem.nodes("operations") if problem.has("operations") else (problem,)
    body = Region(Block([_located(node, _read_declaration) for node in nodes]))
    return ProblemOp(_split(io.text("ins")), _split(io.text("outs")), sizes, body)


def _split(names: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[A-Za-z0-9]+", names.split("#")[0]))


def _read_declaration(node: Node) -> DeclareOp:
    accesses = [
        Access(
            tensor.text("name"),
            _read_projection(tensor),
            tensor.flag("read-write"),
        )
        for tensor in node.nodes("tensors")
    ]
    return DeclareOp(
        node.text("name"),
        _split(node.text("ins")),
        node.text("out"),
        node.texts("dimensions"),
        accesses,
    )


def _read_projection(tensor: Node) -> tuple[tuple[str, ...], ...]:
    axes: list[tuple[str, ...]] = []
    for axis in tensor.items("projection"):
        if not isinstance(axis, list):
            raise tensor.fail(
                "a projection lists terms per axis; write [[[M]], [[K]]]", "projection"
            )
        terms = [term for term in axis if isinstance(term, list) and len(term) == 1]
        names = [term[0] for term in terms if isinstance(term[0], str)]
        if len(names) != len(axis):
            raise tensor.fail(
                "a term of a projection is a list of one dimension; write [[[M]], "
                "[[K]]]",
                "projection",
            )
        axes.append(tuple(names))
    return tuple(axes)


def read_mapping(
    text: str, constants: Constants, file: str = "mapping.yaml"
) -> MappingOp:
    """Build the mapping tree from the text of its file."""
    root = Node.top(read_yaml(text, file), constants).node("mapping")
    return _located(root, lambda node: MappingOp(Region(Block([_read_node(node)]))))


def _located(node: Node, read: Callable[[Node], OpT]) -> OpT:
    """Read an op; the op and errors in its attributes have the node's location."""
    try:
        op = read(node)
    except VerifyException as error:
        raise node.fail(str(error)) from error
    op.location = node.location
    return op


def _read_node(node: Node) -> Operation:
    kind = node.text("node_type").lower()
    if kind not in _NODE_READERS:
        names = ", ".join(_NODE_READERS)
        raise node.fail(f"'{kind}' is no node_type; there are {names}", "node_type")
    return _located(node, _NODE_READERS[kind])


def _read_tile(node: Node) -> TileOp:
    permutation = "".join(node.name(node.text("permutation")).split())
    temporal = node.text("type") == "temporal"
    body = Block([_read_node(child) for child in node.nodes("subtree")])
    return TileOp(
        TileKind.TEMPORAL if temporal else TileKind.SPATIAL,
        permutation,
        _read_entries(node),
        Region(body),
    )


def _read_entries(node: Node) -> tuple[MovedTensor, ...]:
    tensors = node.texts("tensors")
    columns = {
        "tag": node.texts("tag") if node.has("tag") else ("None",) * len(tensors),
        "target": node.texts("target"),
        "child": node.texts("child"),
    }
    flags = {
        key: node.flags(key) if node.has(key) else (False,) * len(tensors)
        for key in ("rmw", "wb_output")
    }
    precision = _read_precision(node, len(tensors))
    for key, column in (*columns.items(), *flags.items(), ("precision", precision)):
        if len(column) != len(tensors):
            raise node.fail(
                f"'{key}' lists {len(column)} values for {len(tensors)} tensors; give "
                "one per tensor",
                key,
            )
    rows = [_read_row(node, text, len(tensors)) for text in node.texts("factors")]
    return tuple(
        MovedTensor(
            tensor,
            columns["tag"][index],
            columns["target"][index],
            columns["child"][index],
            precision[index],
            tuple(tuple((dim, row[dim][index]) for dim in row) for row in rows),
            rmw=flags["rmw"][index],
            wb_output=flags["wb_output"][index],
        )
        for index, tensor in enumerate(tensors)
    )


def _read_precision(node: Node, count: int) -> tuple[int, ...]:
    if not node.has("precision"):
        return (1,) * count  # the tool's default is one bit
    return tuple(node.digits(text, "precision") for text in node.texts("precision"))


def _read_row(node: Node, text: str, count: int) -> dict[str, tuple[int, ...]]:
    row: dict[str, tuple[int, ...]] = {}
    for dim, values in re.findall(r"([A-Z]+)\s*=\s*\[([^\]]+)\]", text):
        factors = [value.strip() for value in values.split(",")]
        if len(factors) != count:
            raise node.fail(
                f"the factors of {dim} are {len(factors)} values for {count} tensors; "
                "give one per tensor",
                "factors",
            )
        row[dim] = tuple(node.constant(f, f"factor of {dim}") for f in factors)
    return row


def _read_operation(node: Node) -> OperationOp:
    tiles = node.node("TileSteps")
    steps = [
        Step(tensor, _read_sizes(tiles, tiles.text(tensor)))
        for tensor in node.texts("tensors")
    ]
    scale = node.node("Scale") if node.has("Scale") else None
    return OperationOp(
        node.kind("type", OperationKind),
        node.text("name"),
        _read_sizes(node, node.text("TilePrimitive")),
        steps,
        _read_compute(node),
        None if scale is None else {key: scale.text(key) for key in scale.fields},
    )


def _read_sizes(node: Node, text: str) -> Sizes:
    return tuple(
        (dim, node.constant(value, f"size of {dim}"))
        for dim, value in re.findall(r"(.)=([^ ]*)", text)
    )


def _read_compute(node: Node) -> Compute | None:
    if not node.has("compute_attributes"):
        return None
    compute = node.node("compute_attributes")
    dims = [
        dim if len(dim) == 1 else compute.name(dim)
        for dim in compute.texts("reduction_dimensions")
    ]
    factors = [
        compute.constant(text, "reduction factor")
        for text in compute.texts("reduction_factors")
    ]
    if len(dims) != len(factors):
        raise compute.fail(
            "reduction_dimensions and reduction_factors differ in number; give one "
            "factor per dimension",
        )
    return Compute(
        tuple(zip(dims, factors, strict=True)),
        rmw=compute.flag("rmw"),
        specd=compute.flag("specd"),
    )


def _read_binding(node: Node) -> BindingOp:
    text = node.text("binding")
    for kind in BindingKind:
        if str(kind)[:4] in text:
            return BindingOp(kind)
    names = ", ".join(str(kind) for kind in BindingKind)
    raise node.fail(f"'{text}' is no binding; there are {names}", "binding")


def _read_collective(node: Node) -> CollectiveOp:
    if node.text("child") != node.text("target"):
        raise node.fail(
            "target and child of a collective must be the same level; write one twice",
            "child",
        )
    reduces = node.has("reduction_op")
    factor = node.number("spatial_factor") if node.has("spatial_factor") else 0
    return CollectiveOp(
        node.kind("type", CollectiveKind),
        node.text("tag"),
        node.text("target"),
        node.text("in_tensor"),
        node.text("out_tensor"),
        node.texts("src"),
        node.texts("dest"),
        node.number("precision") if node.has("precision") else 1,
        dimension=node.text("dimension") if node.has("dimension") else None,
        reduction_op=node.kind("reduction_op", ReductionKind) if reduces else None,
        spatial_factor=factor or None,
        wb_output=node.flag("wb_output"),
    )


_NODE_READERS: dict[str, Callable[[Node], Operation]] = {
    "datamovement_tile": _read_tile,
    "operation": _read_operation,
    "inter_tile_binding": _read_binding,
    "collectiveoperation": _read_collective,
}
