"""How often garbage is collected while comet works."""

import gc
from collections.abc import Iterator

import pytest
from paths import HARDWARE, SAMPLES
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import comet
from comet.garbage import SELDOM, seldom_collected
from comet.passes.attach_hardware import AttachHardwarePass

OFTEN = (2000, 10, 10)


@pytest.fixture(autouse=True)
def often_collected() -> Iterator[None]:
    """Run a test with thresholds as those of CPython."""
    before = gc.get_threshold()
    gc.set_threshold(*OFTEN)
    yield
    gc.set_threshold(*before)


def test_a_compilation_collects_seldom_and_restores(monkeypatch: pytest.MonkeyPatch):
    during: list[tuple[int, int, int]] = []
    apply = AttachHardwarePass.apply

    def watched(self: AttachHardwarePass, ctx: Context, op: ModuleOp) -> None:
        during.append(gc.get_threshold())
        apply(self, ctx, op)

    monkeypatch.setattr(AttachHardwarePass, "apply", watched)
    comet.compile(f"{SAMPLES}/gemm.mlir", f"{HARDWARE}/edge.yaml", "decompose")
    assert during == [SELDOM]
    assert gc.get_threshold() == OFTEN


def test_thresholds_are_restored_after_an_error():
    with pytest.raises(comet.CometError):
        comet.compile("func.func", f"{HARDWARE}/edge.yaml")
    assert gc.get_threshold() == OFTEN


def test_inner_uses_restore_nothing():
    with seldom_collected():
        with seldom_collected():
            pass
        assert gc.get_threshold() == SELDOM
    assert gc.get_threshold() == OFTEN
