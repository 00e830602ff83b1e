"""Whether the refusal of a program says where, by which pass, why, and the way out."""

from __future__ import annotations

import re
from dataclasses import fields

from fuzz_pipelines import passes
from xdsl.utils.arg_spec import parse_pipeline

PLACED = re.compile(r"in\.mlir:\d+:\d+: (?:(?:in @|')[^:]*: )?error: ([\w-]+): (.*)")
"""A refusal of a program: its location, the pass, and what it says."""
OF_OPTIONS = re.compile(r"comet-opt: error: (?:pass|target) '([\w-]+)': (.*)")
"""A refusal of options, whatever the program is."""
ADVISED = re.compile(r"(?<![:,])\b([a-z_]+)=")
"""An option that a way out names, and no part of a mesh axis, as in dim=N:cx=2,cy=2."""


def unclear(error: str, pipeline: str) -> str:
    """Say what a refusal of a right program lacks; empty if it lacks nothing."""
    found = PLACED.fullmatch(error) or OF_OPTIONS.fullmatch(error)
    if found is None:
        return "no location, or no pass"
    name, text = found.groups()
    if name not in passes():
        return f"there is no pass {name}"
    if "; " not in text:
        return "no way out"
    run = [name, *(spec.name for spec in parse_pipeline(pipeline))]
    known = {f.name for each in run if each in passes() for f in fields(passes()[each])}
    others = [o for o in ADVISED.findall(text.partition("; ")[2]) if o not in known]
    return f"{others[0]} is no option of {name}" if others else ""
