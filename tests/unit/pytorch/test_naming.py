"""Names of dimensions: when a later dimension has the name of an earlier one."""

from semantics import parse_module

from comet.passes.analysis.functions import compute_functions
from comet.pytorch.dims import Dim
from comet.pytorch.emitter import RANK, Emitter
from comet.pytorch.naming import with_reused_names

CHAIN = """
func.func @chain(%x: tensor<4x8xf32, #compound.dims<M, A>>, %a: tensor<8x8xf32, #compound.dims<A, B>>,
    %b: tensor<8x8xf32, #compound.dims<B, C>>, %c: tensor<8x8xf32, #compound.dims<C, D>>,
    %d: tensor<8x8xf32, #compound.dims<D, E>>) -> tensor<4x8xf32, #compound.dims<M, E>> {
  %p = compound.contract %x, %a : tensor<4x8xf32, #compound.dims<M, A>>, tensor<8x8xf32, #compound.dims<A, B>> -> tensor<4x8xf32, #compound.dims<M, B>>
  %q = compound.contract %p, %b : tensor<4x8xf32, #compound.dims<M, B>>, tensor<8x8xf32, #compound.dims<B, C>> -> tensor<4x8xf32, #compound.dims<M, C>>
  %r = compound.contract %q, %c : tensor<4x8xf32, #compound.dims<M, C>>, tensor<8x8xf32, #compound.dims<C, D>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %s = compound.contract %r, %d : tensor<4x8xf32, #compound.dims<M, D>>, tensor<8x8xf32, #compound.dims<D, E>> -> tensor<4x8xf32, #compound.dims<M, E>>
  func.return %s : tensor<4x8xf32, #compound.dims<M, E>>
}
"""  # noqa: E501


def test_a_name_is_used_again_when_two_products_lie_between():
    """The second and the third product have neither A nor E."""
    (func,) = compute_functions(parse_module(CHAIN))
    dims = {Dim(4 if name == "M" else 8): name for name in "MABCDE"}
    found = with_reused_names(func.body.block, dims)
    assert "".join(found.values()) == "MABCDA"


def test_ranks_keep_their_name():
    """A dimension of as many elements has its own, also long after the ranks."""
    text = CHAIN.replace("<M, A>", f"<M, {RANK}>").replace("<A, B>", f"<{RANK}, B>")
    (func,) = compute_functions(parse_module(text))
    dims = {Dim(8): name for name in (RANK, *"BCDE")}
    assert [*with_reused_names(func.body.block, dims).values()] == [RANK, *"BCDE"]


def test_names_that_are_given_are_not_given_again():
    known, new = Dim(3), Dim(3)
    emitter = Emitter(Dim(1), 1, {known: "M"})
    assert [*emitter.named((known, new))] == ["M", "N"]
