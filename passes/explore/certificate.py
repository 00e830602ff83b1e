"""
The proof of a search as a file: the answer, and a lower bound for every structure.

The file holds its inputs, so that a checker needs nothing else. `verify` checks it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import cast

from xdsl.utils.exceptions import DiagnosticException

FORMAT = 1
"""The number of the file's format."""


class CertificateError(DiagnosticException):
    """A certificate is no such file, or a line of it is false."""


@dataclass(frozen=True)
class Floor:
    """By how much any loops of some keys raise the bound of a structure at least."""

    keys: tuple[str, ...]
    """The keys in alphabetical order, as `LEVEL` or `LEVEL/CLASS`."""
    cycles: float
    energy: float
    """pJ."""


@dataclass(frozen=True)
class Claim:
    """No mapping of a structure has an objective below a bound."""

    structure: str
    bound: float | None
    """None if it has no mapping; what matters is that none is below the best one."""
    floors: tuple[Floor, ...] = ()
    """What its nests add, if that was used."""


@dataclass(frozen=True)
class Certificate:
    """What a search says, and what it was asked."""

    program: str
    """The text of the program, without hardware."""
    system: str
    """The name of the hardware."""
    hardware: str
    """The text of the hardware file."""
    constraints: str
    model: str
    objective: str
    pipeline: str
    """The passes that make the best mapping, hardware attached."""
    value: float
    """Its objective: cycles, pJ, or their product."""
    lower_bound: float
    rest: float | None
    """The bound of the structures without a claim; None if there are none."""
    claims: tuple[Claim, ...]

    def text(self) -> str:
        """Return the file."""
        head = {"format": FORMAT, "comet": version("comet-compiler")}
        return json.dumps({**head, **asdict(self)}, indent=1) + "\n"


def key_text(key: tuple[str, str | None]) -> str:
    """Return a key of a template as text."""
    return "/".join(part for part in key if part is not None)


def read_certificate(text: str, name: str) -> Certificate:
    """
    Read a certificate file.

    Raises CertificateError if it is none, or of another version.
    """
    try:
        fields = cast(dict[str, object], json.loads(text))
        made = fields.pop("format"), fields.pop("comet")
        if made != (FORMAT, version("comet-compiler")):
            raise CertificateError(
                f"{name}: a certificate of format {made[0]} by comet {made[1]}; this "
                f"is comet {version('comet-compiler')}, which checks its own only"
            )
        claims = cast(list[dict[str, object]], fields.pop("claims"))
        return Certificate(claims=tuple(map(_claim, claims)), **fields)  # pyright: ignore[reportArgumentType]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CertificateError(
            f"{name}: this is no certificate; write one with comet-explore "
            "--certificate"
        ) from error


def _claim(fields: dict[str, object]) -> Claim:
    floors = cast(list[dict[str, object]], fields.pop("floors"))
    made = tuple(
        Floor(
            tuple(cast(list[str], floor["keys"])),
            float(cast(float, floor["cycles"])),
            float(cast(float, floor["energy"])),
        )
        for floor in floors
    )
    bound = cast("float | None", fields["bound"])
    return Claim(str(fields["structure"]), bound, made)
