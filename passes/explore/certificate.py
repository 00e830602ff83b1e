"""
The proof of a search as a file: the answer, and a lower bound for every structure.

The file holds its inputs, so that a checker needs nothing else. `verify` checks it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from math import isfinite
from typing import TypeVar, cast, get_args

from xdsl.utils.exceptions import DiagnosticException

from comet.cost.estimate import ModelName
from comet.passes.search import Objective

FORMAT = 3
"""The number of the file's format."""

MOST_BYTES = 50_000_000
"""A larger file has one claim for all structures instead, and a wider gap."""

MODELS: Mapping[str, ModelName] = {name: name for name in get_args(ModelName)}
OBJECTIVES: Mapping[str, Objective] = {name: name for name in get_args(Objective)}

T = TypeVar("T")


class CertificateError(DiagnosticException):
    """A file that is no certificate, or a certificate with a false line."""


@dataclass(frozen=True)
class Floor:
    """The minimum that a nest adds to the bound of a structure, for any loops."""

    keys: tuple[str, ...]
    """The keys of the nest in alphabetical order, as `LEVEL` or `LEVEL/CLASS`."""
    cycles: float
    energy: float
    """pJ."""


@dataclass(frozen=True)
class Claim:
    """No mapping of a structure, or of a group, has an objective below a bound."""

    structure: str
    """The label of the structure, or the prefix of the labels of a group."""
    bound: float
    """At most the value of the best mapping, even if there is no mapping."""
    floors: tuple[Floor, ...] = ()
    """The minimum that its nests add, if the bound depends on it."""


@dataclass(frozen=True)
class Certificate:
    """The result of a search, and its inputs."""

    program: str
    """The text of the program, without hardware."""
    system: str
    """The name of the hardware."""
    hardware: str
    """The text of the hardware file."""
    constraints: str
    model: ModelName
    objective: Objective
    allow_artifacts: bool
    """Whether mappings below the roofline of the model `tool` count."""
    pipeline: str
    """The passes that make the best mapping, hardware attached."""
    value: float
    """Its objective: cycles, pJ, or their product."""
    lower_bound: float
    """0 if none is known, as for an unfinished search under `tool`."""
    rest: float | None
    """The bound of the structures without a claim; None if there are none."""
    claims: tuple[Claim, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of its inputs."""
        inputs = (self.program, self.system, self.hardware, self.constraints)
        return sha256(json.dumps(inputs).encode()).hexdigest()

    def text(self) -> str:
        """Return the text of the file."""
        head = {
            "format": FORMAT,
            "comet": version("comet-compiler"),
            "inputs": self.digest,
        }
        return json.dumps({**head, **asdict(self)}, indent=1) + "\n"

    def merged(self, bound: float) -> Certificate:
        """Return the proof with one claim for all structures, of their bound."""
        lower_bound = min(bound, self.value)
        return replace(self, lower_bound=lower_bound, rest=bound, claims=())


def key_text(key: tuple[str, str | None]) -> str:
    """Return a key of a template as text."""
    return "/".join(part for part in key if part is not None)


def read_certificate(text: str, name: str) -> Certificate:
    """
    Return the certificate in the text of the file `name`.

    Raises CertificateError if it is none, is of another version of comet, or if its
    inputs do not have its digest.
    """
    try:
        fields = _Fields(json.loads(text))
        made_by = fields.values.get("format"), fields.values.get("comet")
        if None in made_by:
            raise ValueError("it has no 'format' or no 'comet'")
        if made_by != (FORMAT, version("comet-compiler")):
            raise CertificateError(
                f"{name}: a certificate of format {made_by[0]} by comet {made_by[1]}; "
                f"this is comet {version('comet-compiler')}, which checks its own only"
            )
        found = _certificate(fields)
        if fields.text("inputs") != found.digest:
            raise CertificateError(
                f"{name}: its program, hardware or constraints are not those that it "
                "was made with; search again"
            )
        return found
    except (ValueError, OverflowError, RecursionError) as error:
        reason = "" if isinstance(error, json.JSONDecodeError) else f" ({error})"
        raise CertificateError(
            f"{name}: this is no certificate{reason}; write one with comet-explore "
            "--certificate"
        ) from error


def _certificate(fields: _Fields) -> Certificate:
    return Certificate(
        program=fields.text("program"),
        system=fields.text("system"),
        hardware=fields.text("hardware"),
        constraints=fields.text("constraints"),
        model=fields.one_of("model", MODELS),
        objective=fields.one_of("objective", OBJECTIVES),
        allow_artifacts=fields.truth("allow_artifacts"),
        pipeline=fields.text("pipeline"),
        value=fields.number("value"),
        lower_bound=fields.number("lower_bound"),
        rest=fields.bound("rest"),
        claims=tuple(map(_claim, fields.several("claims"))),
    )


def _claim(fields: _Fields) -> Claim:
    floors = tuple(
        Floor(
            tuple(map(str, fields.items("keys"))),
            fields.number("cycles"),
            fields.number("energy"),
        )
        for fields in fields.several("floors")
    )
    return Claim(fields.text("structure"), fields.number("bound"), floors)


@dataclass(frozen=True)
class _Fields:
    """
    The fields of a JSON object.

    Methods raise ValueError for a field of another type. Numbers must be finite: no
    comparison with NaN is true, so a check for lower values would accept it.
    """

    values: dict[str, object]

    def __post_init__(self) -> None:
        """Raise ValueError if the value is no object."""
        if not isinstance(self.values, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError("it is no JSON object with fields")

    def text(self, key: str) -> str:
        """Return a text."""
        value = self.values.get(key)
        if not isinstance(value, str):
            raise ValueError(f"'{key}' is no text")
        return value

    def one_of(self, key: str, values: Mapping[str, T]) -> T:
        """Return the value of one of the known texts."""
        text = self.text(key)
        if text not in values:
            raise ValueError(f"'{key}' is none of {', '.join(values)}")
        return values[text]

    def truth(self, key: str) -> bool:
        """Return true or false."""
        value = self.values.get(key)
        if not isinstance(value, bool):
            raise ValueError(f"'{key}' is neither true nor false")
        return value

    def number(self, key: str) -> float:
        """Return a finite number."""
        value = self.values.get(key)
        if not isinstance(value, int | float) or not isfinite(value):
            raise ValueError(f"'{key}' is no finite number")
        return float(value)

    def bound(self, key: str) -> float | None:
        """Return a finite number, or None for null."""
        if key in self.values and self.values[key] is None:
            return None
        return self.number(key)

    def items(self, key: str) -> list[object]:
        """Return a list."""
        value = self.values.get(key)
        if not isinstance(value, list):
            raise ValueError(f"'{key}' is no list")
        return cast(list[object], value)

    def several(self, key: str) -> list[_Fields]:
        """Return the objects of a list."""
        return [_Fields(cast(dict[str, object], entry)) for entry in self.items(key)]
