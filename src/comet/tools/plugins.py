"""
Loads passes and dialects from Python files that are not installed.

`--load-pass-plugin` and `--load-dialect-plugin`; one file may be loaded by both.
"""

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from xdsl.ir import Dialect
from xdsl.passes import ModulePass

from comet.tools.diagnostics import UsageError


def load_pass_plugin(path: str) -> dict[str, type[ModulePass]]:
    """
    Run a Python file and return the passes that it defines, by pass name.

    Raises UsageError if the file is missing, fails, or defines no named pass.
    """
    module = _run_file(path)
    passes = {
        value.name: value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, ModulePass)
        and value.__module__ == module.__name__
        and isinstance(getattr(value, "name", None), str)
    }
    if not passes:
        raise UsageError(f"{path}: a pass plug-in must define a ModulePass with a name")
    return passes


def load_dialect_plugin(path: str) -> dict[str, Dialect]:
    """
    Run a Python file and return the dialects that it defines, by name.

    Raises UsageError if the file is missing, fails, defines no dialect of its own, or
    one with two ops of one name.
    """
    module = _run_file(path)
    found = [value for value in vars(module).values() if isinstance(value, Dialect)]
    dialects = {d.name: d for d in found if _is_of_module(d, module)}
    for dialect in dialects.values():
        names = [op.name for op in dialect.operations]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(f"{path}: two ops are called '{twice}'; rename one")
    if not dialects:
        raise UsageError(
            f"{path}: a dialect plug-in must define a Dialect with an op, attribute or "
            "type of its own"
        )
    return dialects


def _is_of_module(dialect: Dialect, module: ModuleType) -> bool:
    """Return whether a module has defined a part of a dialect, not only imported it."""
    parts = (*dialect.operations, *dialect.attributes)
    return any(part.__module__ == module.__name__ for part in parts)


@cache
def _run_file(path: str) -> ModuleType:
    if not Path(path).is_file():
        what = "a folder" if Path(path).is_dir() else "no such file"
        raise UsageError(f"{path}: {what}; a plug-in is a Python file (.py)")
    name = f"comet_plugin_{Path(path).stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: a plug-in must be a Python file (.py)")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = next(
            (
                f.lineno
                for f in reversed(extract_tb(error.__traceback__))
                if f.filename == path or f.filename == str(Path(path).resolve())
            ),
            getattr(error, "lineno", None),
        )
        raise UsageError(
            f"{path}:{line or 1}: the plug-in fails: {type(error).__name__}: {error}"
        ) from error
    return module
