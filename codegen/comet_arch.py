"""The architecture file of a COMET set: YAML text to the `arch` dialect and back."""

from __future__ import annotations

from typing import cast

import yaml

from comet.codegen.comet_yaml import FileFormatError, located_yaml
from comet.dialects.arch import ArchError, SystemOp
from comet.dialects.arch_fields import Field
from comet.dialects.arch_yaml import fields_of_system, system_of_fields

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def read_arch(text: str, file: str = "arch.yaml", name: str = "arch") -> SystemOp:
    """
    Build the system that an architecture file describes.

    Raises FileFormatError if the file is no YAML or lacks what a system needs.
    """
    document = cast(Field, located_yaml(text, file, _LOADER))
    if not isinstance(document, dict):
        raise FileFormatError(f"{file}: a mapping is expected here")
    try:
        return system_of_fields(name, document)
    except ArchError as error:
        raise FileFormatError(f"{file}: {error}") from error


def write_arch(system: SystemOp) -> str:
    """Return the text of the architecture file, fields and their order kept."""
    fields = fields_of_system(system)
    return str(yaml.dump(fields, Dumper=_DUMPER, sort_keys=False))
