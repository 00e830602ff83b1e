"""Which of the two kinds of hardware a pipeline compiles for."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp, attached_system


def attached_accelerator(pass_name: str, module: ModuleOp) -> SystemOp:
    """Return the attached hardware; raises an error if there is none, or a GPU."""
    system = attached_system(module)
    require_accelerator(pass_name, system)
    return system


def attached_gpu(pass_name: str, module: ModuleOp) -> SystemOp:
    """Return the attached hardware; raises an error if there is none, or no GPU."""
    system = attached_system(module)
    require_gpu(pass_name, system)
    return system


def require_accelerator(pass_name: str, system: SystemOp) -> None:
    """Raise PassFailedException if `system` is a GPU's hardware."""
    if system.gpu is not None:
        raise PassFailedException(
            f"{pass_name}: hardware @{system.system_name} is a GPU; run "
            "triton-distributed, or attach an accelerator's hardware file"
        )


def require_gpu(pass_name: str, system: SystemOp) -> None:
    """Raise PassFailedException if `system` has no figures of a GPU."""
    if system.gpu is None:
        raise PassFailedException(
            f"{pass_name}: hardware @{system.system_name} is no GPU; run "
            "comet-accelerator, or attach a hardware file with a `comet: gpu` section"
        )
