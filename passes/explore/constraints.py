"""
The constraints of a search over mappings: a YAML file, the third input of the search.

Each key limits one choice to a value or to a list of values; without it the choice is
open. A saved answer is such a file too, in which each choice has one value.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, TypeVar, get_args

from xdsl.utils.exceptions import ParseError, PassFailedException

from comet.dialects.schedule.attributes import BindingKind
from comet.passes.graph.pad.extents import parse_extents
from comet.passes.schedule.bind import KINDS
from comet.passes.schedule.fuse.strategy import STRATEGIES, Chunks, Loops, Name
from comet.passes.schedule.plan_string import PlanEntry, parse_plan
from comet.passes.sharding.dim_axes import Dims, parse_dims
from comet.passes.sharding.place_collectives.kinds import Kind
from comet.yaml_file import Steps, Yaml, YamlFile, read_yaml

T = TypeVar("T")

KindOrAuto: TypeAlias = Literal["auto", Kind]

Mesh: TypeAlias = Literal["whole", "known"]
"""The instances that are used: all, or those of a mesh that the COMET tool knows."""

PartsOfAxes: TypeAlias = Literal["largest", "none", "all"]
"""
How many instances are used along axes that do not divide a dimension: as many as divide
it, or not these axes. With `all` it is each number, also along axes that divide it.
"""

FUSIONS: dict[str, Name] = {name: name for name in STRATEGIES}

ALL = "all"
"""The value that opens a choice which is limited by default."""

TRUTH = {"true": True, "false": False}


class ConstraintError(PassFailedException):
    """A constraint that the program or the machine cannot meet."""

    def __init__(self, key: str, sentence: str):
        super().__init__(sentence)
        self.key = key


@contextmanager
def about_constraint(key: str) -> Generator[None]:
    """Run the body; an error in it is about the constraint `key`."""
    try:
        yield
    except PassFailedException as error:
        raise ConstraintError(key, f"'{key}': {error}") from error


@dataclass(frozen=True)
class Constraints:
    """The values that each choice may have; None leaves it open."""

    mesh: tuple[Mesh, ...] = get_args(Mesh)
    """The instances that are used, where the COMET tool does not know all meshes."""
    dim: tuple[Dims, ...] | None = None
    """Shardings, each as the option `dim` of `comet-accelerator`; none if empty."""
    split: bool = False
    """Whether each axis of the mesh may shard another dimension."""
    parts: PartsOfAxes = "largest"
    """Which parts of mesh axes are used, unless `dim` says it."""
    stream: tuple[bool, ...] | None = None
    """Whether the program is streamed."""
    strategy: tuple[Name, ...] | None = None
    """Fusion strategies."""
    chunks: tuple[Chunks, ...] | None = None
    """Levels of the loops of folds."""
    loops: tuple[Loops, ...] | None = None
    """Whether products share the loops over the shared buffer, as `loops` of `fuse`."""
    kind: tuple[KindOrAuto, ...] | None = None
    """The kinds of collectives, each as the option of `place-collectives`."""
    at: tuple[str, ...] | None = None
    """
    The levels of explicit collectives, or `all`; by default that of the shared buffer.
    """
    each: bool = False
    """Whether collectives may differ in kind and level."""
    bindings: tuple[BindingKind, ...] = (BindingKind.SEQUENTIAL,)
    """How the children of each node may be bound."""
    mixed: bool = False
    """Whether the children of one node may be bound by several kinds."""
    pad: str = "auto"
    """Padded extents or `none`, as the option of `comet-accelerator`."""
    factors: tuple[PlanEntry, ...] = ()
    """The factors of loops that are fixed, as in a plan of `tile`."""

    @property
    def kinds(self) -> tuple[KindOrAuto, ...]:
        """The kinds of collectives to search: by default all, `auto` first."""
        return self.kind or get_args(KindOrAuto)


KEYS = tuple(field.name for field in fields(Constraints))


def read_constraints(text: str, name: str) -> Constraints:
    """
    Read the constraints in the YAML file `name`.

    Raises FileFormatError, with file and line, for an unknown key or value.
    """
    file = read_yaml(text, name)
    return constraints_at(file, (), file.texts)


def constraints_at(file: YamlFile, at: Steps, values: Yaml) -> Constraints:
    """
    Return the constraints that `values` are, which are at the path `at` of a file.

    Raises FileFormatError, with file and line, for an unknown key or value.
    """
    values = values or {}
    if not isinstance(values, dict):
        raise file.error(at, f"constraints are a map with the keys {', '.join(KEYS)}")
    for key in values:
        if key not in KEYS:
            raise file.error(
                (*at, key),
                f"there is no constraint '{key}'; known: {', '.join(KEYS)}",
            )
    fields = _Given(file, at, values)
    return Constraints(
        mesh=fields.several("mesh", _one_of({n: n for n in get_args(Mesh)}))
        or get_args(Mesh),
        dim=fields.several("dim", _dims),
        split=fields.single("split", _one_of(TRUTH)) or False,
        parts=fields.single("parts", _one_of({n: n for n in get_args(PartsOfAxes)}))
        or "largest",
        stream=fields.several("stream", _one_of(TRUTH)),
        strategy=fields.several("strategy", _one_of(FUSIONS)),
        chunks=fields.several("chunks", _one_of({n: n for n in get_args(Chunks)})),
        loops=fields.several("loops", _one_of({n: n for n in get_args(Loops)})),
        kind=fields.several("kind", _one_of({n: n for n in get_args(KindOrAuto)})),
        at=fields.several("at", str),
        each=fields.single("each", _one_of(TRUTH)) or False,
        mixed=fields.single("mixed", _one_of(TRUTH)) or False,
        bindings=fields.bindings() or (BindingKind.SEQUENTIAL,),
        pad=fields.single("pad", _padding) or "auto",
        factors=fields.single("factors", _factors) or (),
    )


@dataclass(frozen=True)
class _Given:
    """The values of a file."""

    file: YamlFile
    at: Steps
    """The path to the values."""
    values: dict[str, Yaml]

    def several(self, key: str, parse: Callable[[str], T]) -> tuple[T, ...] | None:
        """
        Return the values of `key`, one text or a list, each once; None without it.

        Structures with equal values would be searched twice, under one label.
        """
        if key not in self.values:
            return None
        value = self.values[key]
        texts = value if isinstance(value, list) else [value]
        if not texts:
            reason = f"'{key}' has an empty list; give it a value, or leave it out"
            raise self.file.error((*self.at, key), reason)
        found = (self._parsed((key, at), t, parse) for at, t in enumerate(texts))
        return tuple(dict.fromkeys(found))

    def single(self, key: str, parse: Callable[[str], T]) -> T | None:
        """Return the one value of `key`, None if it is not there."""
        if key not in self.values:
            return None
        return self._parsed((key,), self.values[key], parse)

    def bindings(self) -> tuple[BindingKind, ...] | None:
        """Return the kinds of bindings; `all` are all of them."""
        if self.values.get("bindings") == ALL:
            return KINDS
        kinds = {str(kind): kind for kind in KINDS}
        return self.several("bindings", _one_of(kinds, f", or {ALL} for all of these"))

    def _parsed(self, steps: Steps, value: Yaml, parse: Callable[[str], T]) -> T:
        """Return the value at `steps`, its key first; errors name its own line."""
        key, place = steps[0], (*self.at, *steps)
        if not isinstance(value, str):
            raise self.file.error(place, f"'{key}' has a nested value; write a text")
        try:
            return parse(value)
        except (PassFailedException, ParseError) as error:
            raise self.file.error(place, f"'{key}': {error}") from error


def _one_of(values: dict[str, T], more: str = "") -> Callable[[str], T]:
    def parse(text: str) -> T:
        if text not in values:
            raise PassFailedException(f"'{text}' is none of {', '.join(values)}{more}")
        return values[text]

    return parse


def _padding(text: str) -> str:
    if text not in ("auto", "none"):
        parse_extents(text)
    return text


def _factors(text: str) -> tuple[PlanEntry, ...]:
    entries = parse_plan(text)
    for entry in entries:
        if entry.launch:
            raise PassFailedException(
                f"'{entry}' has launch numbers, which only kernels of GPUs have"
            )
    return entries


def _dims(text: str) -> Dims:
    return parse_dims(text.split(","))
