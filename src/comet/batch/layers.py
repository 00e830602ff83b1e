"""A file of questions: one layer of a network each, or one variant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from comet.api.question import Question
from comet.api.saved import saved_constraints
from comet.api.source import Source
from comet.cost.estimate import ModelName
from comet.passes.explore.constraints import constraints_at
from comet.passes.search import Objective
from comet.tools.diagnostics import UsageError
from comet.yaml_file import FileFormatError, Yaml, YamlFile, read_yaml

KEYS = (
    "program",
    "hardware",
    "constraints",
    "model",
    "objective",
    "time_limit",
    "tolerance",
)


def read_layers(path: Path, hardware: str | None, rest: Question) -> list[Question]:
    """
    Return the questions of a YAML file, a list of maps.

    Paths are relative to the folder of the file. `hardware` and `rest` have the values
    of keys that an entry lacks. Raises OSError if the file itself cannot be read, and
    FileFormatError or UsageError for a mistake in it or in a file that it names.
    """
    source = Source.read(path)
    file = read_yaml(source.text, source.name)
    entries = file.texts
    if not isinstance(entries, list) or not entries:
        raise file.error((), f"a batch is a list of maps with {', '.join(KEYS)}")
    layers = [_Layer(file, path.parent, index, e) for index, e in enumerate(entries)]
    return [layer.question(hardware, rest) for layer in layers]


@dataclass(frozen=True)
class _Layer:
    """An entry of the file."""

    file: YamlFile
    folder: Path
    index: int
    entry: Yaml

    def question(self, hardware: str | None, rest: Question) -> Question:
        """Return the question of the entry."""
        values = self._values()
        if (program := self._source(values, "program")) is None:
            raise self._error("an entry names its program")
        if (machine := self._source(values, "hardware")) is None:
            if hardware is None:
                raise self._error("name its hardware here, or for all by --hardware")
            machine = Source.read(hardware)
        try:
            return replace(
                rest,
                program=program,
                hardware=machine,
                constraints=self._constraints(values) or rest.constraints,
                model=cast(ModelName, values.get("model", rest.model)),
                objective=cast(Objective, values.get("objective", rest.objective)),
                time_limit=self._number(values, "time_limit", rest.time_limit),
                tolerance=self._number(values, "tolerance", rest.tolerance),
            )
        except UsageError as error:
            raise self._error(str(error)) from error

    def _values(self) -> dict[str, Yaml]:
        """Return the values by their keys, all known."""
        if not isinstance(self.entry, dict):
            raise self._error(f"an entry is a map with {', '.join(KEYS)}")
        for key in self.entry:
            if key not in KEYS:
                raise self._error(
                    f"there is no key '{key}'; known: {', '.join(KEYS)}", key
                )
            if isinstance(self.entry[key], str) or key == "constraints":
                continue
            raise self._error(f"'{key}' has a nested value; write a text", key)
        return self.entry

    def _source(self, values: Mapping[str, Yaml], key: str) -> Source | None:
        """Return the file that a key names, None if the key is not there."""
        path = values.get(key)
        if not isinstance(path, str):
            return None
        if not path:
            raise self._error(f"'{key}' is empty; name a file", key)
        try:
            return Source.read(self.folder / path)
        except OSError as error:
            named = f"{error.filename}: {error.strerror}"
            raise self._error(f"'{key}': {named}; name another file", key) from error
        except UsageError as error:
            raise self._error(str(error), key) from error

    def _constraints(self, values: Mapping[str, Yaml]) -> Source | None:
        """
        Return the constraints of a file, which a saved mapping may be, or of the entry.
        """
        inside = values.get("constraints")
        if inside is None or isinstance(inside, str):
            file = self._source(values, "constraints")
            return None if file is None else saved_constraints(file)
        constraints_at(self.file, (self.index, "constraints"), inside)  # names its line
        return Source(json.dumps(inside), self.file.file_line((self.index,)))

    def _number(self, values: Mapping[str, Yaml], key: str, rest: float) -> float:
        text = values.get(key, rest)
        try:
            return float(text) if isinstance(text, str | float) else rest
        except ValueError as error:
            raise self._error(f"'{key}' is no number: '{text}'", key) from error

    def _error(self, message: str, *keys: str) -> FileFormatError:
        """Return an error at the value of a key, or at the entry."""
        return self.file.error((self.index, *keys), message)
