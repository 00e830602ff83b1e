"""Loads passes from a Python file that is not installed (`--load-pass-plugin`)."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

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


def _run_file(path: str) -> ModuleType:
    if not Path(path).is_file():
        what = "a folder" if Path(path).is_dir() else "no such file"
        raise UsageError(f"{path}: {what}; a pass plug-in is a Python file (.py)")
    name = f"comet_pass_plugin_{Path(path).stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: a pass plug-in must be a Python file (.py)")
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
            f"{path}:{line or 1}: the pass plug-in fails: "
            f"{type(error).__name__}: {error}"
        ) from error
    return module
