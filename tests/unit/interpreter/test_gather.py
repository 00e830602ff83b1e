"""The reference interpreter takes rows of tables, whole or in shards."""

import numpy as np
import pytest
from semantics import assert_close, assert_same_meaning, parse_module, run_passes
from xdsl.utils.exceptions import InterpretationError

from comet.dialects.errors import op_of
from comet.interpreter import run
from comet.interpreter.tensor import Array

TABLE = np.random.default_rng(5).standard_normal((3, 11, 5))
IDS = np.array([[0.0, 10.0], [4.0, 4.0], [9.0, 1.0], [7.0, 0.0]])

PAGES = """
!table = tensor<3x11x5xf32, #compound.dims<P, V, D>>
!ids = tensor<4x2xi32, #compound.dims<B, T>>
!rows = tensor<3x4x2x5xf32, #compound.dims<P, B, T, D>>
func.func @main(%table: !table, %ids: !ids) -> !rows {
  %r = compound.gather %table, %ids along "V" : !table, !ids -> !rows
  func.return %r : !rows
}
"""


def pages(ids: Array) -> Array:
    """Return what the interpreter takes of the table."""
    return run(parse_module(PAGES), "main", [TABLE, ids])[0]


def test_ids_name_positions_of_one_dimension():
    expected = np.empty((3, 4, 2, 5))
    for page, first, second in np.ndindex(3, 4, 2):
        row = int(IDS[first, second])
        expected[page, first, second] = TABLE[page, row]
    assert_close([pages(IDS)], [expected])


@pytest.mark.parametrize("wrong", [11.0, -1.0])
def test_ids_outside_of_the_table_are_an_error(wrong: float):
    ids = np.where(IDS == 10.0, wrong, IDS)
    with pytest.raises(InterpretationError, match="pass ids from 0 to 10") as e:
        pages(ids)
    op = op_of(e.value)
    assert op is not None
    assert op.name == "compound.gather"


SHARDED = """
collective.mesh @gpus {rank = 3, other = 2}
!table = tensor<9x5xf32, #compound.dims<V, D>>
!ids = tensor<7xi32, #compound.dims<T>>
!rows = tensor<7x5xf32, #compound.dims<T, D>>
!sums = tensor<7xf32, #compound.dims<T>>
func.func @main(%x: !table, %i: !ids) -> (!rows, !sums) {
  %r = compound.gather %x, %i along "V" : !table, !ids -> !rows
  %e = compound.map exp %r {collective.shard = SHARDS} : !rows -> !rows
  %s = compound.reduce add %r {collective.shard = SHARDS} : !rows -> !sums
  func.return %e, %s : !rows, !sums
}
"""


@pytest.mark.parametrize(
    "shards",
    ['{T = ["rank"]}', '{D = ["other"]}', '{T = ["other"], D = ["rank"]}'],
)
def test_unequal_shards_are_gathered(shards: str):
    before = parse_module(SHARDED.replace("SHARDS", shards))
    assert_same_meaning(before, run_passes(before, "insert-collectives"), "main")


SUMS = """
!values = tensor<3x4x2x5xf32, #compound.dims<P, B, T, D>>
!ids = tensor<4x2xi32, #compound.dims<B, T>>
!sums = tensor<3x11x5xf32, #compound.dims<P, V, D>>
func.func @main(%x: !values, %ids: !ids) -> !sums {
  %r = compound.scatter_add %x, %ids into "V" : !values, !ids -> !sums
  func.return %r : !sums
}
"""
VALUES = np.random.default_rng(6).standard_normal((3, 4, 2, 5))


def test_rows_with_one_id_are_added():
    (found,) = run(parse_module(SUMS), "main", [VALUES, IDS])
    expected = np.zeros((3, 11, 5))
    for page, first, second in np.ndindex(3, 4, 2):
        expected[page, int(IDS[first, second])] += VALUES[page, first, second]
    assert_close([found], [expected])


def test_ids_outside_of_the_sums_are_an_error():
    with pytest.raises(InterpretationError, match="position 11 along V") as e:
        run(parse_module(SUMS), "main", [VALUES, np.where(IDS == 10.0, 11.0, IDS)])
    assert "scatter_add" in str(e.value)


@pytest.mark.parametrize("shards", ['{T = ["rank"]}', '{D = ["other"]}'])
def test_ranks_with_shards_of_rows_have_terms_of_sums(shards: str):
    text = f"""
    collective.mesh @gpus {{rank = 3, other = 2}}
    !values = tensor<7x5xf32, #compound.dims<T, D>>
    !ids = tensor<7xi32, #compound.dims<T>>
    !sums = tensor<9x5xf32, #compound.dims<V, D>>
    func.func @main(%x: !values, %i: !ids) -> !sums {{
      %r = compound.scatter_add %x, %i into "V" {{collective.shard = {shards}}}
        : !values, !ids -> !sums
      %e = compound.map exp %r : !sums -> !sums
      func.return %e : !sums
    }}"""
    before = parse_module(text)
    assert_same_meaning(before, run_passes(before, "insert-collectives"), "main")
