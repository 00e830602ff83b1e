"""
Methods of dataclasses that are compiled when they are first called; import it first.

Up to Python 3.12, `dataclass` compiles each method of a class on its own: about 2,000
in a run of comet-opt, a fifth of its start-up, and most are never called. Of the
standard library this replaces a private function, which Python 3.13, where a class is
compiled at once, no longer has; there, nothing changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import TypeAlias, cast

CREATE = "_create_fn"
"""The function of `dataclasses` that compiles a method, by its name and text."""

Method: TypeAlias = Callable[..., object]
Create: TypeAlias = Callable[..., Method]


def deferring(create: Create) -> Create:
    """
    Return a function as `create` whose methods are made by `create` when called.

    `__init__` is made at once: its signature is read.
    """

    def create_deferred(name: str, *text: object, **names: object) -> Method:
        if name == "__init__":
            return create(name, *text, **names)

        @cache
        def made() -> Method:
            return create(name, *text, **names)

        def deferred(self: object, *values: object) -> object:
            method = made()
            for cls in type(self).__mro__:
                if vars(cls).get(name) is deferred:
                    setattr(cls, name, method)  # Later calls are as quick as ever.
            return method(self, *values)

        deferred.__name__ = name
        return deferred

    return create_deferred


if hasattr(dataclasses, CREATE):
    setattr(dataclasses, CREATE, deferring(cast(Create, getattr(dataclasses, CREATE))))
