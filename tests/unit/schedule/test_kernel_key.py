"""What a trial of a kernel found holds for equal kernels, and for no others."""

import re
from collections.abc import Hashable

import pytest
from covering import one_of
from forgetting import forget_choices, forget_kernels
from gpu_graphs import GRAPHS, H200, SOFTMAX
from semantics import parse_module, run_passes

from comet.passes.analysis.functions import compute_functions
from comet.passes.schedule.fuse.gpu import choice, trial
from comet.passes.schedule.fuse.gpu.groups import elementary_ops, partition_of
from comet.passes.schedule.fuse.gpu.kernel_key import kernel_key
from comet.passes.schedule.fuse.gpu.plan import plan_kernel
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.search import session
from comet.passes.search.record import Choice

KERNEL = SOFTMAX.format(M=64, N=48, K=32)
FULL, LOOPS = Strategy("full", full_rows=True), Strategy("partial")


def key(text: str, form: Strategy = FULL, passes: str = "decompose,stream") -> Hashable:
    """Return the key of the only kernel of a function."""
    (func,) = compute_functions(run_passes(parse_module(text), f"{H200},{passes}"))
    (group,) = partition_of(elementary_ops(func), form)
    assert isinstance(group, tuple)
    return kernel_key(plan_kernel(form, group, (*group[-1].results,)))


@pytest.mark.parametrize("form", [FULL, LOOPS])
def test_kernels_of_copies_are_equal(form: Strategy):
    assert key(KERNEL, form) == key(KERNEL, form)


@pytest.mark.parametrize(
    ("text", "form", "passes"),
    [
        (KERNEL, LOOPS, "decompose,stream"),
        (KERNEL, FULL, "decompose"),
        (KERNEL, FULL, "decompose{accumulator=input},stream"),
        (KERNEL, FULL, "decompose,stream,use-exp2{exp=exp2}"),
        (KERNEL.replace("48", "56"), FULL, "decompose,stream"),
        (KERNEL.replace("f16", "f32"), FULL, "decompose,stream"),
    ],
    ids=["loops", "ops", "accumulator", "exp2", "extent", "element"],
)
def test_other_kernels_differ(text: str, form: Strategy, passes: str):
    assert key(text, form, passes) != key(KERNEL)


def fused(text: str, options: str = "") -> tuple[str, list[Choice]]:
    """Return what `fuse` makes, and its choices."""
    with session() as current:
        module = run_passes(parse_module(text), f"{H200},fuse{{{options}}}")
        return str(module), current.choices


@one_of(4)
@pytest.mark.parametrize("name", GRAPHS)
def test_known_kernels_give_the_same_choices(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    known = forget_kernels(monkeypatch)
    first = fused(GRAPHS[name])
    assert known
    forget_choices(monkeypatch)
    monkeypatch.setattr(trial, "best_tiling", None)
    monkeypatch.setattr(trial, "lower_kernel", None)
    assert fused(GRAPHS[name]) == first


@one_of(4)
@pytest.mark.parametrize("name", GRAPHS)
def test_kernels_are_known_under_other_names(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    renamed = re.sub(r"%(\w+)", r"%\1_1", GRAPHS[name])
    forget_kernels(monkeypatch)
    first = fused(renamed)
    forget_kernels(monkeypatch)
    fused(GRAPHS[name])
    monkeypatch.setattr(trial, "best_tiling", None)
    monkeypatch.setattr(trial, "lower_kernel", None)
    assert fused(renamed) == first


AUTO = "strategy=auto narrow=auto"


@one_of(4)
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("options", ["", "strategy=full", AUTO])
def test_equal_functions_are_searched_once(
    name: str, options: str, monkeypatch: pytest.MonkeyPatch
):
    forget_kernels(monkeypatch)
    first = fused(GRAPHS[name], options)
    monkeypatch.setattr(choice, "partitions_by_priority", None)
    monkeypatch.setattr(choice, "cheapest", None)
    assert fused(GRAPHS[name], options) == first


@pytest.mark.parametrize("options", ["strategy=full", AUTO])
def test_with_other_options_a_function_is_searched_again(
    options: str, monkeypatch: pytest.MonkeyPatch
):
    forget_kernels(monkeypatch)
    expected = fused(GRAPHS["attention"], options)
    forget_kernels(monkeypatch)
    fused(GRAPHS["attention"])
    assert fused(GRAPHS["attention"], options) == expected


def test_few_kernels_are_remembered(monkeypatch: pytest.MonkeyPatch):
    known = forget_kernels(monkeypatch)
    expected = fused(GRAPHS["attention"])
    assert len(known) > 2
    known.clear()
    forget_choices(monkeypatch)
    monkeypatch.setattr(trial, "MOST_KNOWN", 2)
    assert fused(GRAPHS["attention"]) == expected
    assert len(known) == 2
