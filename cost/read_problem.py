"""The COMET problem, mapping and constants schemas, read into `Problem`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from comet.cost.estimate import CostError
from comet.cost.fields import Fields, Yaml, as_fields
from comet.cost.problem import (
    Access,
    Binding,
    BindingKind,
    Collective,
    CollectiveKind,
    Entry,
    Leaf,
    Node,
    Operation,
    Problem,
    Projection,
    Sizes,
    Tile,
)

FACTOR = re.compile(r"([A-Za-z])\s*=\s*\[([^\]]*)\]")
STEP = re.compile(r"([A-Za-z])\s*=\s*(\w+)")
BINDINGS = {"seq": BindingKind.SEQUENTIAL, "pipe": BindingKind.PIPELINE, "para": BindingKind.PARALLEL, "shar": BindingKind.SHARING}
KINDS = ("gemm", "softmax", "max", "exp", "div", "add", "mult", "sqrt", "rowsum", "rowmax", "convolution")
REDUCTIONS = {"add": "add", "sub": "add", "max": "max", "mult": "mult"}


def read_problem(problem: Mapping[str, Yaml], mapping: Mapping[str, Yaml], constants: Mapping[str, Yaml] | None = None) -> Problem:
    """
    The mapped problem that three parsed files describe, constants substituted.

    Raises `CostError` for a field that is missing, of the wrong kind, or names what there is not.
    """
    table = _constants(constants or {})
    body = as_fields(Fields(problem, "the problem file").get("problem"), "the problem", table)
    instance = as_fields(body.get("instance"), "the problem's instance", table)
    dims = {dim: instance.integer(dim) for dim in body.words("dimensions")}
    operations = tuple(_operation(as_fields(op, "an operation", table), dims) for op in _operations(body))
    io = as_fields(body.get("io"), "the problem's io", table)
    root = _Mapping(operations, table).node(as_fields(Fields(mapping, "the mapping file").get("mapping"), "the root node", table))
    if not isinstance(root, Tile):
        raise CostError("the root of the mapping must be a temporal DataMovement_Tile")
    return Problem(dims, operations, io.words("ins"), io.words("outs"), root)


def _constants(document: Mapping[str, Yaml]) -> dict[str, int | str]:
    table = document.get("const")
    if table is None:
        return {}
    return {name: v for name, v in as_fields(table, "const").values.items() if isinstance(v, (int, str))}


def _operations(body: Fields) -> list[Yaml]:
    return body.items("operations") if body.has("operations") else [dict(body.values)]


def _operation(op: Fields, dims: Sizes) -> Operation:
    name = op.text("name")
    accesses = tuple(_access(as_fields(t, f"a tensor of operation {name}")) for t in op.items("tensors"))
    for access in accesses:
        if unknown := {d for axis in access.projection for d in axis} - set(dims):
            raise CostError(f"tensor {access.tensor} of operation {name} uses dimension {min(unknown)}, which the problem does not declare")
    return Operation(name, op.words("ins"), op.text("out"), op.words("dimensions"), accesses)


def _access(tensor: Fields) -> Access:
    return Access(tensor.text("name"), _projection(tensor), tensor.flag("read-write"))


def _projection(tensor: Fields) -> Projection:
    def names(value: Yaml) -> list[str]:
        if isinstance(value, list):
            return [name for item in value for name in names(item)]
        return [str(value)]

    return tuple(tuple(names(axis)) for axis in tensor.items("projection"))


@dataclass
class _Mapping:
    """Reads nodes and counts them in document order."""

    operations: tuple[Operation, ...]
    constants: Mapping[str, int | str]
    count: int = 0

    def node(self, fields: Fields) -> Node:
        index = self._next()
        at = Fields(fields.values, f"node {index}", self.constants)
        kind = at.text("node_type").lower()
        readers: dict[str, Callable[[Fields, int], Node]] = {
            "datamovement_tile": self._tile,
            "operation": self._leaf,
            "collectiveoperation": self._collective,
        }
        if (reader := readers.get(kind)) is None:
            raise CostError(f"node {index} has node_type {kind!r}; use DataMovement_Tile, Operation, CollectiveOperation or inter_tile_binding")
        return reader(at, index)

    def _next(self) -> int:
        self.count += 1
        return self.count - 1

    def _tile(self, at: Fields, index: int) -> Tile:
        order = self._order(at.text("permutation"))
        entries = self._entries(at, order)
        children, bindings = self._children(at)
        return Tile(index, at.text("type") != "temporal", order, entries, children, bindings)

    def _order(self, text: str) -> tuple[str, ...]:
        return tuple(str(self.constants.get(text, text)))

    def _entries(self, at: Fields, order: tuple[str, ...]) -> tuple[Entry, ...]:
        tensors = at.words("tensors")
        columns = {key: at.words(key) for key in ("target", "child")}
        columns["tag"] = at.words("tag") if at.has("tag") else ("None",) * len(tensors)
        bits = at.integers("precision") if at.has("precision") else (1,) * len(tensors)
        flags = at.flags("rmw", len(tensors))
        lengths = {**{k: len(v) for k, v in columns.items()}, "precision": len(bits), "rmw": len(flags)}
        for key, length in lengths.items():
            if length != len(tensors):
                raise CostError(f"{at.where} lists {len(tensors)} tensors but {length} values in {key!r}; give one per tensor")
        rows = self._rows(at, order, len(tensors))
        return tuple(
            Entry(tensor, columns["tag"][i], columns["target"][i], columns["child"][i], bits[i], flags[i], tuple(r[i] for r in rows))
            for i, tensor in enumerate(tensors)
        )

    def _rows(self, at: Fields, order: tuple[str, ...], count: int) -> list[list[dict[str, int]]]:
        at.get("factors")
        rows = [FACTOR.findall(str(row)) for row in at.items("factors")]
        parsed: list[list[dict[str, int]]] = []
        for row in rows:
            values = {dim: [at.constant(w, "factors") for w in words.split(",")] for dim, words in row}
            if sorted(values) != sorted(order):
                raise CostError(f"{at.where}: factors name {''.join(sorted(values))} but the permutation is {''.join(order)}; name the same dimensions")
            if any(len(v) != count for v in values.values()):
                raise CostError(f"{at.where}: every list in factors needs {count} values, one per tensor")
            parsed.append([{dim: values[dim][i] for dim in order} for i in range(count)])
        return parsed

    def _children(self, at: Fields) -> tuple[tuple[Node, ...], tuple[Binding | None, ...]]:
        """Children with the binding of each to the next: in the file a binding stands before its left node."""
        children: list[Node] = []
        before: list[Binding | None] = []
        pending: Binding | None = None
        for item in at.items("subtree"):
            fields = as_fields(item, f"a node below {at.where}", self.constants)
            if fields.text("node_type").lower() == "inter_tile_binding":
                pending = self._binding(fields)
                continue
            before.append(pending)
            pending = None
            children.append(self.node(fields))
        if not children:
            raise CostError(f"{at.where} has an empty subtree; put an operation or further tiles below it")
        if pending is not None or before[-1] is not None:
            raise CostError(f"{at.where}: a binding must stand before each child but the last")
        bindings = tuple(before[:-1])
        if any(b is None for b in bindings) and any(b is not None for b in bindings):
            raise CostError(f"{at.where}: a binding must stand before each child but the last")
        return tuple(children), bindings

    def _binding(self, fields: Fields) -> Binding:
        index = self._next()
        word = fields.text("binding")
        for key, kind in BINDINGS.items():
            if key in word.lower():
                return Binding(index, kind)
        raise CostError(f"node {index} has binding {word!r}; use sequential, pipeline, parallel or sharing")

    def _leaf(self, at: Fields, index: int) -> Leaf:
        name, kind = at.text("name"), at.text("type").lower()
        if kind not in KINDS:
            raise CostError(f"{at.where} is an operation of type {kind!r}; use one of {', '.join(KINDS)}")
        if name not in {op.name for op in self.operations}:
            raise CostError(f"{at.where} runs operation {name!r}, which the problem does not declare")
        primitive = tuple((d, at.constant(w, "TilePrimitive")) for d, w in STEP.findall(at.text("TilePrimitive")))
        steps = as_fields(at.get("TileSteps"), f"TileSteps of {at.where}", self.constants)
        extents = {t: {d: at.constant(w, "TileSteps") for d, w in STEP.findall(steps.text(t))} for t in steps.values}
        attributes = at.below("compute_attributes")
        if at.has("compute_attributes"):
            for key in ("reduction_dimensions", "reduction_factors", "rmw", "specd"):
                attributes.get(key)
        return Leaf(
            index,
            name,
            kind,
            at.words("tensors"),
            primitive,
            extents,
            attributes.integers("reduction_factors"),
            attributes.flag("rmw"),
            attributes.flag("specd"),
        )

    def _collective(self, at: Fields, index: int) -> Collective:
        level = at.text("target")
        if at.text("child") != level:
            raise CostError(f"{at.where}: a collective's target and child must be the same level, here {level} and {at.text('child')}")
        try:
            kind = CollectiveKind(at.text("type"))
        except ValueError:
            known = ", ".join(k.value for k in CollectiveKind)
            raise CostError(f"{at.where} is a collective of type {at.text('type')!r}; use one of {known}") from None
        return Collective(
            index,
            kind,
            level,
            at.text("tag"),
            at.text("dimension") if at.has("dimension") else None,
            at.words("src"),
            at.words("dest"),
            at.text("in_tensor"),
            at.text("out_tensor"),
            at.integer("precision", 1),
            self._reduction(at),
            at.integer("spatial_factor", 0),
            at.flag("wb_output", None),
        )

    def _reduction(self, at: Fields) -> str | None:
        if not at.has("reduction_op"):
            return None
        if (found := REDUCTIONS.get(at.text("reduction_op"))) is None:
            raise CostError(f"{at.where} has reduction_op {at.text('reduction_op')!r}; use add, sub, max or mult")
        return found
