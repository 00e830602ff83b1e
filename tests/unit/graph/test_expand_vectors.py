"""`expand-vectors`: products of vectors mean the same as those of matrices of a row."""

import numpy as np
import pytest
from paths import HARDWARE
from semantics import parse_module, random_inputs, run_passes

import comet
from comet.interpreter import run
from comet.passes.graph.expand_vectors import needs_rows

TYPES = """
!S = tensor<f32, #compound.dims<>>
!K = tensor<8xf32, #compound.dims<K>>
!M = tensor<6xf32, #compound.dims<M>>
!N = tensor<4xf32, #compound.dims<N>>
!P = tensor<10xf32, #compound.dims<P>>
!Q = tensor<8xf32, #compound.dims<Q>>
!P4 = tensor<4xf32, #compound.dims<P>>
!P6 = tensor<6xf32, #compound.dims<P>>
!MK = tensor<6x8xf32, #compound.dims<M, K>>
!KN = tensor<8x4xf32, #compound.dims<K, N>>
!MN = tensor<6x4xf32, #compound.dims<M, N>>
!NM = tensor<4x6xf32, #compound.dims<N, M>>
"""

PROGRAMS = {
    "left": """%x: !K, %w: !KN) -> !N {
        %y = compound.contract %x, %w : !K, !KN -> !N""",
    "right": """%w: !MK, %x: !K) -> !M {
        %y = compound.contract %w, %x : !MK, !K -> !M""",
    "layers": """%x: !K, %b: !N, %w: !KN, %v: !NM) -> !M {
        %c = compound.contract %x, %w : !K, !KN -> !N
        %s = compound.map add %c, %b : !N, !N -> !N
        %y = compound.contract %s, %v : !N, !NM -> !M""",
    "a maximum of a product": """%a: !MK, %b: !KN, %v: !NM) -> !M {
        %c = compound.contract %a, %b : !MK, !KN -> !MN
        %r = compound.reduce max %c : !MN -> !N
        %y = compound.contract %r, %v : !N, !NM -> !M""",
    "softmax": """%x: !K, %w: !KN) -> !N {
        %c = compound.contract %x, %w : !K, !KN -> !N
        %m = compound.reduce max %c : !N -> !S
        %s = compound.map sub %c, %m : !N, !S -> !N
        %y = compound.map exp %s : !N -> !N""",
    "views": """%x: !Q, %w: !KN, %b: !M) -> !P {
        %k = compound.rename %x : !Q -> !K
        %c = compound.contract %k, %w : !K, !KN -> !N
        %p = compound.rename %c : !N -> !P4
        %q = compound.rename %b : !M -> !P6
        %y = compound.concat "P" %p, %q : !P4, !P6 -> !P""",
}

KEPT = {
    "two vectors": """%x: !K, %w: !K) -> !S {
        %y = compound.contract %x, %w : !K, !K -> !S""",
    "a matrix that depends on its vector": """%x: !N, %w: !NM) -> !NM {
        %c = compound.contract %x, %w : !N, !NM -> !M
        %v = compound.map add %w, %c : !NM, !M -> !NM
        %d = compound.contract %x, %v : !N, !NM -> !M
        %y = compound.map add %v, %d : !NM, !M -> !NM""",
}
"""Products that no dimension makes products of matrices."""


def program(body: str) -> str:
    result = body.partition("-> ")[2].partition(" {")[0]
    return f"{TYPES}func.func @main({body}\nfunc.return %y : {result}\n}}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_product_of_a_vector_means_the_same(name: str):
    before = parse_module(program(PROGRAMS[name]))
    after = run_passes(before, "expand-vectors")
    assert needs_rows(before)
    assert not needs_rows(after)
    inputs = random_inputs(before, "main")
    shapes = [x.shape for x in random_inputs(after, "main")]
    shaped = [x.reshape(shape) for x, shape in zip(inputs, shapes, strict=True)]
    (expected,), (found,) = run(before, "main", inputs), run(after, "main", shaped)
    assert found.shape == (1, *expected.shape)
    assert np.allclose(found[0], expected)


@pytest.mark.parametrize("name", KEPT)
def test_what_cannot_have_a_row_stays(name: str):
    assert not needs_rows(parse_module(program(KEPT[name])))


@pytest.mark.parametrize("searched", [False, True])
def test_layers_of_a_vector_are_priced_as_those_of_a_matrix(searched: bool):
    edge, text = HARDWARE / "edge.yaml", program(PROGRAMS["layers"])
    limits = {"stream": False, "dim": "", "strategy": "full"}

    def cycles(text: str) -> float:
        if searched:
            return comet.explore(text, edge, limits).latency_cycles
        return comet.compile(text, edge).cost.latency

    matrix = run_passes(parse_module(text), "expand-vectors")
    assert cycles(text) == cycles(str(matrix))
