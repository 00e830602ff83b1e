"""The packages of extras, which are loaded when something asks for them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from comet.tools.diagnostics import UsageError


def loaded(package: str, extra: str, purpose: str) -> ModuleType:
    """Return a package; raises UsageError, with its extra, if it is not installed."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{purpose} needs the package {error.name}; install it with pip install "
            f"'comet-compiler[{extra}]'"
        ) from error
