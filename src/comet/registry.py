"""Imports an object by its path on demand, for a short start-up time."""

from __future__ import annotations

from importlib import import_module


def imported(path: str) -> object:
    """Return the object at `module:name`; imports the module."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
