"""Calls of Triton's language that are replayed are as good as those that are made."""

import json
import os
import subprocess
import sys

from paths import SUPPORT

SCRIPT = SUPPORT / "replay_cases.py"


def test_replayed_calls_give_what_triton_gives():
    """For each case with several data: results, types, and whether it raises."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=dict(os.environ, TRITON_INTERPRET="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["differ"] == []
    assert report["right"] > 700
