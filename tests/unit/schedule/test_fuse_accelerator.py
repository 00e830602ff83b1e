"""`fuse` on accelerators: levels, nests, combiners, and what it rejects."""

from pathlib import Path

import pytest
from accelerators import attached
from covering import one_of
from paths import HARDWARE
from programs import graph_text
from semantics import assert_same_meaning, parse_module, run_passes
from tile_trees import fused, only_function, ops_of
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import attached_system
from comet.dialects.collective import AllReduceOp, CollectiveOp
from comet.dialects.compound import CastOp, ContractOp, MapOp, ReduceOp
from comet.dialects.compound.dims import level_of
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.memory_chain import memory_chain


def crossed(module: ModuleOp, name: str) -> set[str | None]:
    """Return the levels at which values of a name live outside of leaves."""
    nodes = ops_of(module, NodeOp)
    values = [v for op in nodes for v in (*op.outs, *op.ins)]
    return {level_of(v) for v in values if v.name_hint == name}


@pytest.mark.parametrize(
    ("strategy", "levels"),
    [
        ("none", {"DRAM", "GB", "OB"}),
        ("partial", {"GB", "OB"}),
        ("full", {"OB"}),
    ],
)
def test_how_far_the_product_travels(strategy: str, levels: set[str]):
    assert crossed(fused(strategy), "c") == levels


def over_shared_buffer(module: ModuleOp) -> list[list[str]]:
    """Return the names of the ops in each temporal node over the shared buffer."""
    chain = memory_chain(attached_system(module))
    around = [
        op
        for op in ops_of(module, TemporalOp)
        if isinstance(above := op.parent_op(), SpatialOp)
        and tuple(row.axis for row in above.loops) == chain.cluster_axes
    ]
    kinds = (ContractOp, MapOp, ReduceOp)
    return [[op.name for op in n.walk() if isinstance(op, kinds)] for n in around]


@one_of(2)
@pytest.mark.parametrize("strategy", ["partial", "full"])
def test_products_may_have_loops_of_their_own(strategy: str):
    (shared,) = over_shared_buffer(fused(strategy))
    separate = fused(f"{strategy} loops=separate")
    assert over_shared_buffer(separate) == [shared[:1], shared[1:]]
    assert crossed(separate, "c") == crossed(fused(strategy), "c")
    assert_same_meaning(fused(), separate, "main")


ATTENTION = """
!t = tensor<1x2x8x4xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
  %o = compound.attention %q, %k, %v : (!t, !t, !t) -> !t
  func.return %o : !t
}
"""


def test_the_two_products_of_attention_have_loops_of_their_own():
    before = parse_module(ATTENTION)
    by_rows = "distribute{dim=H axes=cx},distribute{dim=M axes=kx,ky}"
    after = run_passes(before, spread(by_rows, "full loops=separate"))
    found = over_shared_buffer(after)
    assert [names.count("compound.contract") for names in found] == [1, 0, 1]
    assert_same_meaning(before, after, "f")


def test_where_nothing_shares_a_nest_with_products_own_loops_change_nothing():
    alone = fused("isolate_contractions loops=separate")
    assert alone.is_structurally_equivalent(fused("isolate_contractions"))


def test_row_statistics_go_to_the_shared_buffer():
    assert crossed(fused("full"), "m") == {"GB", "OB"}
    assert crossed(fused("none"), "m") == {"DRAM", "GB", "OB"}


def test_unfused_ops_have_a_nest_each():
    func = only_function(fused("none"))
    nests = [op for op in func.body.block.ops if isinstance(op, TemporalOp)]
    kinds = (ContractOp, MapOp, ReduceOp)
    for nest in nests:
        assert len([op for op in nest.walk() if isinstance(op, kinds)]) == 1
    assert len(nests) == 6


def test_fused_ops_share_one_nest():
    for strategy in ("partial", "full"):
        func = only_function(fused(strategy))
        assert len([op for op in func.body.block.ops if isinstance(op, NodeOp)]) == 1


