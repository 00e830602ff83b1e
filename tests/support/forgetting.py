"""Searches that begin anew, as if nothing had been compiled before."""

from collections.abc import Hashable, Sequence

import pytest

from comet.cost.gpu.taxes import PlanTime
from comet.passes.dataflow.launches import LaunchTimes
from comet.passes.graph.split import choose
from comet.passes.pipelines.triton_distributed import best_plans
from comet.passes.schedule.fuse.gpu import choice, trial
from comet.passes.schedule.fuse.gpu.fused import Chosen
from comet.passes.search.answers import Answers
from comet.recent import Recent

Kernels = dict[Hashable, trial.Known]


def forget_kernels(monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """Forget what is known of kernels and functions; return what will be of kernels."""
    known: Kernels = {}
    monkeypatch.setattr(trial, "_KNOWN", known)
    monkeypatch.setattr(trial, "_LAUNCHES", Recent[str, LaunchTimes](1))
    forget_choices(monkeypatch)
    return known


def forget_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what was chosen for functions, and which times decided it."""
    monkeypatch.setattr(choice, "_CHOSEN", Answers[Chosen](choice.MOST_CHOSEN))
    fastest = Answers[Sequence[int]](choose.MOST_REMEMBERED)
    monkeypatch.setattr(choose, "_FASTEST", fastest)
    times = Answers[PlanTime](best_plans.MOST_TIMED)
    monkeypatch.setattr(best_plans, "_TIMES", times)
