"""The hardware samples as IR and as numbers."""

from paths import HARDWARE

from comet.codegen.comet.arch import read_arch
from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import SystemOp


def system_of(name: str) -> SystemOp:
    """Return the system of a hardware sample."""
    text = (HARDWARE / f"{name}.yaml").read_text()
    return read_arch(text, f"{name}.yaml")


H200 = device_of(system_of("h200x1"))
