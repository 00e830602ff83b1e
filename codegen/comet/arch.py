"""The architecture file of a COMET set: YAML text to the `arch` dialect and back."""

from __future__ import annotations

import yaml
from xdsl.dialects.builtin import StringAttr

from comet.codegen.comet.yaml import DUMPER
from comet.dialects.arch import LEFT_OUT, ArchError, SystemOp
from comet.dialects.arch.yaml import fields_of_system, system_of_fields
from comet.hardware_file import read_hardware_text
from comet.yaml_file import FileFormatError


def read_arch(text: str, file: str) -> SystemOp:
    """
    Build the system of an architecture file.

    Raises FileFormatError with file and line, as `read_hardware_text` does.
    """
    fields = read_hardware_text(text, file)
    try:
        return system_of_fields("arch", fields)
    except ArchError as error:
        raise FileFormatError(f"{file}: {error}") from error


def write_arch(system: SystemOp) -> str:
    """
    Return the text of the architecture file, fields and their order kept.

    A comment says which instances of the machine are left out, if any are.
    """
    comment = "".join(f"# {text}\n" for text in left_out(system))
    fields = fields_of_system(system)
    return comment + str(yaml.dump(fields, Dumper=DUMPER, sort_keys=False))


def left_out(system: SystemOp) -> tuple[str, ...]:
    """Return a sentence if instances of the machine are left out."""
    noted = system.attributes.get(LEFT_OUT)
    return (noted.data,) if isinstance(noted, StringAttr) else ()
