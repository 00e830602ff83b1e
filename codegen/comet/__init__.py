"""The target `comet`: a module of the `comet` dialect leaves as the COMET files."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.target import Target

from comet.codegen.comet.arch import left_out, write_arch
from comet.codegen.comet.chain import (
    PLAN,
    Chain,
    chain_of,
    summary,
    write_plan,
)
from comet.codegen.comet.reader import FILES, read_files
from comet.codegen.comet.tool_rules import check_tool
from comet.codegen.comet.writer import write_constants, write_mapping, write_problem
from comet.cost.estimate import energy_scope
from comet.dialects.arch import SystemOp
from comet.dialects.comet import ConstantsOp, MappingOp, ProblemOp
from comet.dialects.cost import Figures, estimate_of
from comet.yaml_file import FileFormatError

OpT = TypeVar("OpT", bound=Operation)


@dataclass(frozen=True)
class CometTarget(Target):
    """
    Emit the COMET files of a module that `lower-to-comet` has produced.

    ```sh
    comet-opt in.mlir -p '...' -t 'comet{dir="out"}'
    ```
    """

    name = "comet"

    dir: str | None = None
    """
    The folder to write to, completely or not at all; without it, one stream. Of a chain
    of mappings it gets the plan, and a numbered folder for each mapping.
    """

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        chain = chain_of(module)
        files = write_files(module) if chain is None else write_chain(chain)
        check_tool(module)
        for sentence in left_out(_only(module, SystemOp)):
            print(sentence, file=sys.stderr)
        if self.dir is None:
            output.write(join_files(files))
            return
        write_folder(Path(self.dir), files)
        if chain is None:
            what, figures = ", ".join(files), estimate_of(_only(module, MappingOp))
        else:
            what = f"{PLAN} and the folders 1 to {len(chain.mappings)}"
            figures = estimate_of(chain.func)
        print(f"wrote {what} into {self.dir}", file=sys.stderr)
        if chain is not None:
            print("\n".join(summary(chain)), file=sys.stderr)
        if figures is not None:
            print(headline(figures), file=sys.stderr)
            if figures.roofline is not None:
                print(impossible(figures.roofline), file=sys.stderr)


def impossible(roofline: float) -> str:
    """Say that a mapping takes less than its transfers of the root memory."""
    return (
        f"this is impossible: the transfers of the root memory take {roofline:,.0f} "
        "cycles, and the COMET tool loses stalls of reads"
    )


def headline(figures: Figures) -> str:
    """Return latency and energy of a mapping, and the model, in one line."""
    model = str(figures.model)
    parts = [f"model {model}: latency {figures.latency:,.0f} {figures.unit}"]
    if figures.energy is not None:
        parts.append(f"energy {figures.energy:,.0f} pJ {energy_scope(model)}")
    return ", ".join(parts)


def write_chain(chain: Chain) -> dict[str, str]:
    """
    Return the text of the plan of a chain, and of all files of its mappings, by name.

    Those of the first mapping are in the folder `1`, and so on. Raises
    DiagnosticException if a mapping is not lowered.
    """
    files = {PLAN: write_plan(chain)}
    for folder, module in chain.folders.items():
        mapping_files = write_files(module)
        files |= {f"{folder}/{name}": text for name, text in mapping_files.items()}
    return files


def write_files(module: ModuleOp) -> dict[str, str]:
    """
    Return the text of every file of the set, by name.

    Raises DiagnosticException if an op that the files mirror is missing.
    """
    texts = (
        write_arch(_only(module, SystemOp)),
        write_problem(_only(module, ProblemOp)),
        write_mapping(_only(module, MappingOp)),
        write_constants(_only(module, ConstantsOp)),
    )
    return dict(zip(FILES, texts, strict=True))


def _only(module: ModuleOp, kind: type[OpT]) -> OpT:
    found = [op for op in module.ops if isinstance(op, kind)]
    if len(found) != 1:
        raise DiagnosticException(
            f"target comet: the module has {len(found)} ops '{kind.name}' where one is "
            "needed; run the passes attach-hardware and lower-to-comet first"
        )
    return found[0]


def join_files(files: Mapping[str, str]) -> str:
    """Return the files as one text, each after a line `//--- NAME`."""
    return "".join(f"//--- {name}\n{text}" for name, text in files.items())


def split_files(text: str) -> dict[str, str]:
    """Undo `join_files`; text before the first separator is dropped."""
    parts = re.split(r"^//--- (\S+) *\r?\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def read_stream(stream: IO[bytes]) -> ModuleOp:
    """
    Read a file set in the form that `join_files` gives; the frontend `-f comet`.

    Raises FileFormatError for another text, and for a chain of mappings.
    """
    files = split_files(stream.read().decode("utf-8-sig"))
    if PLAN in files:
        raise FileFormatError(
            f"{PLAN}: this is a chain of mappings, and a module has the files of one; "
            "write it into folders, and read each of them with comet-cost --to-ir"
        )
    return read_files(files)


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """
    Write all files into `folder`, or none of them; the folder is made if needed.

    The texts are written to temporary files first, so that a full disk or a missing
    permission is found before the first old file is replaced.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".comet-", dir=folder))
        try:
            for name, text in files.items():
                (staging / name).parent.mkdir(exist_ok=True)
                (staging / name).write_text(text, encoding="utf-8")
            for name in files:
                (folder / name).parent.mkdir(exist_ok=True)
            for name in files:
                os.replace(staging / name, folder / name)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DiagnosticException(
            f"target comet: cannot write into '{folder}': {reason}"
        ) from error
