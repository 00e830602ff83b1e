"""`place-collectives`: meaning, levels, kinds, algorithms, and what it rejects."""

from collections.abc import Mapping

import pytest
from covering import one_of
from programs import MESHES, ODD_SIZES, graph_text, mesh_text
from semantics import assert_same_meaning, parse_module, run_passes
from tile_trees import only_function
from xdsl.dialects.builtin import BoolAttr, DictionaryAttr, ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.accelerator.tool.network import tool_cost
from comet.cost.collectives.algorithms import (
    Fabric,
    Hierarchy,
    cheapest,
    collective_time,
    switch,
)
from comet.cost.collectives.formulas import (
    CollectiveTraffic,
    exchange_cycles,
)
from comet.cost.from_ir.hardware import hardware_of
from comet.dialects.arch import attached_system
from comet.dialects.collective import CollectiveOp
from comet.dialects.compound.dims import names_of
from comet.dialects.cost import estimate_of
from comet.kinds import CollectiveKind

GRID = MESHES[4]
SPMD = "decompose,distribute{{dim=N axes={axes}}},insert-collectives"
H200 = 'attach-hardware{path="samples/hardware/h200x8.yaml"},'
MI300 = 'attach-hardware{path="samples/hardware/mi300x8.yaml"},select-ranks{ranks=2},'


def spmd(sizes: tuple[int, ...], axes: Mapping[str, int]) -> ModuleOp:
    """Return gemm_softmax with N over all axes, at the SPMD level."""
    module = parse_module(mesh_text(axes) + graph_text("gemm_softmax", sizes))
    return run_passes(module, SPMD.format(axes=",".join(axes)))


def places(module: ModuleOp) -> list[tuple[str, tuple[str, ...], str]]:
    """Return (name, axes, "FROM-TO") of the collectives of the first statistic."""
    found = [op for op in module.walk() if isinstance(op, CollectiveOp)]
    return [
        (
            op.name.removeprefix("collective."),
            op.axis_names,
            "-".join(lv.data for lv in (op.from_level, op.to_level) if lv is not None),
        )
        for op in found[: len(found) // 2]
    ]


@one_of(6)
@pytest.mark.parametrize(
    "kind",
    ["allreduce", "reduce_scatter_all_gather", "reduce_broadcast", "gather", "auto"],
)
@pytest.mark.parametrize("axes", MESHES, ids=str)
@pytest.mark.parametrize("sizes", [s for s in ODD_SIZES if s[0] > 7] + [(13, 2, 7)])
def test_meaning(sizes: tuple[int, int, int], axes: dict[str, int], kind: str):
    before = spmd(sizes, axes)
    for at in ("GB", "OB") if "cx" in axes else ("HBM",):
        after = run_passes(before, f"place-collectives{{kind={kind} at={at}}}")
        assert_same_meaning(before, after, "main")


def test_reductions_below_the_level_bring_their_result_one_up():
    before = spmd((8, 5, 32), dict(GRID))
    expected = [
        ("all_reduce", ("kx", "ky"), "OB-GB"),
        ("all_reduce", ("cx", "cy"), "GB-GB"),
    ]
    assert places(run_passes(before, "place-collectives{at=GB}")) == expected
    assert places(run_passes(before, "place-collectives")) == expected


def test_at_the_innermost_level_all_stay_explicit():
    after = run_passes(spmd((8, 5, 32), dict(GRID)), "place-collectives{at=OB}")
    assert places(after) == [
        ("all_reduce", ("kx", "ky"), "OB-OB"),
        ("all_reduce", ("cx", "cy"), "OB-OB"),
    ]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("reduce_scatter_all_gather", ["reduce_scatter", "all_gather"]),
        ("reduce_broadcast", ["reduce", "broadcast"]),
        ("gather", ["gather", "broadcast"]),
    ],
)
def test_the_kind_is_that_of_explicit_reductions(kind: str, expected: list[str]):
    before = spmd((8, 5, 32), dict(GRID))
    after = run_passes(before, f"place-collectives{{at=GB kind={kind}}}")
    names = [name for name, _, _ in places(after)]
    assert names == ["all_reduce", *expected]


def test_the_scattered_dimension_is_one_that_no_axis_splits():
    text = mesh_text(GRID) + graph_text("gemm_softmax", (32, 5, 8))
    pipeline = (
        "decompose,distribute{dim=N axes=cx},distribute{dim=M axes=cy},"
        "insert-collectives,place-collectives{kind=reduce_scatter_all_gather}"
    )
    with pytest.raises(PassFailedException, match="has no dimension to scatter"):
        run_passes(parse_module(text), pipeline)


