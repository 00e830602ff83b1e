"""Reads a hardware file and checks its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TypeAlias

from comet.dialects.arch.fields import Field, Fields, described
from comet.dialects.arch.schema import (
    COMET,
    COMPUTE,
    FILE,
    GPU,
    LINK,
    MEMORY,
    NODE,
    ROOT,
    ROW,
    Rules,
    mesh_shape,
    mistakes,
)
from comet.yaml_file import FileFormatError, Steps, YamlFile, read_yaml

Section: TypeAlias = tuple[Steps, Fields, Rules]
"""A map of a hardware file, the path to it, and the rules for its fields."""

NETWORKS = ("MeshNetwork", "HXbarNetwork")
"""The networks that the COMET tool knows."""

CHILDREN = ("connects", "drains", "fills")


_RANGE = re.compile(r"\[(\d{1,9})\.\.(\d{1,9})\]")
"""The numbers of the first and the last instance, after the name of a node."""


def hardware_text(path: str) -> str:
    """Return the text of a file; raises FileFormatError if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileFormatError(
            f"cannot read the hardware file {path}: {error.strerror}; a path is "
            "relative to the current folder"
        ) from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: a hardware file is UTF-8 text") from error


def read_hardware_text(text: str, name: str) -> Fields:
    """
    Return the fields of the hardware file `name`.

    Raises FileFormatError with file and line if it is no YAML, breaks a rule of
    `comet.dialects.arch.schema`, or contradicts itself.
    """
    file = read_yaml(text, name)
    for steps, fields, rules in _sections(file):
        for field, mistake in mistakes(fields, rules):
            raise file.error((*steps, field) if field else steps, mistake)
    _check_names(file)
    return _map(file, (), file.values)


def _check_names(file: YamlFile) -> None:
    """Check that names are unique, and that the types and levels they name exist."""
    tables: dict[Field, str] = {}
    levels: dict[str, tuple[int, int]] = {}
    for steps, fields, rules in _sections(file):
        if rules is ROW:
            if (kind := fields["name"]) in tables:
                message = f"'{kind}' is listed twice; give each entry its own name"
                raise file.error((*steps, "name"), message)
            tables[kind] = str(steps[0])
        elif rules is NODE:
            _check_node(file, steps, fields, tables, levels)
            _check_instances(file, steps, fields)
        elif rules is LINK:
            _check_link(file, steps, fields)
        elif rules is COMET:
            _check_axes(file, (*steps, "mesh"), levels)


def _check_node(
    file: YamlFile,
    steps: Steps,
    fields: Fields,
    tables: Mapping[Field, str],
    levels: dict[str, tuple[int, int]],
) -> None:
    """Check a node's type, and its name; add its mesh to `levels`."""
    kind, name = fields["type"], str(fields["name"]).partition("[")[0]
    if (table := tables.get(kind)) is None:
        message = f"there is no entry named '{kind}' in ComputeTiles or MemoryTypes"
        raise file.error((*steps, "type"), f"{message}; add it or correct the type")
    if "is_compute" in fields and table != "ComputeTiles":
        message = f"'{name}' computes, but its type '{kind}' is none of ComputeTiles"
        raise file.error((*steps, "type"), f"{message}; correct the type")
    if "is_compute" not in fields and table == "ComputeTiles":
        message = f"'{name}' is of the type '{kind}', which is one of ComputeTiles"
        raise file.error((*steps, "type"), f"{message}; write is_compute: true here")
    if "is_compute" not in fields and name in levels:
        message = f"the level '{name}' appears twice; give each memory its own name"
        raise file.error((*steps, "name"), message)
    if not name:
        raise file.error((*steps, "name"), "the field 'name' is empty; name the level")
    levels[name] = _mesh_of(fields)


def _check_instances(file: YamlFile, steps: Steps, fields: Fields) -> None:
    """Check that the range after a node's name counts the instances of its mesh."""
    name, bracket, rest = str(fields["name"]).partition("[")
    if not bracket:
        return
    shape = _mesh_of(fields)
    last = prod(shape) - 1
    if (found := _RANGE.fullmatch(bracket + rest)) is None:
        message = f"{described(bracket + rest)} is no range; write '{name}[0..{last}]'"
        raise file.error((*steps, "name"), message)
    if (named := int(found[2]) - int(found[1]) + 1) != prod(shape):
        raise file.error(
            (*steps, "name"),
            f"'{name}{found[0]}' names {named} instances, but its mesh of {shape[0]} x "
            f"{shape[1]} has {prod(shape)}; write '{name}[0..{last}]', or change meshX "
            "and meshY",
        )


