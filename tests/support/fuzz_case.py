"""What `make fuzz` tries, and what came of it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from paths import ROOT

"""Where everything is run: passes name samples relative to it."""
FOLDER = "%folder"
"""Stands in passes for the folder that holds the files of a case."""
COST_FILES = ("arch", "problem", "mapping", "constants")


@dataclass(frozen=True)
class Case:
    """An input of a tool, and how it is run."""

    family: str
    files: Mapping[str, str]
    """Texts by file name; `in.mlir` or `in.yaml` is what comet-opt reads."""
    passes: str = ""
    target: str = "mlir"
    compiles: bool = False
    """Whether kernels are compiled for their GPU, not only read by Triton."""

    @property
    def input(self) -> str:
        """The name of the file that comet-opt reads; none where comet-cost runs."""
        return next((name for name in ("in.mlir", "in.yaml") if name in self.files), "")

    @property
    def text(self) -> str:
        """The text that comet-opt reads."""
        return self.files[self.input]

    def write(self, folder: Path) -> None:
        """Write the files."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            (folder / name).write_text(text, errors="surrogatepass")

    def arguments(self, folder: Path) -> list[str]:
        """Return the arguments of comet-opt, or of comet-cost, for the files there."""
        if not self.input:
            files = [(f"--{kind}_file", f"{folder}/{kind}.yaml") for kind in COST_FILES]
            return [part for pair in files for part in pair]
        language = ["-f", "comet"] if self.input == "in.yaml" else []
        passes = self.passes.replace(FOLDER, str(folder))
        file = str(folder / self.input)
        return [file, *language, "-p", passes, "-t", self.target]

    def command(self, folder: Path) -> str:
        """Return the shell command that runs the tool."""
        tool = "comet-opt" if self.input else "comet-cost"
        return shlex.join([tool, *self.arguments(folder)])

    def save(self, folder: Path) -> None:
        """Write the files, and how they are run."""
        self.write(folder)
        how: dict[str, object] = {
            "family": self.family,
            "passes": self.passes,
            "target": self.target,
        }
        how["compiles"] = self.compiles
        (folder / "case.json").write_text(json.dumps(how, indent=1) + "\n")


def load(folder: Path) -> Case:
    """Return the case that `Case.save` wrote."""
    how = json.loads((folder / "case.json").read_text())
    texts = {
        file.name: file.read_text(errors="surrogatepass")
        for file in sorted(folder.iterdir())
        if file.suffix in (".mlir", ".yaml")
    }
    compiles = how.get("compiles", False)
    return Case(how["family"], texts, how["passes"], how["target"], compiles)


Kind: TypeAlias = Literal[
    "accepted",
    "refused",
    "bug",
    "message",
    "invalid IR",
    "round trip",
    "wrong",
    "illegal file",
    "hang",
]
"""The first two are as it should be, all others are findings."""


@dataclass(frozen=True)
class Verdict:
    """What came of a case."""

    kind: Kind
    message: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether something is to be mended."""
        return self.kind not in ("accepted", "refused")

    @property
    def signature(self) -> str:
        """The message without what differs from case to case."""
        return f"{self.kind}: {general(self.message)}"


@dataclass(frozen=True)
class Result:
    """What a worker says of a case; findings come with their reduced input."""

    family: str
    seed: str
    verdict: Verdict
    case: Case | None = None
    seconds: float = field(default=0.0, compare=False)


PLACES = (
    (r"^comet-\w+: ", ""),
    (r"^\S*(in|arch|problem|mapping|constants|hw)\.(mlir|yaml)(:\d+)*:? ", ""),
    (r"^in @\S+, ('\S+' op)?( %\S+?)?: ", ""),
    (r"^'\S+' op( %\S+)?: ", ""),
    (r"^error: ", ""),
)
PARTS = (
    (r"\S*/(in|hw|arch)\.(mlir|yaml)", r"\1.\2"),
    (r"'[^']*'|\"[^\"]*\"", "'..'"),
    (r"[%@][\w.$-]+", "%.."),
    (r"(tensor|#?\w+\.\w+|array)<.*>", r"\1<..>"),
    (r"\b[A-Z]\d*(_\w+)?\b", "X"),
    (r"-?\d+(\.\d+)?(e[+-]?\d+)?", "0"),
    (r"X(, X)+( and X)?|X and X", "X"),
)


def general(message: str) -> str:
    """Return a message without place, names and numbers; of a bug, where it is."""
    if (
        found := re.search(r"a bug in comet.*?: (\w+): .*\((\S+)\);", message)
    ) is not None:
        return f"{found[1]} {found[2].removeprefix(f'{ROOT}/')}"
    for pattern, replacement in PLACES:
        message = re.sub(pattern, replacement, message)
    for pattern, replacement in PARTS:
        message = re.sub(pattern, replacement, message)
    return message[:160]
