"""
The values that each group of ops stores, as text: `"h1; q k; mixed"`.

Options and attributes have this form, for GPU kernels and the mappings of a chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound.dims import unused


def format_stored(
    ops: Sequence[Operation], stored: Iterable[Sequence[SSAValue]]
) -> str:
    """Return the text that names the values of each group."""
    named = value_names(ops)
    groups = ([named[v] for v in values if v in named] for values in stored)
    return "; ".join(" ".join(names) for names in groups if names)


def value_names(ops: Sequence[Operation]) -> dict[SSAValue, str]:
    """Return a different name for each result of ops: its hint, numbered if taken."""
    named, taken = dict[SSAValue, str](), set[str]()
    for op in ops:
        for result in op.results:
            hint = result.name_hint or op.name.rpartition(".")[2]
            named[result] = unused(hint, taken, "_")
            taken.add(named[result])
    return named


def named_values(
    text: str, named: Mapping[SSAValue, str], name: str, group: str
) -> tuple[tuple[SSAValue, ...], ...]:
    """
    Return the values that each group of `text` stores.

    Raises PassFailedException for a name that no value has, for one that occurs twice,
    and for results of one op in two groups. Errors name the pass `name`, and its
    option, the plural of `group`.
    """
    values = {name: value for value, name in named.items()}
    groups = [entry.split() for entry in text.split(";") if entry.strip()]
    words_used = [word.removeprefix("%") for words in groups for word in words]
    for word in words_used:
        if word not in values:
            if "," in word:
                raise PassFailedException(
                    f"{name}: {group}s has a comma in '{word}'; write a space between "
                    f"values of one {group}, and a semicolon between {group}s"
                )
            raise PassFailedException(
                f"{name}: {group}s names %{word}, which no op computes; "
                f"{_called(word, values)}"
            )
        if words_used.count(word) > 1:
            raise PassFailedException(
                f"{name}: {group}s stores %{word} twice; name it in one {group}"
            )
    stored = tuple(
        tuple(values[word.removeprefix("%")] for word in words) for words in groups
    )
    _check_one_group_per_op(stored, named, name, group)
    return stored


def _called(word: str, names: Iterable[str]) -> str:
    """Return the names in place of which `word` may stand, as the end of a sentence."""
    known = list(names)
    if not known:
        return "there are no values that it could name"
    close = get_close_matches(word, known, n=3) or known[-3:]
    more = " and so on" if len(close) < len(known) else ""
    return f"values are called {', '.join(close)}{more}"


def _check_one_group_per_op(
    stored: Sequence[Sequence[SSAValue]],
    named: Mapping[SSAValue, str],
    name: str,
    group: str,
) -> None:
    """Check that no two groups store results of the same op."""
    first: dict[Operation | Block, tuple[int, SSAValue]] = {}
    for index, values in enumerate(stored):
        for value in values:
            group_index, result = first.setdefault(value.owner, (index, value))
            if group_index != index:
                raise PassFailedException(
                    f"{name}: {group}s stores %{named[result]} and %{named[value]} in "
                    f"two {group}s, and one op computes both; name them in one {group}"
                )
