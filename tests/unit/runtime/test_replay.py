"""Calls of Triton's language that are replayed are as good as those that are made."""

import json

from paths import SUPPORT
from torch_python import run_python

SCRIPT = SUPPORT / "replay_cases.py"


def test_replayed_calls_give_what_triton_gives():
    """For each case with several data: results, types, and whether it raises."""
    done = run_python([SCRIPT], {"TRITON_INTERPRET": "1"})
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["differ"] == []
    assert report["right"] > 700
