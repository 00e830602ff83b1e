"""
Converts the plain values of a hardware file to `arch` ops, and back.

Only layout and comments are lost: `fields_of_system` returns the values that
`system_of_fields` has read, in the same order in lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from comet.dialects.arch import (
    ArchError,
    ComputeOp,
    GpuOp,
    LevelOp,
    MemoryOp,
    Path,
    SystemOp,
    UnitOp,
)
from comet.dialects.arch.fields import Field, Fields, field_of, fields_of

TABLES: Mapping[str, type[ComputeOp | MemoryOp]] = {
    "ComputeTiles": ComputeOp,
    "MemoryTypes": MemoryOp,
}
"""The tables of a hardware file, with the op of an entry."""


def system_of_fields(name: str, document: Fields) -> SystemOp:
    """
    Return the system `name` for the values of a file that `read_hardware_text` checked.

    Raises ArchError for a unit outside of all levels, and if the verifier rejects it.
    """
    try:
        system = _system(name, document)
        system.verify()
    except VerifyException as error:
        raise ArchError(f"the hardware {name} is not valid: {error}") from error
    return system


def _system(name: str, document: Fields) -> SystemOp:
    comet = _map(document.get("comet"))
    axes = _map(comet.get("mesh"))
    rows = [
        _row(op, _map(entry))
        for table, op in TABLES.items()
        for entry in _list(document.get(table))
    ]
    roots = [_node(_map(n), None, axes) for n in _list(document.get("Hierarchy"))]
    gpus = [GpuOp(_map(comet["gpu"]))] if "gpu" in comet else []
    known = {*TABLES, "Hierarchy", "comet"}
    extra = {name: value for name, value in document.items() if name not in known}
    return SystemOp(name, [*rows, *gpus, *roots], extra)


def _row(op: type[ComputeOp | MemoryOp], entry: Fields) -> ComputeOp | MemoryOp:
    extra = {name: entry[name] for name in entry if name not in ("name", "attributes")}
    return op(str(entry["name"]), _map(entry.get("attributes")), extra)


def _node(entry: Fields, path: Path | None, axes: Fields) -> Operation:
    name, bracket, rest = str(entry["name"]).partition("[")
    kind, range = str(entry["type"]), bracket + rest or None
    link = _map(entry["attributes"]) if "attributes" in entry else None
    read = {"name", "type", "attributes"}
    if "is_compute" not in entry:
        children = [
            _node(_map(child), Path(way), axes)
            for way in entry
            if way in tuple(Path)
            for child in _list(entry[way])
        ]
        names = [str(axis) for axis in _list(axes.get(name))]
        extra = {n: v for n, v in entry.items() if n not in {*read, *Path}}
        return LevelOp(
            name, kind, children, path, link, axes=names, range=range, extra=extra
        )
    if path is None:
        raise VerifyException(f"the unit {name} must be below a level")
    if entry["is_compute"] is True:
        read.add("is_compute")
    extra = {n: v for n, v in entry.items() if n not in read}
    return UnitOp(name, kind, path, link or {}, range=range, extra=extra)


def _map(value: Field) -> Fields:
    return value if isinstance(value, Mapping) else {}


def _list(value: Field) -> Sequence[Field]:
    return () if isinstance(value, str) or not isinstance(value, Sequence) else value


def fields_of_system(system: SystemOp) -> dict[str, Field]:
    """Return the hardware file of a system, as plain values."""
    ops = tuple(system.body.block.ops)
    document: dict[str, Field] = {
        table: [_row_fields(op) for op in ops if isinstance(op, kind)]
        for table, kind in TABLES.items()
    }
    document["Hierarchy"] = [_node_fields(op) for op in ops if isinstance(op, LevelOp)]
    if comet := _comet_fields(system):
        document["comet"] = comet
    return document | ({} if system.extra is None else fields_of(system.extra))


def _comet_fields(system: SystemOp) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    axes = {lv.level_name: field_of(lv.axes) for lv in system.levels if lv.axes}
    if axes:
        fields["mesh"] = axes
    for op in system.body.block.ops:
        if isinstance(op, GpuOp):
            fields["gpu"] = fields_of(op.fields)
    return fields


def _row_fields(row: ComputeOp | MemoryOp) -> dict[str, Field]:
    extra = {} if row.extra is None else fields_of(row.extra)
    return {"name": row.kind.data, **extra, "attributes": fields_of(row.fields)}


def _node_fields(node: LevelOp | UnitOp) -> dict[str, Field]:
    suffix = "" if node.range is None else node.range.data
    fields: dict[str, Field] = {
        "name": node.level_name + suffix,
        "type": node.kind.data,
    }
    if isinstance(node, UnitOp):
        fields["is_compute"] = True
    if node.extra is not None:
        fields |= fields_of(node.extra)
    if node.link is not None:
        fields["attributes"] = fields_of(node.link)
    if isinstance(node, LevelOp):
        fields |= _grouped_children(node)
    return fields


def _grouped_children(level: LevelOp) -> dict[str, list[Field]]:
    groups: dict[str, list[Field]] = {}
    for op in level.body.block.ops:
        if isinstance(op, LevelOp | UnitOp) and op.path is not None:
            groups.setdefault(str(op.path.data), []).append(_node_fields(op))
    return groups