def test_other_collectives_are_placed_too():
    text = mesh_text(GRID) + graph_text("gemm_softmax", (8, 5, 16))
    pipeline = (
        "decompose,distribute{dim=N axes=cx op=contract},insert-collectives,"
        "place-collectives{at=OB algorithm=ring}"
    )
    after = run_passes(parse_module(text), pipeline)
    (gather,) = [op for op in after.walk() if isinstance(op, CollectiveOp)]
    assert str(gather.algorithm) == "#collective<algorithm ring>"
    assert gather.from_level is not None
    assert gather.from_level.data == "OB"


def algorithms(module: ModuleOp) -> set[str]:
    found = (op for op in module.walk() if isinstance(op, CollectiveOp))
    return {str(op.algorithm.data) for op in found if op.algorithm is not None}


@pytest.mark.parametrize(("m", "expected"), [(8, "one_shot"), (2**22, "direct")])
def test_the_algorithm_depends_on_the_size(m: int, expected: str):
    module = parse_module(graph_text("gemm_softmax", (m, 5, 16)))
    pipeline = f"{H200}{SPMD.format(axes='rank')},place-collectives"
    assert algorithms(run_passes(module, pipeline)) == {expected}


def latencies(module: ModuleOp) -> list[float]:
    """The estimates of all collectives, in order."""
    found = [op for op in module.walk() if isinstance(op, CollectiveOp)]
    return [figures.latency for op in found if (figures := estimate_of(op)) is not None]


@pytest.mark.parametrize("m", [8, 2**22])
def test_auto_takes_the_cheapest_form(m: int):
    gpus = switch(8, 1e3, 450.0)
    module = parse_module(graph_text("gemm_softmax", (m, 5, 16)))
    pipeline = f"{H200}{SPMD.format(axes='rank')},place-collectives"
    whole = cheapest("all_reduce", gpus, 4 * m)[1]
    shares = sum(cheapest(k, gpus, 4 * m)[1] for k in ("reduce_scatter", "all_gather"))
    assert whole <= shares
    after = run_passes(module, f"{pipeline}{{kind=auto}}")
    assert latencies(after) == pytest.approx([whole, whole])
    forced = run_passes(module, f"{pipeline}{{kind=reduce_scatter_all_gather}}")
    assert sum(latencies(forced)) == pytest.approx(2 * shares)


def test_two_of_eight_gpus_have_one_link_to_each_other():
    module = parse_module(graph_text("gemm_softmax", (2**22, 5, 16)))
    passes = f"{MI300}{SPMD.format(axes='rank')},place-collectives"
    links = switch(2, 1.5e3, 448 / 7)
    taken = cheapest("all_reduce", links, 4 * 2**22)[1]
    assert latencies(run_passes(module, passes)) == pytest.approx([taken, taken])


EDGE = 'attach-hardware{path="samples/hardware/edge.yaml"},'
ALL = "cx,cy,kx,ky"


def before_placing() -> ModuleOp:
    """Return the row statistics of 64 rows, spread over the edge accelerator."""
    module = parse_module(graph_text("gemm_softmax", (64, 5, 32)))
    pipeline = f"decompose{{accumulator=input}},distribute{{dim=N axes={ALL}}}"
    return run_passes(module, f"{EDGE}{pipeline},insert-collectives")


def on_edge(options: str) -> ModuleOp:
    """Return the same with their collectives placed."""
    return run_passes(before_placing(), f"place-collectives{{{options}}}")


def test_accelerators_price_what_their_files_say():
    hardware = hardware_of(attached_system(on_edge("at=GB")))
    exchange = CollectiveTraffic(CollectiveKind.ALL_REDUCE, 128, 128, 4, 4, 4)
    cycles = exchange_cycles(exchange, hardware.level("GB"), 2, reduces=True)
    after = on_edge("at=GB kind=allreduce")
    assert latencies(after) == [cycles, cycles]
    assert algorithms(after) == set()


def test_each_model_has_its_price():
    """The tool counts the ports of all instances, and `ideal` has no network."""
    level = hardware_of(attached_system(on_edge("at=GB"))).level("GB")
    exchange = CollectiveTraffic(CollectiveKind.ALL_REDUCE, 128, 128, 4, 4, 4)
    tool = tool_cost(exchange, level, 2, "max").cycles
    paper = exchange_cycles(exchange, level, 2, reduces=True)
    assert 0 < paper < tool
    for model, cycles in (("paper", paper), ("tool", tool), ("ideal", 0)):
        assert latencies(on_edge(f"at=GB model={model}")) == [cycles, cycles]


