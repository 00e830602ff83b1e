"""Reading YAML: what values it has, where they stand, and how large it may be."""

from time import perf_counter

import pytest

from comet.yaml_file import DEEPEST, MOST, FileFormatError, read_yaml

BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
CHAIN = "a0: &a0 x\n" + "".join(
    f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, DEEPEST + 2)
)


def nested(depth: int) -> str:
    return f"a: {'[' * depth}{']' * depth}\n"


def test_scalars_are_text_or_what_they_spell() -> None:
    file = read_yaml("NO: [NO, 12, 1.5, ~, 2024-01-02]\n1: {x: on}\n", "f.yaml")
    assert file.texts == {
        "NO": ["NO", "12", "1.5", "~", "2024-01-02"],
        "1": {"x": "on"},
    }
    assert file.values == {
        "NO": [False, 12, 1.5, None, "2024-01-02"],
        "1": {"x": True},
    }


def test_an_empty_file_has_no_values() -> None:
    file = read_yaml("# nothing\n", "f.yaml")
    assert (file.texts, file.values) == ("", None)
    assert file.file_line(("a", 1)) == "f.yaml:1"


def test_places_are_those_of_names_and_elements() -> None:
    file = read_yaml("a:\n  - b: 1\n  -\n    c: 2\n", "f.yaml")
    assert file.file_line(("a", 1, "c")) == "f.yaml:4"
    assert file.file_line(("a", 1, "missing")) == "f.yaml:4"
    assert file.location(("a", 0)).column.data == 5


def test_aliases_repeat_values() -> None:
    file = read_yaml("a: &a {x: 1}\nb: [*a, *a]\n", "f.yaml")
    assert file.values == {"a": {"x": 1}, "b": [{"x": 1}, {"x": 1}]}


def test_nesting_has_a_limit() -> None:
    read_yaml(nested(DEEPEST - 1), "f.yaml")
    with pytest.raises(FileFormatError, match=r"f.yaml:1: .* more than 100 deep"):
        read_yaml(nested(DEEPEST), "f.yaml")


WRONG = {
    "bomb": (BOMB, rf"f.yaml:6: .* more than {MOST} values"),
    "deep": (nested(100_000), r"f.yaml:1: .* nested more than 100 deep"),
    "deep by aliases": (CHAIN, r"f.yaml:\d+: .* nested more than 100 deep"),
    "cycle": ("b: 1\na: &a [*a]\n", r"f.yaml:2: an alias names a value that contains"),
    "control character": ("a: 1\nb: \0\n", r"f.yaml:2: .* character U\+0000"),
    "twice": ("a: 1\na: 2\n", r"f.yaml:2: the field 'a' is given twice"),
    "map as a name": ("{a: 1}: 2\n", r"f.yaml:1: the name of a field is a list or a"),
    "no alias": ("a: *b\n", r"f.yaml:1: malformed YAML: found undefined alias"),
    "two documents": ("a: 1\n---\nb: 2\n", r"f.yaml:2: malformed YAML"),
}
WRONG_VALUES = {
    "large": ("\na: 9223372036854775808\n", r"f.yaml:2: .* does not fit in 64 bits"),
    "digits": (f"a: {'9' * 5000}\n", r"f.yaml:1: '9{60}..' is no value of its type"),
    "hexadecimal": (f"a: 0x{'9' * 5000}\n", r"f.yaml:1: .* does not fit in 64 bits"),
    "infinite": ("a: -.inf\n", r"f.yaml:1: '-.inf' is not a finite number"),
    "no number": ("a: !!int x\n", r"f.yaml:1: 'x' is no value of its type"),
    "tag": ("a: !!python/name:os.system x\n", r"f.yaml:1: malformed YAML: could not"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_cannot_be_read_is_one_sentence_at_once(case: str) -> None:
    text, message = WRONG[case]
    start = perf_counter()
    with pytest.raises(FileFormatError, match=message) as caught:
        read_yaml(text, "f.yaml")
    assert perf_counter() - start < 2
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", WRONG_VALUES)
def test_a_value_that_is_none_is_one_sentence(case: str) -> None:
    text, message = WRONG_VALUES[case]
    file = read_yaml(text, "f.yaml")
    assert file.texts
    with pytest.raises(FileFormatError, match=message) as caught:
        _ = file.values
    assert len(str(caught.value)) < 200