def test_operands_of_products_live_in_the_buffers_that_feed_the_unit():
    (contract,) = ops_of(fused(), ContractOp)
    values = (contract.lhs, contract.rhs, contract.result)
    assert [level_of(value) for value in values] == ["IB", "WB", "OB"]


def test_a_reduction_over_cores_becomes_their_combiner():
    module = fused()
    assert [op.axis_names for op in ops_of(module, AllReduceOp)] == [("cx", "cy")] * 2
    combined = [
        str(c)
        for op in ops_of(module, SpatialOp)
        for c in op.combiners
        if c is not Combiner.NONE
    ]
    assert combined == ["max", "add"]


CAST_MAXIMUM = """
!l = tensor<32xf32, #compound.dims<L>>
func.func @f(%x: tensor<32x48xbf16, #compound.dims<L, N>>) -> !l {
  %most = compound.reduce max %x : tensor<32x48xbf16, #compound.dims<L, N>>
    -> tensor<32xbf16, #compound.dims<L>>
  %cast = compound.cast %most : tensor<32xbf16, #compound.dims<L>> -> !l
  %square = compound.map mult %cast, %cast : !l, !l -> !l
  func.return %square : !l
}
"""


def test_a_cast_follows_the_combiner_that_its_reduction_becomes():
    passes = f"{attached(16)},distribute{{dim=N axes=kx,ky}},insert-collectives"
    before = run_passes(parse_module(CAST_MAXIMUM), passes)
    tree = run_passes(before, "place-collectives,fuse{strategy=full}")
    assert not ops_of(tree, AllReduceOp)
    assert [str(op.result.type) for op in ops_of(tree, CastOp)] == [
        "tensor<32xf32, #compound.dims<L @OB>>"
    ]
    assert_same_meaning(before, tree, "f")


def test_at_the_cores_all_reductions_stay_explicit():
    module = fused(place="at=OB")
    assert [op.axis_names for op in ops_of(module, AllReduceOp)] == [
        ("kx", "ky"),
        ("cx", "cy"),
    ] * 2
    combined = {c for op in ops_of(module, SpatialOp) for c in op.combiners}
    assert Combiner.MAX not in combined


def test_unused_axes_idle():
    pipeline = (
        f"{attached(16)},decompose{{accumulator=input}},"
        "distribute{dim=N axes=cx,kx},insert-collectives,place-collectives,"
        "fuse{strategy=full}"
    )
    module = run_passes(parse_module(graph_text("gemm_softmax", (6, 4, 8))), pipeline)
    rows = {(r.axis, r.factor) for op in ops_of(module, SpatialOp) for r in op.loops}
    assert rows == {("cx", 2), ("cy", 1), ("kx", 2), ("ky", 1)}


def test_dimensions_may_share_the_mesh():
    before = parse_module(graph_text("gemm_softmax", (8, 4, 16)))
    pipeline = (
        f"{attached(16)},decompose{{accumulator=input}},"
        "distribute{dim=M axes=cx,cy},distribute{dim=N axes=kx,ky},"
        "insert-collectives,place-collectives,fuse{strategy=full}"
    )
    after = run_passes(before, pipeline)
    assert_same_meaning(before, after, "main")
    assert not ops_of(after, CollectiveOp)


def test_what_a_gathers_root_computes_stays_with_the_gather():
    module = fused("none", place="kind=gather")
    (nest,) = [
        op
        for op in only_function(module).body.block.ops
        if isinstance(op, NodeOp) and op.outs[0].name_hint == "m"
    ]
    names = [op.name for op in nest.walk() if isinstance(op, CollectiveOp)]
    assert names == ["collective.gather", "collective.broadcast"]


def test_signature_and_reference_keep_their_shapes():
    module = fused()
    func = only_function(module)
    assert [level_of(arg) for arg in func.args] == ["DRAM", "DRAM"]
    assert_same_meaning(module, module, "main", after_name="main__reference")