@pytest.mark.parametrize(
    ("model", "supported", "expected"),
    [
        ("paper", False, "reduce_broadcast"),
        ("paper", True, "allreduce"),
        ("tool", False, "reduce_broadcast"),
        ("tool", True, "reduce_broadcast"),
    ],
)
def test_auto_takes_on_accelerators_what_the_files_make_cheapest(
    model: str, supported: bool, expected: str
):
    """
    Where the network reduces itself, nothing beats the all-reduce by `paper`; the tool
    lets each of four instances read the tiles of all.
    """
    module = before_placing()
    if supported:
        level = attached_system(module).level("GB")
        assert level.link is not None
        fields = {"reduction_support": BoolAttr.from_bool(True)}
        level.link = DictionaryAttr({**level.link.data, **fields})
    placed = f"place-collectives{{at=GB model={model} kind="
    times = {
        kind: sum(latencies(run_passes(module, f"{placed}{kind}}}")))
        for kind in ("allreduce", "reduce_broadcast", "auto")
    }
    cheapest_kind = min(("allreduce", "reduce_broadcast"), key=lambda k: times[k])
    assert cheapest_kind == expected
    assert times["auto"] == times[cheapest_kind]


@pytest.mark.parametrize("algorithm", ["ring", "tree", "recursive_doubling", "mesh2d"])
def test_an_algorithm_runs_on_the_mesh_of_its_level(algorithm: str):
    after = on_edge(f"at=GB algorithm={algorithm}")
    mesh = Fabric("mesh", (2, 2), 0.0, 7.0, 64.0)
    expected = collective_time("all_reduce", algorithm, mesh, 128)
    assert algorithms(after) == {algorithm}
    assert latencies(after) == pytest.approx([expected, expected])


def test_hierarchical_is_one_collective_over_both_levels():
    after = on_edge("at=OB algorithm=hierarchical")
    assert places(after) == [("all_reduce", tuple(ALL.split(",")), "OB-OB")]
    cores = Fabric("mesh", (2, 2), 0.0, 7.0, 64.0)
    clusters = Fabric("mesh", (2, 2), 14.0, 7.0, 64.0)
    groups = Hierarchy(cores, clusters)
    expected = collective_time("all_reduce", "hierarchical", groups, 128)
    assert latencies(after) == pytest.approx([expected, expected])
    assert_same_meaning(on_edge("at=OB"), after, "main")


def test_an_algorithm_that_does_not_run_there():
    module = parse_module(graph_text("gemm_softmax", (8, 5, 16)))
    pipeline = f"{H200}{SPMD.format(axes='rank')},place-collectives{{algorithm=mesh2d}}"
    with pytest.raises(PassFailedException, match="mesh2d of all_reduce does not run"):
        run_passes(module, pipeline)


@pytest.mark.parametrize("axis", ["rank", "cx"])
def test_an_algorithm_has_no_price_on_a_mesh_that_the_file_lacks(axis: str):
    """It has no axis of ranks, and 2 instances along cx."""
    mesh = f'collective.mesh @mesh {{{axis} = 4}} at {{{axis} = "GB"}}\n'
    module = parse_module(mesh + graph_text("gemm_softmax", (8, 5, 16)))
    pipeline = f"{SPMD.format(axes=axis)},{EDGE}place-collectives"
    after = run_passes(module, f"{pipeline}{{at=GB algorithm=ring}}")
    assert algorithms(after) == {"ring"}
    assert latencies(after) == []


def test_without_rates_the_algorithm_is_the_targets():
    after = run_passes(spmd((8, 5, 32), dict(GRID)), "place-collectives{kind=auto}")
    assert algorithms(after) == set()


@pytest.mark.parametrize("options", ["kind=tree", "algorithm=magic"])
def test_rejects_an_unknown_choice(options: str):
    with pytest.raises(ValueError, match="Incompatible types"):
        run_passes(spmd((3, 4, 9), {"rank": 2}), f"place-collectives{{{options}}}")


def one_cluster(op: str, sizes: tuple[int, ...], kind: str = "gather") -> ModuleOp:
    """Return `op` with its product on all clusters, and the rest on one."""
    module = parse_module(mesh_text(GRID) + graph_text(op, sizes))
    pipeline = (
        "decompose,distribute{dim=N axes=cx,cy,kx,ky op=contract},"
        "distribute{dim=N axes=kx,ky skip=contract},insert-collectives,"
        f"place-collectives{{at=GB kind={kind}}}"
    )
    return run_passes(module, pipeline)


def test_a_gather_leaves_the_rest_to_the_root():
    after = one_cluster("gemm_softmax", (8, 5, 32))
    found = [op for op in after.walk() if isinstance(op, CollectiveOp)]
    assert [
        (op.name.removeprefix("collective."), op.axis_names)
        for op in found
        if op.is_explicit
    ] == [("gather", ("cx", "cy"))]
    assert "collective.broadcast" not in {op.name for op in after.walk()}


