"""
Hardware files to `arch` ops and back, both as plain values.

Only layout and comments are lost: `fields_of_system` returns a document equal to the
operand of `system_of_fields`, with the order of lists.
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
from comet.dialects.arch.fields import Field, Fields, described, field_of, fields_of

TABLES: Mapping[str, type[ComputeOp | MemoryOp]] = {
    "ComputeTiles": ComputeOp,
    "MemoryTypes": MemoryOp,
}
"""The tables of a hardware file, and the op that holds an entry."""


def system_of_fields(name: str, document: Fields) -> SystemOp:
    """
    Return the system of a hardware file.

    Raises ArchError if the file cannot be read: a part is missing or has the wrong
    type, a number is too large, a level with axes does not exist. The verifier checks
    what the values mean.
    """
    try:
        system = _system(name, document)
    except ValueError as error:
        raise ArchError(f"the hardware {name} cannot be read: {error}") from error
    try:
        system.verify()
    except VerifyException as error:
        raise ArchError(f"the hardware {name} is not valid: {error}") from error
    return system


def _system(name: str, document: Fields) -> SystemOp:
    comet = _map(document.get("comet") or {}, "comet")
    axes = _map(comet.get("mesh") or {}, "comet: mesh")
    rows = [
        _row(op, entry)
        for table, op in TABLES.items()
        for entry in _list(document.get(table), table)
    ]
    hierarchy = _list(document.get("Hierarchy"), "Hierarchy")
    roots = [_node(entry, None, axes) for entry in hierarchy]
    gpu = comet.get("gpu")
    gpus = [] if gpu is None else [GpuOp(_map(gpu, "comet: gpu"))]
    known = {*TABLES, "Hierarchy", "comet"}
    extra = {name: value for name, value in document.items() if name not in known}
    system = SystemOp(name, [*rows, *gpus, *roots], extra)
    _reject_unknown_levels(axes, system)
    return system


def _reject_unknown_levels(axes: Fields, system: SystemOp) -> None:
    for name in axes:
        system.level(name)


def _row(op: type[ComputeOp | MemoryOp], entry: Field) -> ComputeOp | MemoryOp:
    fields = dict(_map(entry, "an entry of ComputeTiles or MemoryTypes"))
    name = _text(fields.pop("name", None), "name")
    attributes = _map(fields.pop("attributes", None) or {}, f"attributes of {name}")
    return op(name, attributes, fields)


def _node(entry: Field, path: Path | None, axes: Fields) -> Operation:
    fields = dict(_map(entry, "a node of the Hierarchy"))
    name, _, rest = _text(fields.pop("name", None), "name").partition("[")
    kind = _text(fields.pop("type", None), f"type of {name}")
    link = _link(fields, name)
    range = f"[{rest}" if rest else None
    if "is_compute" in fields:
        if path is None:
            raise ValueError(f"the unit {name} must be below a level")
        if fields["is_compute"] is True:
            fields.pop("is_compute")
        return UnitOp(name, kind, path, link or {}, range=range, extra=fields)
    children = _children(fields, axes)
    names = [_text(axis, "an axis") for axis in _list(axes.get(name) or [], name)]
    return LevelOp(
        name, kind, children, path, link, axes=names, range=range, extra=fields
    )


def _link(fields: dict[str, Field], name: str) -> Fields | None:
    if "attributes" not in fields:
        return None
    return _map(fields.pop("attributes"), f"attributes of {name}")


def _children(fields: dict[str, Field], axes: Fields) -> list[Operation]:
    """Remove the children from a node's fields; return them in the file's order."""
    paths = [Path(name) for name in fields if name in tuple(Path)]
    return [
        _node(entry, path, axes)
        for path in paths
        for entry in _list(fields.pop(path) or [], path)
    ]


def _map(value: Field, what: str) -> Fields:
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is a map, not {described(value)}")
    return value


def _list(value: Field, what: str) -> Sequence[Field]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{what} is a list, not {described(value)}")
    return value


def _text(value: Field, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} is text, not {described(value)}")
    return value


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
