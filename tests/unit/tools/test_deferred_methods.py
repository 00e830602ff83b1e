"""Methods of dataclasses that are compiled when they are first called."""

import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field

import pytest

from comet.tools.deferred_methods import CREATE, Create, deferring

pytestmark = pytest.mark.skipif(
    not hasattr(dataclasses, CREATE), reason="Python compiles a dataclass at once"
)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of methods that are compiled from now on, in order."""
    names: list[str] = []
    create: Create = getattr(dataclasses, CREATE)

    def noted(name: str, *text: object, **rest: object) -> Callable[..., object]:
        names.append(name)
        return create(name, *text, **rest)

    monkeypatch.setattr(dataclasses, CREATE, deferring(noted))
    return names


@pytest.mark.parametrize("slots", [False, True])
def test_methods_are_those_of_a_dataclass(made: list[str], slots: bool) -> None:
    """They compare, hash, print and refuse as ever, also those of a subclass."""

    @dataclass(frozen=True, order=True, slots=slots)
    class Tile:
        rows: int
        label: str = field(default="", compare=False)

    @dataclass(frozen=True, slots=slots)
    class Padded(Tile):
        to: int = 0

    assert set(made) == {"__init__"}
    assert Tile(4, "a") == Tile(4, "b") != Tile(8)
    assert Padded(4, to=8) == Padded(4, to=8) != Padded(4)
    assert Padded(4) != Tile(4)
    assert hash(Tile(4, "a")) == hash(Tile(4))
    assert Tile(4) < Tile(8)
    assert repr(Padded(4)).endswith("Padded(rows=4, label='', to=0)")
    for name in ("rows", "to"):
        with pytest.raises(FrozenInstanceError):
            setattr(Padded(4), name, 1)
    with pytest.raises(FrozenInstanceError):
        delattr(Padded(4), "rows")


def test_a_method_is_compiled_once(made: list[str]) -> None:
    """The compiled method takes the place of the deferred one."""

    @dataclass
    class Tile:
        rows: int

    for _ in range(3):
        assert Tile(4) == Tile(4)
        assert repr(Tile(4)).endswith("Tile(rows=4)")
    assert sorted(made) == ["__eq__", "__init__", "__repr__"]
