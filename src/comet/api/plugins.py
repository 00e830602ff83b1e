"""
Passes and dialects in Python files that are not installed.

`--load-pass-plugin` and `--load-dialect-plugin` of the tools; one file may be loaded by
both. Dialects are known in the whole process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib.abc import ExecutionLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import chain
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from xdsl.ir import Dialect
from xdsl.passes import ModulePass

from comet.api.source import Source
from comet.tools.diagnostics import UsageError
from comet.universe import installed

_LOADED: dict[str, tuple[Source, dict[str, Dialect]]] = {}
"""By the path of the file: its text, and the dialects that it defines."""


def plugin_at(path: str) -> Source:
    """Return the text of a plug-in; raises UsageError if there is no such file."""
    if not Path(path).is_file():
        what = "a folder" if Path(path).is_dir() else "no such file"
        raise UsageError(f"{path}: {what}; a plug-in is a Python file (.py)")
    return Source.read(path)


def load_plugin(plugin: Source) -> None:
    """
    Make the dialects that a Python file defines known to all that is read later.

    A file that has changed since it was loaded is loaded again. Raises UsageError if
    the file fails, or if another dialect has the name of one of its dialects.
    """
    if plugin in loaded_plugins():
        return
    dialects = dialects_in(plugin)
    others = (known for path, (_, known) in _LOADED.items() if path != plugin.name)
    for name in chain(installed().all_dialects, *others):
        if name in dialects:
            raise UsageError(
                f"{plugin.name}: there is already a dialect named '{name}'; rename it"
            )
    _LOADED[plugin.name] = plugin, dialects


def loaded_plugins() -> tuple[Source, ...]:
    """Return the files whose dialects are known."""
    return tuple(plugin for plugin, _ in _LOADED.values())


def known_dialects() -> dict[str, Callable[[], Dialect]]:
    """Return the dialects that are installed or loaded, as functions, by name."""
    loaded = chain.from_iterable(known.values() for _, known in _LOADED.values())
    own = {dialect.name: lambda found=dialect: found for dialect in loaded}
    return installed().all_dialects | own


def passes_in(plugin: Source) -> dict[str, type[ModulePass]]:
    """
    Run a Python file and return the passes that it defines, by pass name.

    Raises UsageError if the file fails, or defines no named pass.
    """
    module = _run(plugin)
    passes = {
        value.name: value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, ModulePass)
        and value.__module__ == module.__name__
        and isinstance(getattr(value, "name", None), str)
    }
    if not passes:
        raise UsageError(
            f"{plugin.name}: a pass plug-in must define a ModulePass with a name"
        )
    return passes


def dialects_in(plugin: Source) -> dict[str, Dialect]:
    """
    Run a Python file and return the dialects that it defines, by name.

    Raises UsageError if the file fails, defines no dialect of its own, or one with two
    ops of one name.
    """
    module = _run(plugin)
    found = [value for value in vars(module).values() if isinstance(value, Dialect)]
    dialects = {d.name: d for d in found if _is_of_module(d, module)}
    for dialect in dialects.values():
        names = [op.name for op in dialect.operations]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(f"{plugin.name}: two ops are called '{twice}'; rename one")
    if not dialects:
        raise UsageError(
            f"{plugin.name}: a dialect plug-in must define a Dialect with an op, "
            "attribute or type of its own"
        )
    return dialects


def _is_of_module(dialect: Dialect, module: ModuleType) -> bool:
    """Return whether a module has defined a part of a dialect, not only imported it."""
    parts = (*dialect.operations, *dialect.attributes)
    return any(part.__module__ == module.__name__ for part in parts)


class _TextLoader(ExecutionLoader):
    """Runs a text that was read before, maybe on another machine."""

    def __init__(self, file: Source):
        self._file = file

    def get_filename(self, fullname: str) -> str:
        """Return the path that tracebacks name."""
        return self._file.name

    def get_source(self, fullname: str) -> str:
        """Return the text."""
        return self._file.text


@cache
def _run(plugin: Source) -> ModuleType:
    name = f"comet_plugin_{Path(plugin.name).stem}"
    spec = spec_from_loader(name, loader := _TextLoader(plugin))
    assert spec is not None  # as the loader is given
    module = module_from_spec(spec)
    module.__file__ = plugin.name
    sys.modules[name] = module  # dataclasses look their module up by name
    try:
        loader.exec_module(module)
    except Exception as error:
        frames = reversed(extract_tb(error.__traceback__))
        lines = (frame.lineno for frame in frames if frame.filename == plugin.name)
        line = next(lines, getattr(error, "lineno", None)) or 1
        raise UsageError(
            f"{plugin.name}:{line}: the plug-in fails: {type(error).__name__}: {error}"
        ) from error
    return module