def test_collectives_between_levels_are_the_borders_of_nodes():
    after = one_cluster("gemm_softmax", (8, 5, 32))
    found = [op for op in after.walk() if isinstance(op, CollectiveOp)]
    assert [
        (op.name.removeprefix("collective."), op.from_level.data, op.to_level.data)
        for op in found
        if op.from_level != op.to_level and op.from_level and op.to_level
    ] == [
        ("all_gather", "OB", "GB"),
        ("scatter", "GB", "OB"),
        ("all_reduce", "OB", "GB"),
        ("all_reduce", "OB", "GB"),
    ]


@one_of(2)
@pytest.mark.parametrize("kind", ["gather", "allreduce", "auto"])
@pytest.mark.parametrize("op", ["gemm_softmax", "gemm_layernorm"])
@pytest.mark.parametrize("sizes", [(3, 5, 16), (7, 2, 48), (5, 3, 13)])
def test_the_root_means_what_all_do(op: str, sizes: tuple[int, ...], kind: str):
    before = parse_module(mesh_text(GRID) + graph_text(op, sizes))
    after = one_cluster(op, sizes, kind)
    assert_same_meaning(run_passes(before, "decompose"), after, "main")


def test_what_is_gathered_has_a_name_of_its_own():
    after = one_cluster("gemm_layernorm", (8, 5, 32))
    main = only_function(after)
    assert [names_of(arg) for arg in main.args] == [
        ("M", "K"),
        ("K", "N"),
        ("N1",),
        ("N1",),
    ]
    returned = main.get_return_op()
    assert returned is not None
    assert names_of(returned.operands[0]) == ("M", "N1")


SHIFT = """
func.func @main(%a: tensor<4xf64, #compound.dims<N>>)
    -> tensor<4xf64, #compound.dims<N>> {
  %r = collective.spmd on @mesh ins(%a : tensor<4xf64, #compound.dims<N>>)
      sharded [{N = ["cx"]}] outs(tensor<4xf64, #compound.dims<N>>) sharded [{}] {
  ^bb0(%l: tensor<2xf64, #compound.dims<N>>):
    %g = collective.all_gather "N" %l on @mesh ["cx"]
        : tensor<2xf64, #compound.dims<N>> -> tensor<4xf64, #compound.dims<N>>
    %t = collective.send %g offset 1 wrap true on @mesh ["cx"]
        : tensor<4xf64, #compound.dims<N>>
        -> !collective.token<tensor<4xf64, #compound.dims<N>>>
    %b = collective.recv %t : !collective.token<tensor<4xf64, #compound.dims<N>>>
        -> tensor<4xf64, #compound.dims<N>>
    collective.yield %b : tensor<4xf64, #compound.dims<N>>
  }
  func.return %r : tensor<4xf64, #compound.dims<N>>
}
"""


def test_not_where_the_others_are_needed_again():
    before = parse_module(mesh_text(GRID) + SHIFT)
    after = run_passes(before, "place-collectives{at=GB kind=gather}")
    names = [op.name for op in after.walk() if isinstance(op, CollectiveOp)]
    assert names == ["collective.all_gather", "collective.send"]
    assert_same_meaning(before, after, "main")


def test_each_collective_has_a_kind_and_a_level():
    """The sum is reduced between cores, the maximum between clusters."""
    before = spmd((8, 4, 32), GRID)
    after = run_passes(
        before, 'place-collectives{each="allreduce GB; reduce_broadcast OB"}'
    )
    found = [op for op in after.walk() if isinstance(op, CollectiveOp)]
    assert {op.name for op in found if op.is_explicit and op.to_level is not None} == {
        "collective.all_reduce",
        "collective.reduce",
        "collective.broadcast",
    }
    levels = {
        (op.name, op.to_level.data)
        for op in found
        if op.is_explicit and op.to_level is not None
    }
    assert ("collective.all_reduce", "GB") in levels
    assert ("collective.reduce", "OB") in levels
    assert_same_meaning(before, after, "main")


@pytest.mark.parametrize(
    ("each", "message"),
    [
        ("allreduce GB", "'each' places 1 collectives, and the region has 2"),
        ("allreduce", "'allreduce' in 'each' is not of the form KIND LEVEL"),
        ("ring GB; ring GB", "'ring GB' in 'each' is not of the form KIND LEVEL"),
        ("auto GB; auto NO", "no axis of mesh @mesh is at level NO"),
    ],
)
def test_wrong_kinds_and_levels(each: str, message: str):
    with pytest.raises(PassFailedException, match=message):
        run_passes(spmd((8, 4, 32), GRID), f'place-collectives{{each="{each}"}}')
