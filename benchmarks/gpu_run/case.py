"""What is to be done on the GPU, case by case, and the file that lists it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args

Group: TypeAlias = Literal["machine", "correctness", "speed", "candidates", "ladder"]
GROUPS: tuple[Group, ...] = get_args(Group)

Task: TypeAlias = Literal["calibrate", "exchange", "check", "compare", "time"]
"""
calibrate: measure the rates of the machine. exchange: what it costs that programs wait
for each other. check: the module's own numpy reference. compare: a torch reference on
the GPU. time: alternatives in turns.
"""

Baselines: TypeAlias = Literal["none", "quick", "compiled", "all"]
"""quick: all but those that `torch.compile` takes a minute for, which are compiled."""

MANIFEST = "manifest.json"
MODULES = "modules"
"""The folder of the emitted modules, each called by the hash of its text."""

FORMAT = 2
"""Of the manifest and of the results; another number is another meaning."""

OURS = "comet"
"""The alternative that is comet's kernel, where there is one."""


@dataclass(frozen=True)
class Predicted:
    """What the cost model says of a module, in seconds."""

    eager: float
    """Its kernels launched one by one."""
    graph: float
    """Replayed from a captured graph."""


@dataclass(frozen=True)
class Case:
    """One thing to do, which is lost as a whole where its process dies."""

    id: str
    """Stable: the group, the task and what it is about, joined by slashes."""
    group: Group
    task: Task
    wave: int
    """Waves are run in order."""
    limit: float
    """Seconds after which the case is given up."""
    kind: str = ""
    """The op, as `gpu_device.references` and `gpu_device.baselines` call it."""
    about: str = ""
    """Sizes and ranks as tables show them."""
    extents: Mapping[str, int] = field(default_factory=dict[str, int])
    """The size of each dimension of the op."""
    dtype: str = ""
    ranks: int = 1
    seed: int = 0
    ragged: bool = False
    """Whether lengths are drawn from 1 to the most; else all are the most."""
    modules: Mapping[str, str] = field(default_factory=dict[str, str])
    """The file of each alternative that comet makes: by its name, or its pattern."""
    options: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, Mapping[str, object]]
    )
    """Those of `triton-distributed` that give each module, with tiles and fusion."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why there is no module, in the compiler's words."""
    inapplicable: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why a pattern has no meaning for the op, in the compiler's words."""
    same: Mapping[str, str] = field(default_factory=dict[str, str])
    """Forms that are not run, as their module is that of another alternative."""
    predicted: Mapping[str, Predicted] = field(default_factory=dict[str, Predicted])
    baselines: Baselines = "none"
    """What users of torch would run instead, and is timed beside it."""


@dataclass(frozen=True)
class Manifest:
    """All cases of a folder, what matters most first."""

    tiny: bool
    """Whether the sizes are for a dry run."""
    version: str
    """Of comet."""
    cases: tuple[Case, ...]

    def text(self) -> str:
        """Return the manifest as it is in its file."""
        fields = {"format": FORMAT, "tiny": self.tiny, "version": self.version}
        return json.dumps(fields | {"cases": [asdict(c) for c in self.cases]}, indent=1)

    @property
    def digest(self) -> str:
        """A hash of the text, which identifies the manifest."""
        return hashlib.sha256(self.text().encode()).hexdigest()[:16]


def manifest_in(folder: Path) -> Manifest:
    """Return what a folder is for; `ValueError` where it holds no such cases."""
    try:
        text = (folder / MANIFEST).read_text()
    except FileNotFoundError as error:
        raise ValueError(
            f"{folder} has no {MANIFEST}; write it with benchmarks/gpu.py emit"
        ) from error
    return manifest_of(text, folder)


def manifest_of(text: str, source: Path) -> Manifest:
    """Return what `Manifest.text` wrote; `ValueError` where its format is another."""
    fields = json.loads(text)
    if fields["format"] != FORMAT:
        raise ValueError(
            f"{source} has format {fields['format']}, and this program reads {FORMAT}; "
            "write it anew with benchmarks/gpu.py emit"
        )
    for case in fields["cases"]:
        predicted = case["predicted"].items()
        case["predicted"] = {name: Predicted(**each) for name, each in predicted}
    cases = tuple(Case(**case) for case in fields["cases"])
    return Manifest(fields["tiny"], fields["version"], cases)


def chosen(cases: Sequence[Case], groups: Sequence[str]) -> list[Case]:
    """Return the cases of some groups, or all where none is named."""
    return [case for case in cases if not groups or case.group in groups]
