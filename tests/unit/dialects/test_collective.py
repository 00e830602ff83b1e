"""Constructors of the collective dialect, and the analysis of SPMD regions."""

import pytest
from semantics import parse_module
from xdsl.dialects import test
from xdsl.dialects.builtin import ArrayAttr, IntAttr, ModuleOp, StringAttr, f16
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    BroadcastOp,
    CollectiveOp,
    GatherOp,
    RecvOp,
    ReduceScatterOp,
    ScatterOp,
    SendOp,
)
from comet.dialects.collective.analysis import transfer
from comet.dialects.collective.base import TokenType
from comet.dialects.collective.mesh import MeshOp, lookup_mesh
from comet.dialects.collective.spmd import (
    SpmdOp,
    YieldOp,
    sharding_attr,
    sharding_of,
    state_of_sharding,
)
from comet.dialects.collective.state import REPLICATED, State, States
from comet.dialects.compound import MapKind, MapOp, ReduceKind, ReduceOp
from comet.dialects.compound.dims import tensor

GLOBAL = tensor({"M": 8, "N": 12}, f16)
LOCAL = tensor({"M": 8, "N": 2}, f16)
ROWS = tensor({"M": 8}, f16)


def mesh() -> MeshOp:
    return MeshOp("m", {"x": 2, "y": 3}, {"x": "GB", "y": "OB"})


def test_mesh():
    op = mesh()
    op.verify()
    assert op.axis_extents == {"x": 2, "y": 3}
    assert op.axis_levels == {"x": "GB", "y": "OB"}
    assert op.size(["x", "y"]) == 6
    assert op.size([]) == 1
    assert MeshOp("m", {"rank": 8}).axis_levels == {}


def test_lookup_mesh():
    reduce = AllReduceOp(create_ssa_value(ROWS), "m", ["y"], kind=ReduceKind.ADD)
    ModuleOp([op := mesh(), reduce])
    assert lookup_mesh(reduce, "m") is op
    assert reduce.group_size == 3


def test_shardings_round_trip():
    sharding = {"N": ("x", "y"), "M": ("z",)}
    assert sharding_of(sharding_attr(sharding)) == sharding
    assert sharding_of(sharding_attr({})) == {}


@pytest.mark.parametrize(
    "attribute", [StringAttr("N"), ArrayAttr([StringAttr("x")]), IntAttr(1)]
)
def test_a_sharding_is_a_dictionary(attribute: Attribute):
    with pytest.raises(VerifyException, match=r"expected a sharding \{N = "):
        sharding_of(attribute)


def collectives(value: SSAValue) -> list[CollectiveOp]:
    half, axes = tensor({"M": 2, "N": 2}, f16), ["x", "y"]
    return [
        AllReduceOp(value, "m", axes, kind=ReduceKind.MAX),
        AllGatherOp(value, "m", axes, GLOBAL, dim="N"),
        ReduceScatterOp(value, "m", axes, half, kind=ReduceKind.ADD, dim="M"),
        BroadcastOp(value, "m", axes, root=5),
        GatherOp(value, "m", axes, GLOBAL, dim="N", root=5),
        ScatterOp(value, "m", axes, half, dim="M", root=5),
        AllToAllOp(
            value, "m", axes, tensor({"M": 2, "N": 12}, f16), split="M", concat="N"
        ),
        SendOp(value, "m", ["y"], TokenType(value.type), offset=-1, wrap=True),
    ]


@pytest.mark.parametrize("index", range(8))
def test_collective_constructors(index: int):
    source = test.TestOp(result_types=[LOCAL])
    op = collectives(source.results[0])[index]
    ModuleOp([mesh(), source, op]).verify()
    assert op.axis_names == (("y",) if isinstance(op, SendOp) else ("x", "y"))


def test_recv_constructor():
    source = test.TestOp(result_types=[LOCAL])
    send = SendOp(
        source.results[0],
        "m",
        ["x"],
        TokenType(LOCAL),
        offset=1,
        wrap=False,
    )
    receive = RecvOp(send.token)
    ModuleOp([mesh(), source, send, receive]).verify()
    assert receive.result.type == LOCAL


def test_spmd_constructor():
    body = Block(arg_types=[LOCAL])
    part = ReduceOp(ReduceKind.MAX, body.args[0], ROWS)
    whole = AllReduceOp(part.result, "m", ["x", "y"], kind=ReduceKind.MAX)
    body.add_ops([part, whole, YieldOp(whole.result)])
    source = test.TestOp(result_types=[GLOBAL])
    value = source.results[0]
    spmd = SpmdOp("m", [value], [{"N": ["x", "y"]}], [ROWS], [{}], Region(body))
    ModuleOp([mesh(), source, spmd]).verify()
    assert spmd.yielded == (whole.result,)
    assert spmd.boundary() == [
        (value, body.args[0], {"N": ("x", "y")}),
        (spmd.outs[0], whole.result, {}),
    ]


def test_states():
    state = state_of_sharding({"N": ("x", "y"), "M": ("z",)})
    assert state.splits("N") == ("x", "y")
    assert state.splits("K") == ()
    assert state.describe("x") == "sharded(N)"
    assert state.describe("w") == "replicated"
    assert State({}, {"x": "add"}).describe("x") == "partial(add)"


def test_transfer_of_a_reduction():
    value = create_ssa_value(LOCAL)
    op = ReduceOp(ReduceKind.ADD, value, ROWS)
    states = {value: state_of_sharding({"N": ("x",), "M": ("y",)})}
    assert transfer(op, states) == State({"y": "M"}, {"x": "add"})
    assert transfer(op, {value: REPLICATED}) == REPLICATED


def test_transfer_joins_operands():
    lhs, rhs = create_ssa_value(LOCAL), create_ssa_value(ROWS)
    op = MapOp(MapKind.ADD, [lhs, rhs], LOCAL)
    states = {lhs: state_of_sharding({"N": ("x",)}), rhs: REPLICATED}
    assert transfer(op, states) == State({"x": "N"}, {})


def test_a_gather_is_held_by_its_root():
    """What is computed from it too, until it is broadcast from that instance."""
    value, rows = create_ssa_value(ROWS), tensor({"M": 8, "P": 2}, f16)
    gather = GatherOp(value, "m", ["x"], rows, dim="P", root=1)
    reduce = ReduceOp(ReduceKind.ADD, gather.result, ROWS)
    broadcast = BroadcastOp(reduce.result, "m", ["x"], root=1)
    states: States = {value: State({}, {"x": "add"})}
    for op in (gather, reduce):
        states[op.results[0]] = transfer(op, states)
        assert states[op.results[0]].rooted == {("x",): 1}
    assert transfer(broadcast, states) == REPLICATED


def test_broadcast_keeps_what_is_partial_along_other_axes():
    value = create_ssa_value(ROWS)
    states = {value: State({}, {"y": "add"}, rooted={("x",): 0})}
    state = transfer(BroadcastOp(value, "m", ["x"], root=0), states)
    assert state == State({}, {"y": "add"})


def test_a_mesh_of_one():
    """Along an axis of one instance a shard is the whole; the names still count."""
    text = """
collective.mesh @one {x = 1}
!M = tensor<8xf16, #compound.dims<M>>
%a = "test.op"() : () -> !M
%r = collective.spmd on @one ins(%a : !M) sharded [{M = ["x"]}] outs(!M) sharded [{}] {
^bb0(%l: !M):
  collective.yield %l : !M
}
"""
    with pytest.raises(VerifyException, match="sharded"):
        parse_module(text)
    parse_module(text.replace("sharded [{}] {", 'sharded [{M = ["x"]}] {'))
