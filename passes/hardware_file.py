"""Reads a hardware file and checks what it says, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch_fields import Field, Fields
from comet.dialects.arch_schema import (
    COMET,
    COMPUTE,
    FILE,
    GPU,
    LINK,
    MEMORY,
    NODE,
    ROW,
    Rules,
    mistakes,
    near_misses,
)
from comet.passes.yaml_lines import Steps, YamlDocument, parse_yaml

Section: TypeAlias = tuple[Steps, Fields, Rules]
"""A map of a hardware file, where it stands, and the rules for its fields."""

NETWORKS = ("MeshNetwork", "HXbarNetwork")
"""The networks that the COMET tool knows."""

CHILDREN = ("connects", "drains", "fills")


def read_hardware_file(path: str) -> Fields:
    """
    Read a hardware file and check the names and values of the fields that comet knows.

    Raises PassFailedException with file and line if the file is missing, is no YAML,
    or breaks a rule of `arch_schema`. Unknown fields are kept, as the COMET tool
    ignores them, with two exceptions: one that looks like a misspelt known field, and
    any in the section that only comet reads.
    """
    document = parse_yaml(path, _text_of(path))
    for steps, fields, rules in _sections(document):
        for name, known in near_misses(fields, rules):
            raise document.error(
                (*steps, name), f"unknown field '{name}', did you mean '{known}'?"
            )
        for name, mistake in mistakes(fields, rules):
            raise document.error((*steps, name) if name else steps, mistake)
        for name in fields if rules in (COMET, GPU) else ():
            if name not in rules:
                raise document.error(
                    (*steps, name),
                    f"unknown field '{name}', known are {', '.join(rules)}",
                )
    _check_names(document)
    return _map(document, (), document.value)


def _check_names(document: YamlDocument) -> None:
    """Check that the types of nodes and the levels with axes exist."""
    tables: dict[Field, str] = {}
    levels: set[str] = set()
    for steps, fields, rules in _sections(document):
        if rules is ROW:
            if (kind := fields["name"]) in tables:
                message = f"'{kind}' is listed twice; give each entry its own name"
                raise document.error((*steps, "name"), message)
            tables[kind] = str(steps[0])
        elif rules is NODE:
            _check_node(document, steps, fields, tables, levels)
        elif rules is LINK:
            _check_link(document, steps, fields)
        elif rules is COMET:
            _check_axes(document, (*steps, "mesh"), levels)


def _check_node(
    document: YamlDocument,
    steps: Steps,
    fields: Fields,
    tables: Mapping[Field, str],
    levels: set[str],
) -> None:
    """Check a node's type, and that no memory appears twice; note its name."""
    kind, name = fields["type"], str(fields["name"]).partition("[")[0]
    if (table := tables.get(kind)) is None:
        message = f"there is no entry named '{kind}' in ComputeTiles or MemoryTypes"
        raise document.error((*steps, "type"), f"{message}; add it or mend the type")
    if "is_compute" in fields and table != "ComputeTiles":
        message = f"'{name}' computes, but its type '{kind}' is none of ComputeTiles"
        raise document.error((*steps, "type"), f"{message}; mend the type")
    if "is_compute" not in fields and name in levels:
        message = f"the level '{name}' appears twice; give each memory its own name"
        raise document.error((*steps, "name"), message)
    levels.add(name)


def _check_link(document: YamlDocument, steps: Steps, fields: Fields) -> None:
    if (network := fields["connection_type"]) not in NETWORKS:
        raise document.error(
            (*steps, "connection_type"),
            f"there is no network '{network}'; there are {', '.join(NETWORKS)}",
        )


def _check_axes(document: YamlDocument, steps: Steps, levels: set[str]) -> None:
    """Check that axes have names of their own and lie at levels that exist."""
    comet = _map(document, steps[:-1], _map(document, (), document.value)["comet"])
    seen: set[Field] = set()
    for name, axes in _map(document, steps, comet.get("mesh") or {}).items():
        if name not in levels:
            message = f"the Hierarchy has no level '{name}'; name one that it has"
            raise document.error((*steps, name), message)
        listed = _list(document, (*steps, name), axes)
        if len(listed) > 2:
            message = f"'{name}' has {len(listed)} axes; its instances span two at most"
            raise document.error((*steps, name), message)
        for axis in listed:
            if axis in seen:
                message = f"the axis '{axis}' is named twice; give each its own name"
                raise document.error((*steps, name), message)
            seen.add(axis)


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise PassFailedException(
            f"cannot read the hardware file {path}: {error.strerror}; a path is "
            "relative to the current folder"
        ) from error
    except UnicodeDecodeError as error:
        raise PassFailedException(f"{path}: a hardware file is UTF-8 text") from error


def _sections(document: YamlDocument) -> Iterator[Section]:
    """Yield every map of the file that has rules, in the order of the rules."""
    top = _map(document, (), document.value)
    yield (), top, FILE
    for table, rules in (("ComputeTiles", COMPUTE), ("MemoryTypes", MEMORY)):
        for i, entry in enumerate(_list(document, (table,), top[table])):
            steps = (table, i)
            row = _map(document, steps, entry)
            yield steps, row, ROW
            steps = (*steps, "attributes")
            yield steps, _map(document, steps, row.get("attributes")), rules
    for i, root in enumerate(_list(document, ("Hierarchy",), top["Hierarchy"])):
        yield from _node_sections(document, ("Hierarchy", i), root, is_root=True)
    if "comet" in top:
        yield from _comet_sections(document, top["comet"])


def _node_sections(
    document: YamlDocument, steps: Steps, value: Field, *, is_root: bool
) -> Iterator[Section]:
    node = _map(document, steps, value)
    yield steps, node, NODE
    if not is_root:
        link = (*steps, "attributes")
        yield link, _map(document, link, node.get("attributes")), LINK
    for name in CHILDREN:
        below = (*steps, name)
        for i, child in enumerate(_list(document, below, node.get(name) or [])):
            yield from _node_sections(document, (*below, i), child, is_root=False)


def _comet_sections(document: YamlDocument, value: Field) -> Iterator[Section]:
    comet = _map(document, ("comet",), value)
    yield ("comet",), comet, COMET
    if "gpu" in comet:
        steps = ("comet", "gpu")
        yield steps, _map(document, steps, comet["gpu"]), GPU
    steps = ("comet", "mesh")
    for name, axes in _map(document, steps, comet.get("mesh") or {}).items():
        for axis in _list(document, (*steps, name), axes):
            if not isinstance(axis, str):
                raise document.error((*steps, name), f"an axis is text, not {axis}")


def _map(document: YamlDocument, steps: Steps, value: Field) -> Fields:
    if isinstance(value, Mapping):
        return value
    what = _called(steps)
    if value is None:
        raise document.error(
            steps, f"{what} is missing or empty; it is a map of fields"
        )
    raise document.error(steps, f"{what} is a map of fields, not {value!r}")


def _list(document: YamlDocument, steps: Steps, value: Field) -> Sequence[Field]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    raise document.error(steps, f"{_called(steps)} is a list, not {value!r}")


def _called(steps: Steps) -> str:
    names = [f"'{step}'" for step in steps if isinstance(step, str)]
    return names[-1] if names else "a hardware file"
