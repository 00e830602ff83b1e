"""What worker processes are asked; whoever asks imports neither torch nor Triton."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gpu_run.case import MODULES, Case
from gpu_run.results import Alternative, Facts, Result


@dataclass(frozen=True)
class Order:
    """A case, and where and how it is to be done."""

    case: Case
    folder: Path
    dry_run: bool
    left_out: Mapping[str, str]
    """Why alternatives are not to be tried, by their name."""
    rounds: int = 30
    """How often each alternative is timed, after some times for warm-up."""

    @property
    def device(self) -> str:
        """Where tensors are, as torch calls it."""
        return "cpu" if self.dry_run else "cuda"

    @property
    def lengths(self) -> Literal["full", "ragged"]:
        """How lengths are drawn."""
        return "ragged" if self.case.ragged else "full"

    def modules(self) -> dict[str, str]:
        """Return the paths of the modules that are to be tried, by alternative."""
        return {
            name: str(self.folder / MODULES / file)
            for name, file in self.case.modules.items()
            if name not in self.left_out
        }


def machine() -> Facts:
    """Return what machine this is, and its versions."""
    from gpu_device.machine import describe

    return {**describe()}


def compile_module(path: Path) -> int:
    """Compile what a module launches; return the number of launches."""
    from gpu_run.compiling import compiled_launches

    return compiled_launches(path)


def perform(order: Order) -> Result:
    """Do a case; what does not fit the machine is a result, all else is raised."""
    if order.case.task == "calibrate":
        from gpu_device.calibrate import measure

        return Result(calibration=measure(order.dry_run).as_json())
    if order.case.task == "exchange":
        from gpu_device.exchanges import measure

        return Result(exchanges=measure(order.dry_run))
    done = _done(order)
    if not order.dry_run:
        _give_back()
    missing = {**order.case.refused, **order.left_out}
    absent = {name: Alternative(missing=reason) for name, reason in missing.items()}
    return Result(alternatives=done | absent)


def _give_back() -> None:
    """Give memory of the GPU back, so that the next case of this process finds it."""
    import torch

    torch.compiler.reset()
    gc.collect()
    torch.cuda.empty_cache()


def _done(order: Order) -> dict[str, Alternative]:
    if order.case.task == "time":
        from gpu_run.timed import timed

        return timed(order)
    from gpu_run.checked import checked

    return checked(order)
