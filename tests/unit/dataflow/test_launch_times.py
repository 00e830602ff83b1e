"""Times of launches hold for equal nodes of other functions, on the same GPU."""

import pytest
from forgetting import forget_kernels
from gpu_graphs import H200
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp

from comet.cost.from_ir.gpus import device_of
from comet.cost.gpu import shared_launch
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.schedule import SpatialOp
from comet.passes.dataflow import launches
from comet.passes.dataflow.launches import LaunchPrices, LaunchTimes, TiledNode
from comet.passes.schedule.fuse.gpu.trial import Trials

PRODUCTS = """
!x = tensor<64x256xf16, #compound.dims<M, K>>
!w = tensor<256x64xf16, #compound.dims<K, N>>
!y = tensor<64x64xf16, #compound.dims<M, N>>
func.func @f(%x: !x, %v: !w, %w: !w) -> (!y, !y) {
  %a = compound.contract %x, %v : !x, !w -> !y
  %b = compound.contract %x, %w : !x, !w -> !y
  func.return %a, %b : !y, !y
}
"""


@pytest.fixture
def module() -> ModuleOp:
    """Two products, each tiled as a kernel of its own."""
    return run_passes(parse_module(PRODUCTS), f"{H200},fuse{{strategy=none}},tile")


def nodes_of(module: ModuleOp) -> tuple[TiledNode, ...]:
    """Return the nodes of kernels."""
    system = attached_system(module)
    gpu, levels = device_of(system), gpu_levels(system)
    found = [op for op in module.walk() if isinstance(op, SpatialOp)]
    tiled = (TiledNode.of(op, levels, gpu) for op in found)
    return tuple(node for node in tiled if node is not None)


def test_launches_of_the_same_nodes_are_timed_once(
    module: ModuleOp, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, times = nodes_of(module), LaunchTimes(device_of(attached_system(module)))
    assert len(both) == 2
    first, again = (LaunchPrices[TiledNode](times, _alone) for _ in range(2))
    expected = first.best(both), first.saved(both[:1], both[1:])
    monkeypatch.setattr(launches, "running_time", None)
    assert (again.best(both), again.saved(both[:1], both[1:])) == expected
    with pytest.raises(TypeError):
        again.best(both[::-1])


def test_what_the_programs_of_a_node_compute_is_timed_once(
    module: ModuleOp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of a large graph are tried in a hundred launches each."""
    both, times = nodes_of(module), LaunchTimes(device_of(attached_system(module)))
    expected, _ = times.fastest(both)
    monkeypatch.setattr(shared_launch, "compute_time", None)
    found, _ = times.fastest(both[::-1])
    assert found.seconds == pytest.approx(expected.seconds)
    with pytest.raises(TypeError):
        LaunchTimes(device_of(attached_system(module))).fastest(both)


def _alone(node: TiledNode) -> tuple[TiledNode]:
    return (node,)


def test_each_gpu_has_its_own_times(
    module: ModuleOp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of several ranks have no subtiles, as on another GPU."""
    forget_kernels(monkeypatch)
    system = attached_system(module)
    one, same, ranks = (
        Trials(system, several_ranks=several) for several in (False, False, True)
    )
    assert one.launches.times is same.launches.times
    assert one.launches.times is not ranks.launches.times
