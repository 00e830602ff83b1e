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
    kinds: set[Field] = set()
    levels: set[Field] = set()
    for steps, fields, rules in _sections(document):
        if rules is ROW:
            kinds.add(fields["name"])
        elif rules is NODE:
            levels.add(str(fields["name"]).partition("[")[0])
            if fields["type"] not in kinds:
                raise document.error(
                    (*steps, "type"),
                    f"there is no entry named '{fields['type']}' in ComputeTiles or "
                    "MemoryTypes",
                )
        elif rules is COMET:
            for name in _map(document, (*steps, "mesh"), fields.get("mesh") or {}):
                if name not in levels:
                    raise document.error(
                        (*steps, "mesh", name), f"the Hierarchy has no level '{name}'"
                    )


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