def spread(text: str, strategy: str = "full") -> str:
    """Return the passes to a tree of ops that are spread as `text` says."""
    return (
        f"{attached(16)},decompose{{accumulator=input}},{text},insert-collectives,"
        f"place-collectives,fuse{{strategy={strategy}}}"
    )


def test_what_all_gather_every_instance_has_whole():
    before = parse_module(graph_text("gemm_softmax", (8, 4, 16)))
    after = run_passes(before, spread("distribute{dim=N axes=cx op=contract}"))
    assert_same_meaning(before, after, "main")


def test_rejects_ops_that_are_spread_differently():
    text = (
        "distribute{dim=M axes=cx op=contract},distribute{dim=N axes=cx skip=contract}"
    )
    module = parse_module(graph_text("gemm_softmax", (8, 4, 16)))
    with pytest.raises(PassFailedException, match=r"axis .cx. splits M and N"):
        run_passes(module, spread(text))


@pytest.mark.parametrize("strategy", ["isolate_contractions", "full"])
def test_rejects_a_mesh_that_the_hardware_does_not_span(strategy: str):
    placed = spread("distribute{dim=N axes=cx,cy,kx,ky}").rpartition(",")[0]
    module = run_passes(parse_module(graph_text("gemm_softmax", (8, 4, 16))), placed)
    text = str(module).replace('axes ["kx", "ky"]', 'axes ["kx", "kz"]')
    message = "mesh @.* kx = 2 at OB, ky = 2 at OB}, but the hardware has .* kz = 2 at"
    with pytest.raises(PassFailedException, match=message):
        run_passes(parse_module(text), f"fuse{{strategy={strategy}}}")


def test_the_chain_of_memories():
    chain = memory_chain(attached_system(fused()))
    assert (chain.root, chain.shared, chain.out) == ("DRAM", "GB", "OB")
    assert (chain.lhs, chain.rhs) == ("IB", "WB")
    assert (chain.cluster_axes, chain.core_axes) == (("cx", "cy"), ("kx", "ky"))


def test_rejects_another_hierarchy():
    text = graph_text("gemm_softmax", (8, 4, 16))
    hardware = 'attach-hardware{path="samples/hardware/h200x1.yaml"}'
    system = attached_system(run_passes(parse_module(text), hardware))
    with pytest.raises(
        PassFailedException,
        match="hardware @h200x1 is not a hierarchy that tile trees are built for",
    ):
        memory_chain(system)


def test_an_axis_of_one_instance_splits_nothing():
    """Also not the only dimension that a value has, which a node may reduce."""
    text = """
      !X = tensor<8x16xf16, #compound.dims<M, N>>
      !N = tensor<16xf16, #compound.dims<N>>
      func.func @main(%x: !X) -> !X {
        %m = compound.reduce max %x : !X -> !N
        %y = compound.map sub %x, %m : !X, !N -> !X
        func.return %y : !X
      }"""
    before = parse_module(text)
    after = run_passes(before, f"{attached(2)},fuse{{strategy=full}}")
    axes = {loop.axis for node in ops_of(after, SpatialOp) for loop in node.loops}
    assert axes == {"cx"}  # of 2 x 1 clusters with one core each
    assert_same_meaning(before, after, "main")
    run_passes(after, "tile,lower-to-comet")


def test_each_core_has_one_of_each_buffer(tmp_path: Path):
    """Cores with other columns would have other weights, but one buffer for these."""
    text = (HARDWARE / "edge.yaml").read_text()
    before, wb, after = text.partition("name: WB[0..3]")
    shared = before + wb.replace("0..3", "0..0") + after.replace("2, meshY: 2", "1", 1)
    (tmp_path / "edge.yaml").write_text(shared)
    attach = f'attach-hardware{{path="{tmp_path}/edge.yaml"}}'
    module = run_passes(parse_module(graph_text("gemm_softmax", (8, 4, 16))), attach)
    with pytest.raises(
        PassFailedException, match="@WB to have as many instances as @OB, one in each"
    ):
        memory_chain(attached_system(module))