def _check_link(file: YamlFile, steps: Steps, fields: Fields) -> None:
    if (network := fields["connection_type"]) not in NETWORKS:
        raise file.error(
            (*steps, "connection_type"),
            f"there is no network '{network}'; there are {', '.join(NETWORKS)}",
        )


def _mesh_of(node: Fields) -> tuple[int, int]:
    """Return the instances of a node along both directions of its mesh."""
    link = node.get("attributes")
    return mesh_shape(link if isinstance(link, Mapping) else {})


def _check_axes(
    file: YamlFile, steps: Steps, levels: Mapping[str, tuple[int, int]]
) -> None:
    """Check that axes have unique names, and span the meshes of existing levels."""
    comet = _map(file, steps[:-1], _map(file, (), file.values)["comet"])
    seen: set[Field] = set()
    for name, axes in _map(file, steps, comet.get("mesh") or {}).items():
        if name not in levels:
            message = f"the Hierarchy has no level '{name}'; name one that it has"
            raise file.error((*steps, name), message)
        listed = _list(file, (*steps, name), axes)
        if len(listed) > 2:
            message = f"'{name}' has {len(listed)} axes; its instances span two at most"
            raise file.error((*steps, name), message)
        if len(listed) == 1 < levels[name][1]:
            shape = " x ".join(map(str, levels[name]))
            message = f"'{name}' has one axis, and a mesh of {shape}; name an axis for"
            raise file.error((*steps, name), f"{message} each direction")
        for axis in listed:
            if axis in seen:
                message = f"the axis '{axis}' is named twice; give each its own name"
                raise file.error((*steps, name), message)
            seen.add(axis)


def _sections(file: YamlFile) -> Iterator[Section]:
    """Yield every map of the file that has rules, in the order of the rules."""
    top = _map(file, (), file.values)
    yield (), top, FILE
    for table, rules in (("ComputeTiles", COMPUTE), ("MemoryTypes", MEMORY)):
        for i, entry in enumerate(_list(file, (table,), top[table])):
            steps = (table, i)
            row = _map(file, steps, entry)
            yield steps, row, ROW
            steps = (*steps, "attributes")
            yield steps, _map(file, steps, row.get("attributes")), rules
    for i, root in enumerate(_list(file, ("Hierarchy",), top["Hierarchy"])):
        yield from _node_sections(file, ("Hierarchy", i), root, is_root=True)
    if "comet" in top:
        yield from _comet_sections(file, top["comet"])


def _node_sections(
    file: YamlFile, steps: Steps, value: Field, *, is_root: bool
) -> Iterator[Section]:
    node = _map(file, steps, value)
    yield steps, node, NODE
    link = (*steps, "attributes")
    if not is_root or "attributes" in node:
        rules = ROOT if is_root else LINK
        yield link, _map(file, link, node.get("attributes")), rules
    for name in CHILDREN:
        below = (*steps, name)
        if (children := node.get(name)) is None:
            continue
        for i, child in enumerate(_list(file, below, children)):
            yield from _node_sections(file, (*below, i), child, is_root=False)


def _comet_sections(file: YamlFile, value: Field) -> Iterator[Section]:
    comet = _map(file, ("comet",), value)
    yield ("comet",), comet, COMET
    if "gpu" in comet:
        steps = ("comet", "gpu")
        yield steps, _map(file, steps, comet["gpu"]), GPU
    steps = ("comet", "mesh")
    if (mesh := comet.get("mesh")) is None:
        return
    for name, axes in _map(file, steps, mesh).items():
        for axis in _list(file, (*steps, name), axes):
            if not isinstance(axis, str):
                raise file.error(
                    (*steps, name),
                    f"an axis of '{name}' in 'mesh' is text, not {described(axis)}",
                )


def _map(file: YamlFile, steps: Steps, value: Field) -> Fields:
    if isinstance(value, Mapping):
        return value
    what = _called(steps)
    if value is None:
        raise file.error(steps, f"{what} is missing or empty; it is a map of fields")
    raise file.error(steps, f"{what} is a map of fields, not {described(value)}")


def _list(file: YamlFile, steps: Steps, value: Field) -> Sequence[Field]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    raise file.error(steps, f"{_called(steps)} is a list, not {described(value)}")


def _called(steps: Steps) -> str:
    names = [f"'{step}'" for step in steps if isinstance(step, str)]
    return names[-1] if names else "a hardware file"
