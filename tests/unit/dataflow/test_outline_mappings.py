"""`outline-mappings`: a chain of mappings computes what the graph does."""

from random import Random

import numpy as np
import pytest
from covering import one_of
from graph_text import Program
from paths import ROOT
from sample_blocks import tiny_texts
from semantics import assert_same_meaning, parse_module, run_passes
from view_programs import programs
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import InterpretationError, PassFailedException

from comet.dialects.chain import chained_mappings
from comet.dialects.compound.dims import extents_of
from comet.interpreter import run
from comet.passes.analysis.functions import compute_functions
from comet.passes.dataflow.outline_mappings.cuts import cuts, given_mappings
from comet.passes.dataflow.outline_mappings.plan import (
    ROOT_VIEWS,
    Graph,
    PlannedMapping,
)

EDGE = f'attach-hardware{{path="{ROOT / "samples/hardware/edge.yaml"}"}}'
BLOCKS = tiny_texts()
VIEWS = dict(programs())
SIZES = {"M": 3, "N": 3, "T": 3, "D": 5, "E": 4}


def graph_of(module: ModuleOp) -> Graph:
    (func,) = compute_functions(module)
    return Graph(func)


def random_graph(seed: int) -> str:
    """Return products, sums, maps and views of values, with several results."""
    random, p = Random(seed), Program(SIZES)
    values = [p.argument("x", "MD"), p.argument("y", "ND"), p.argument("v", "D")]
    weight = p.argument("w", "DE")
    dims = {"x": "MD", "y": "ND", "v": "D"}
    made: list[str] = []
    for number in range(14):
        name, value = f"t{number}", random.choice(values)
        wide = len(dims[value]) == 2
        match random.choice(("rename", "exp", "mult", "sum", "product", "fill")):
            case "rename" if wide:
                dims[name] = random.choice("MNT") + dims[value][1]
                values.append(p.rename(name, value, dims[name]))
            case "mult":
                near = [v for v in values if dims[v] in (dims[value], "D")]
                other = random.choice(near) if dims[value][-1] == "D" else value
                dims[name] = dims[value]
                values.append(p.map(name, "mult", value, other))
                made.append(name)
            case "sum" if dims[value].endswith("D") and wide:
                dims[name] = "D"
                values.append(p.reduce(name, "add", value, dims[value][0]))
                made.append(name)
            case "product" if dims[value].endswith("D") and wide:
                dims[name] = dims[value][0] + "E"
                values.append(p.contract(name, value, weight, dims[name]))
                made.append(name)
            case _:
                dims[name] = dims[value]
                values.append(p.map(name, "tanh", value))
                made.append(name)
    return p.returning(*random.sample(made, min(3, len(made))))


def check_mapping(planned: PlannedMapping) -> None:
    """Check what one mapping holds: no views of its own values, one extent a name."""
    extents: dict[str, int] = {}
    for op in planned.ops:
        assert not isinstance(op, ROOT_VIEWS)
        for value in (*op.operands, *op.results):
            for dim, extent in extents_of(value).items():
                assert extents.setdefault(dim, extent) == extent


def check_cuts(text: str, name: str) -> None:
    """Check that every way to cut means the same, and that its text says it."""
    before = parse_module(text)
    graph = graph_of(before)
    for _, chain in cuts(graph):
        for planned in chain:
            check_mapping(planned)
        assert given_mappings(graph, graph.text(chain)) == chain
        after = run_passes(
            before, f'{EDGE},outline-mappings{{mappings="{graph.text(chain)}"}}'
        )
        (func,) = compute_functions(after)
        assert len(list(chained_mappings(func))) == len(chain)
        assert_same_meaning(before, after, name)


@one_of(3)
@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_keep_their_meaning(seed: int):
    check_cuts(random_graph(seed), "main")


@one_of(4)
@pytest.mark.parametrize("name", sorted(BLOCKS.keys() - {"parallel_mlp"}))
def test_blocks_keep_their_meaning(name: str):
    check_cuts(BLOCKS[name], name)


