"""Constructors and pure functions of the compound dialect."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semantics import comet_context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IntegerType,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i32,
)
from xdsl.ir import Block, Region
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from comet.dialects.compound import (
    CastOp,
    ContractOp,
    ExtentOp,
    FillOp,
    FoldOp,
    IndexOp,
    MapKind,
    MapOp,
    ReduceKind,
    ReduceOp,
    RenameOp,
    YieldOp,
)
from comet.dialects.compound.dims import (
    DimsAttr,
    bytes_of,
    element_type_of,
    extents_of,
    level_of,
    merged_extents,
    names_of,
    tensor,
    with_element_type,
    with_extents,
    with_level,
)
from comet.dialects.compound.map import lowest_finite, scaled_number
from comet.dialects.compound.named.epilogue import GemmSoftmaxOp
from comet.dialects.compound.named.normalize import GemmLayernormOp
from comet.dialects.compound.pad import PaddingAttr, PadOp

MK = tensor({"M": 4, "K": 8}, f16)
KN = tensor({"K": 8, "N": 2}, f16)
MN = tensor({"M": 4, "N": 2}, f32)
M = tensor({"M": 4}, f32)

letters = st.lists(st.sampled_from("aZ_09"), min_size=1, max_size=5)
identifiers = letters.map("".join).filter(str.isidentifier)


@given(
    names=st.lists(identifiers, unique=True, max_size=4),
    level=st.none() | identifiers,
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_dims_print_and_parse(names: list[str], level: str | None):
    dims = DimsAttr(names, level)
    again = Parser(comet_context(), str(dims)).parse_attribute()
    assert again == dims
    assert isinstance(again, DimsAttr)
    assert [name.data for name in again.names] == names
    assert again.level == level


@pytest.mark.parametrize("name", ["1x", "a b", "", "M-N"])
def test_dims_are_identifiers(name: str):
    with pytest.raises(VerifyException, match="is not an identifier"):
        DimsAttr([name])


def test_dims_print():
    assert str(DimsAttr([])) == "#compound.dims<>"
    assert str(DimsAttr([], "OB")) == "#compound.dims<@OB>"
    assert str(DimsAttr(["M", "N"], "OB")) == "#compound.dims<M, N @OB>"


@pytest.mark.parametrize("number", [0.0, 1e30, -1e30, 1e-9, -float("inf")])
def test_paddings_print_and_parse(number: float):
    padding = PaddingAttr(number, {"N": 3})
    assert Parser(comet_context(), str(padding)).parse_attribute() == padding


def test_reading_a_type():
    type_ = tensor([("M", 4), ("N", 2)], f32, "OB")
    value = create_ssa_value(type_)
    assert names_of(value) == names_of(type_) == ("M", "N")
    assert extents_of(value) == {"M": 4, "N": 2}
    assert list(extents_of(value)) == ["M", "N"]
    assert level_of(value) == "OB"
    assert level_of(MN) is None
    assert element_type_of(value) == f32


def test_changing_a_type():
    assert with_extents(MN, {"N": 1, "K": 5}) == tensor({"M": 4, "N": 1}, f32)
    assert with_level(MN, "GB") == tensor({"M": 4, "N": 2}, f32, "GB")
    assert with_level(with_level(MN, "GB"), None) == MN
    assert with_element_type(with_level(MN, "GB"), f16) == tensor(
        {"M": 4, "N": 2}, f16, "GB"
    )


def test_merged_extents():
    assert merged_extents([MK, KN], "op") == {"M": 4, "K": 8, "N": 2}
    with pytest.raises(VerifyException, match="'op' op dimension K has extent 8 and 7"):
        merged_extents([MK, tensor({"K": 7}, f16)], "op")


def test_a_boolean_takes_a_byte():
    assert bytes_of(tensor({"M": 4, "N": 3}, i1)) == 12
    assert bytes_of(tensor({"M": 4, "N": 3}, f16)) == 24


@pytest.mark.parametrize(("number", "element"), [(0.5, i32), (2.0**31, i32), (2.0, i1)])
def test_integers_are_filled_with_integers(number: float, element: IntegerType):
    FillOp(-1.0, tensor({}, i32)).verify()
    FillOp(1.0, tensor({}, i1)).verify()
    with pytest.raises(VerifyException, match=f"is not representable in {element}"):
        FillOp(number, tensor({}, element)).verify()
    value = create_ssa_value(tensor({"M": 4}, element))
    with pytest.raises(VerifyException, match=f"is not representable in {element}"):
        PadOp(value, number, {"M": 2}, value.type).verify()


@pytest.mark.parametrize("extent", [0, DYNAMIC_INDEX])
def test_extents_are_known(extent: int):
    with pytest.raises(VerifyException, match="extents that are not static and posit"):
        extents_of(tensor({"M": 4, "N": extent}, f32))


def test_positions_are_no_booleans():
    with pytest.raises(VerifyException, match="counts in floats or integers"):
        IndexOp(tensor({"M": 4}, i1)).verify()


def test_counts_are_stored_and_compared():
    counts = tensor({"M": 4}, i32)
    assert element_type_of(counts) == i32
    assert element_type_of(with_level(with_extents(counts, {"M": 2}), "HBM")) == i32
    CastOp(create_ssa_value(counts), M).verify()
    value = create_ssa_value(counts)
    ReduceOp(ReduceKind.ADD, value, tensor({}, i32)).verify()
    with pytest.raises(VerifyException, match="not a tensor of floats"):
        MapOp(MapKind.NEG, [value], counts).verify()


def test_positions_of_a_shard():
    shard = IndexOp(tensor({"N": 3}, f32), 11, ("x", "y"))
    shard.verify()
    assert (shard.dim, shard.extent, shard.axis_names) == ("N", 11, ("x", "y"))
    whole = IndexOp(tensor({"N": 3}, f32))
    assert (whole.extent, whole.axis_names) == (3, ())


def test_elementary_constructors():
    a, b = create_ssa_value(MK), create_ssa_value(KN)
    c = ContractOp(a, b, MN)
    m = ReduceOp(ReduceKind.MAX, c.result, M)
    s = MapOp(MapKind.SUB, [c.result, m.result], MN)
    h = CastOp(s.result, tensor({"M": 4, "N": 2}, bf16))
    r = RenameOp(c.result, tensor({"M": 4, "P": 2}, f32))
    f = FillOp(0.5, M)
    n = ExtentOp("N", c.result)
    for op in (c, m, s, h, r, f, n):
        op.verify()
    assert c.contracted == ("K",)
    assert m.reduced == ("N",)
    assert r.renaming == {"M": "M", "N": "P"}
    assert n.result.type == tensor({}, f32)


@pytest.mark.parametrize(
    ("heads", "queries", "batched"),
    [(32, 4, "Q"), (32, 16, "R"), (4, 4, "R"), (4, 1, "Q"), (1, 1, "R")],
)
def test_the_rows_of_a_product_are_those_that_fill_a_matrix_unit(
    heads: int, queries: int, batched: str
):
    q = create_ssa_value(tensor({"R": heads, "Q": queries, "E": 64}, f16))
    k = create_ssa_value(tensor({"N": 64, "E": 64}, f16))
    scores = ContractOp(q, k, tensor({"R": heads, "Q": queries, "N": 64}, f16))
    assert scores.batched == (batched,)


def test_extent_stays_at_the_level():
    n = ExtentOp("N", create_ssa_value(with_level(MN, "OB")))
    assert n.result.type == tensor({}, f32, "OB")


def test_fold_constructor():
    step, merge = Block(arg_types=[MN, M]), Block(arg_types=[M, M])
    step.add_op(YieldOp(step.args[1]))
    merge.add_op(YieldOp(merge.args[0]))
    values = create_ssa_value(MN), create_ssa_value(M)
    fold = FoldOp("N", [values[0]], [values[1]], Region(step), Region(merge))
    fold.verify()
    assert [out.type for out in fold.outs] == [M]


def test_named_constructors():
    a, b, v = (
        create_ssa_value(TensorType(f16, shape)) for shape in ([4, 8], [8, 2], [2])
    )
    out = TensorType(f16, [4, 2])
    softmax = GemmSoftmaxOp([a, b], out)
    norm = GemmLayernormOp([a, b, v, v], out)
    softmax.verify()
    norm.verify()
    assert norm.epsilon.value.data == 1e-5
    assert softmax.named_extents() == norm.named_extents() == {"M": 4, "K": 8, "N": 2}


@pytest.mark.parametrize(
    ("type_", "lowest"),
    [
        (f16, -65504.0),
        (bf16, -3.3895313892515355e38),
        (f32, -3.4028234663852886e38),
        (f64, -1.7976931348623157e308),
    ],
)
def test_lowest_finite_numbers(type_: AnyFloat, lowest: float):
    assert lowest_finite(type_) == lowest
    assert scaled_number(lowest / 2, 3.0, type_) == lowest
    assert scaled_number(-float("inf"), 3.0, type_) == -float("inf")
    assert scaled_number(0.5, 3.0, type_) == 1.5
