"""The hardware samples as IR and as numbers."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from paths import HARDWARE

from comet.codegen.comet.arch import read_arch
from comet.cost.from_ir.gpus import device_of
from comet.cost.gpu.device import Device
from comet.dialects.arch import SystemOp


def system_of(name: str) -> SystemOp:
    """Return the system of a hardware sample."""
    text = (HARDWARE / f"{name}.yaml").read_text()
    return read_arch(text, f"{name}.yaml")


def with_figures(gpu: Device, **figures: object) -> Device:
    """Return a GPU with other figures, whichever of its parts has each."""
    found, missing = _with_figures(gpu, figures)
    assert not missing, f"a GPU has no {missing}"
    return found


def _with_figures(part: Any, figures: dict[str, object]) -> tuple[Any, set[str]]:
    """Return a part with those of the figures that it has, and the names of others."""
    missing, own = set(figures), dict[str, object]()
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name in figures:
            own[field.name] = figures[field.name]
        elif is_dataclass(value):
            own[field.name], left = _with_figures(value, figures)
            missing &= left
    return replace(part, **own), missing - own.keys()


H200 = device_of(system_of("h200x1"))
