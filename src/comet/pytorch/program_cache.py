"""Programs as Triton modules, which a folder can keep for later processes."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

from xdsl.utils.arg_spec import parse_pipeline

from comet.api.functions import compile
from comet.api.versions import source_digest, versions
from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.pipeline import spelled
from comet.tools.diagnostics import CometError, errors_as_sentences


def ranks_of(pipeline: str) -> int | None:
    """
    Return the option `ranks` of a pipeline, an integer; None if it says no such number.

    Raises CometError for a text that is no pipeline.
    """
    with errors_as_sentences():
        passes = [*parse_pipeline(pipeline)]
    values = (value for each in passes for value in each.parameters.get("ranks", ()))
    return next((value for value in values if isinstance(value, int)), None)


def emitted(
    text: str,
    hardware: str,
    pipeline: str,
    folder: str | None = None,
    *,
    graph: bool = False,
) -> str:
    """
    Return the Triton module that a program becomes on a machine.

    With `graph` its launches will be replayed as a CUDA graph. With `folder` the module
    is read there, if a process has compiled the same program before. A file is named by
    the digest of all that decides about it: the program, the contents of the hardware
    file, the passes, the versions of packages, and the source of comet. Processes may
    share a folder. Raises CometError for a program that does not compile, and if the
    folder cannot be read or written.
    """
    attach = AttachHardwarePass(hardware, graph=graph or None)
    passes = f"{spelled([attach])},{pipeline}"
    if folder is None:
        return compile(text, pipeline=passes).emit("triton")
    try:
        machine = sha256(Path(hardware).read_bytes()).hexdigest()
        question = [text, machine, graph, pipeline, versions(), source_digest()]
        digest = sha256(json.dumps(question).encode()).hexdigest()
        file = Path(folder) / f"{digest}.py"
        if not file.exists():
            _write(file, compile(text, pipeline=passes).emit("triton"))
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise CometError(f"{error.filename}: {error.strerror}") from error


def _write(file: Path, text: str) -> None:
    """Write a file at once, so that no other process reads a part of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=file.parent, suffix=".part", delete=False
    ) as part:
        part.write(text)
    os.replace(part.name, file)
