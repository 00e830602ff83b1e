"""Every field of the files that users write, given what it cannot be: one sentence."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import pytest
import yaml
from covering import spread
from paths import HARDWARE

from comet.dialects.arch.fields import Field
from comet.hardware_file import read_hardware_text
from comet.passes.explore.constraints import KEYS, read_constraints
from comet.yaml_file import FileFormatError, Steps

WRONG: tuple[Field, ...] = (True, [1, 2], -3, 10**30, {"a": 1}, 2.5, None, "", "no")

PLACED = re.compile(r"f\.yaml:[1-9]\d*: [^\n]+")

DUMPER: type[yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The one in C, which takes a tenth of the time, where there is one."""


def entries(value: Field) -> Iterator[tuple[str | int, Field]]:
    """Yield the steps into a map or a list, with what is there."""
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from enumerate(value)


def places(value: Field, steps: Steps = ()) -> Iterator[Steps]:
    """Yield the paths to all values in a file, but its top."""
    for step, child in entries(value):
        yield (*steps, step)
        yield from places(child, (*steps, step))


def with_value(value: Field, steps: Steps, wrong: Field) -> Field:
    """Return a copy of `value` with another value at `steps`."""
    if not steps:
        return wrong
    parts = {
        step: with_value(child, steps[1:], wrong) if step == steps[0] else child
        for step, child in entries(value)
    }
    if isinstance(value, Mapping):
        return {str(step): child for step, child in parts.items()}
    return list(parts.values())


def refused(read: Callable[[str, str], object], value: Field) -> bool:
    """Return whether a file is refused; check that it is by one located sentence."""
    try:
        read(yaml.dump(value, Dumper=DUMPER, sort_keys=False), "f.yaml")
    except FileFormatError as error:
        if not PLACED.fullmatch(str(error)):
            raise
        return True
    return False


@pytest.mark.parametrize("machine", ["edge", "tiles", "h200x8"])
def test_hardware(machine: str):
    """A part of all fields with all wrong values, spread evenly over both."""
    fields: Field = yaml.safe_load((HARDWARE / f"{machine}.yaml").read_text())
    cases = product(places(fields), WRONG)
    found = [
        refused(read_hardware_text, with_value(fields, steps, wrong))
        for index, (steps, wrong) in enumerate(cases)
        if spread(index, 30)
    ]
    assert sum(found) > 0.8 * len(found)


def test_lists_of_nodes_and_axes_are_no_numbers():
    fields: Field = yaml.safe_load((HARDWARE / "edge.yaml").read_text())
    children: Steps = ("Hierarchy", 0, "connects")
    for steps in children, ("comet", "mesh"):
        for wrong in (0, "", False):
            assert refused(read_hardware_text, with_value(fields, steps, wrong))


@pytest.mark.parametrize("key", KEYS)
def test_constraints(key: str):
    found = [refused(read_constraints, {key: wrong}) for wrong in WRONG]
    assert any(found)


def test_constraints_are_a_map():
    for wrong in WRONG[:4]:
        assert refused(read_constraints, wrong)
