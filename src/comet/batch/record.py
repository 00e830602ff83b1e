"""An answer as text, to keep it in a file or to send it to another process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import cast

from comet.api.answer import Answer
from comet.api.program import installed_context, parsed
from comet.api.question import Question
from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.explore.certificate import read_certificate
from comet.passes.pipeline import spelled

FIELDS = tuple(
    field.name
    for field in fields(Answer)
    if field.name not in ("module", "proof", "pipeline")
)
"""The fields of an answer that are numbers and names."""


def written(answer: Answer) -> str:
    """Return an answer as JSON: its figures, mapped program and proof."""
    return json.dumps(
        {
            "figures": {name: getattr(answer, name) for name in FIELDS},
            "program": answer.mlir(),
            "proof": answer.certificate(),
        }
    )


def read(text: str, question: Question) -> Answer:
    """Return the answer to `question` in a text of `written`."""
    record = cast(dict[str, str], json.loads(text))
    figures = cast(dict[str, object], record["figures"])
    proof = read_certificate(record["proof"], "the proof of a kept answer")
    hardware = spelled((AttachHardwarePass(question.hardware.name),))
    return cast(Callable[..., Answer], Answer)(
        **figures,
        pipeline=f"{hardware},{proof.pipeline}",
        module=parsed(record["program"], question.program.name, installed_context()),
        proof=proof,
    )
