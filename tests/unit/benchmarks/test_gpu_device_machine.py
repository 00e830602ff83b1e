"""benchmarks/gpu_device: what machine it is."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gpu_device.machine import QUERIES, asked_of_nvidia_smi, describe


def test_a_description_is_json() -> None:
    facts = describe()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["torch"] == torch.__version__
    assert facts["numpy"] == np.__version__
    assert facts["name"]
    assert set(QUERIES) <= set(facts)


def nvidia_smi(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program of this name first in the path."""
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_nvidia_smi_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "570.86, 345, 1980, 3201, 700.00, [N/A]"
    nvidia_smi(f'echo "{answer}"', tmp_path, monkeypatch)
    assert asked_of_nvidia_smi("GPU-1") == {
        "driver": 570.86,
        "clock_mhz": 345.0,
        "clock_max_mhz": 1980.0,
        "memory_clock_mhz": 3201.0,
        "power_limit_w": 700.0,
        "temperature_c": "[N/A]",
        "nvidia_smi": "found",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('echo "no devices"; exit 6', "failed: no devices"),
        ("exit 1", "failed: no output"),
        ("echo 1, 2", "failed: 1, 2"),
    ],
)
def test_nvidia_smi_may_fail(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia_smi(text, tmp_path, monkeypatch)
    facts = asked_of_nvidia_smi("GPU-1")
    assert facts.pop("nvidia_smi") == said
    assert facts == dict.fromkeys(QUERIES)


def test_nvidia_smi_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert str(asked_of_nvidia_smi("GPU-1")["nvidia_smi"]).startswith("not usable: ")