@one_of(3)
@pytest.mark.parametrize("name", [name for name in VIEWS if name.endswith("_computed")])
def test_views_along_every_axis_keep_their_meaning(name: str):
    before = parse_module(VIEWS[name])
    graph = graph_of(before)
    after = run_passes(before, f"{EDGE},outline-mappings")
    (func,) = compute_functions(after)
    assert bool(list(chained_mappings(func))) != graph.is_one_mapping
    assert_same_meaning(before, after, func.sym_name.data)


def test_the_vit_block_needs_two_mappings():
    module = parse_module(BLOCKS["vit"])
    found = {label: len(chain) for label, chain in cuts(graph_of(module))}
    assert found == {"products": 9, "fewest": 2}


@pytest.mark.parametrize(
    ("mappings", "sentence"),
    [
        ("h9; z", "names %h9, which no op computes"),
        ("h1; h1 z", "stores %h1 twice; name it in one mapping"),
        ("z", "sees %h1 under other names, in part or joined, and no mapping before"),
        ("h1; y", "no mapping computes %z; name it, or a value that is"),
        ("z; h1", "an earlier mapping than its own needs %h1; name it there, or"),
    ],
)
def test_cuts_by_hand_that_do_not_fit(mappings: str, sentence: str):
    module = parse_module(BLOCKS["vit"])
    with pytest.raises(PassFailedException, match=sentence):
        run_passes(module, f'{EDGE},outline-mappings{{mappings="{mappings}"}}')


def test_a_dimension_with_two_extents_is_a_cut():
    text = """
      !A = tensor<6x4xf32, #compound.dims<M, N>>
      !B = tensor<5x3xf32, #compound.dims<M, N>>
      func.func @main(%a: !A, %b: !B) -> (!A, !B) {
        %x = compound.map exp %a : !A -> !A
        %y = compound.map exp %b : !B -> !B
        func.return %x, %y : !A, !B
      }"""
    before = parse_module(text)
    assert not graph_of(before).is_one_mapping
    after = run_passes(before, f"{EDGE},outline-mappings")
    (func,) = compute_functions(after)
    assert len(list(chained_mappings(func))) == 2
    assert_same_meaning(before, after, "main")
    with pytest.raises(PassFailedException, match="has a dimension with two extents"):
        run_passes(before, f'{EDGE},outline-mappings{{mappings="x y"}}')


def test_a_mapping_computes_what_it_reads_through_a_cast():
    """The cast to f32 is copied to its two readers, which both are in the mapping."""
    text = """
      !A = tensor<6x4xf16, #compound.dims<M, N>>
      !F = tensor<6x4xf32, #compound.dims<M, N>>
      func.func @main(%a: !A) -> !F {
        %x = compound.map exp %a : !A -> !A
        %y = compound.map neg %x : !A -> !A
        %f = compound.cast %y : !A -> !F
        %g = compound.map exp %f : !F -> !F
        %z = compound.map mult %f, %g : !F, !F -> !F
        func.return %z : !F
      }"""
    before = parse_module(text)
    after = run_passes(before, f'{EDGE},outline-mappings{{mappings="x; z"}}')
    (func,) = compute_functions(after)
    assert len(list(chained_mappings(func))) == 2
    assert_same_meaning(before, after, "main")


def test_a_mapping_that_is_lowered_has_no_meaning():
    text = """
      !A = tensor<6x4xf32, #compound.dims<M, N>>
      !B = tensor<6x4xf32, #compound.dims<N, M>>
      func.func @main(%a: !A) -> !B {
        %x = compound.map exp %a : !A -> !A
        %t = compound.rename %x : !A -> !B
        func.return %t : !B
      }"""
    passes = f"{EDGE},comet-accelerator{{pad=none stream=false strategy=full}}"
    after = run_passes(parse_module(text), passes)
    with pytest.raises(InterpretationError, match="once @main_1 is lowered to COMET"):
        run(after, "main", [np.ones((6, 4))])
