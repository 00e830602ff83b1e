"""Chains of mappings: from a graph to COMET files, their plan, and their price."""

from __future__ import annotations

from functools import cache
from io import BytesIO, StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import plain_yaml
import pytest
from comet_rules import check
from covering import EVERY_CASE, exhaustive, one_of
from graph_text import Program
from paths import ROOT
from sample_blocks import gelu_erf, tiny_texts
from semantics import (
    assert_close,
    comet_context,
    parse_module,
    random_inputs,
    run_passes,
)
from transformer_blocks import softmax
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import PassPipeline
from xdsl.utils.exceptions import DiagnosticException, PassFailedException

import comet
from comet.codegen.comet import CometTarget, read_stream, split_files, write_files
from comet.codegen.comet.chain import chain_of
from comet.codegen.comet.reader import FILES
from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.cost import estimate_of
from comet.interpreter import run
from comet.interpreter.tensor import Array
from comet.passes.analysis.functions import compute_functions
from comet.passes.dataflow.outline_mappings.cuts import cuts, joined
from comet.passes.dataflow.outline_mappings.plan import Graph
from comet.passes.pipeline import run_settled, spelled
from comet.passes.pipelines.comet_accelerator import CometAcceleratorPass
from comet.passes.pipelines.mapping_chain import ChainSearch
from comet.passes.search import Cost
from comet.passes.search.record import Choice, session
from comet.universe import installed
from comet.yaml_file import FileFormatError

FAST = "pad=none stream=false strategy=full"
"""Options that leave little to search."""

TWO = """
  !A = tensor<32x16xf16, #compound.dims<M, K>>
  !B = tensor<16x64xf16, #compound.dims<K, N>>
  !C = tensor<32x64xf16, #compound.dims<M, N>>
  !R = tensor<32xf16, #compound.dims<M>>
  !T = tensor<32x64xf16, #compound.dims<M, K>>
  !W = tensor<64x16xf16, #compound.dims<K, N>>
  !Z = tensor<32x16xf16, #compound.dims<M, N>>
  func.func @two(%a: !A, %b: !B, %w: !W) -> !Z {
    %c = compound.contract %a, %b : !A, !B -> !C
    %m = compound.reduce max %c : !C -> !R
    %s = compound.map sub %c, %m : !C, !R -> !C
    %e = compound.map exp %s : !C -> !C
    %l = compound.reduce add %e : !C -> !R
    %p = compound.map div %e, %l : !C, !R -> !C
    %t = compound.rename %p : !C -> !T
    %c2 = compound.contract %t, %w : !T, !W -> !Z
    %m2 = compound.reduce max %c2 : !Z -> !R
    %s2 = compound.map sub %c2, %m2 : !Z, !R -> !Z
    %e2 = compound.map exp %s2 : !Z -> !Z
    %l2 = compound.reduce add %e2 : !Z -> !R
    %z = compound.map div %e2, %l2 : !Z, !R -> !Z
    func.return %z : !Z
  }"""
"""Two GEMM-softmax: the columns of the first one are rows of the second's weights."""

HEADS = """
  !X = tensor<4x8xf32, #compound.dims<T, D>>
  !W = tensor<8x16xf32, #compound.dims<D, E>>
  !QK = tensor<4x16xf32, #compound.dims<T, E>>
  !Q = tensor<4x8xf32, #compound.dims<T, E>>
  !H = tensor<4x2x4xf32, #compound.dims<T, H, F>>
  !P = tensor<4x2x2xf32, #compound.dims<T, H, F>>
  func.func @heads(%x: !X, %w: !W) -> (!Q, !Q) {
    %qk = compound.contract %x, %w : !X, !W -> !QK
    %q = compound.slice %qk "E" [0, 8] : !QK -> !Q
    %k = compound.slice %qk "E" [8, 8] : !QK -> !Q
    %h = compound.rename %q split "E" : !Q -> !H
    %one = compound.slice %h "F" [0, 2] : !H -> !P
    %two = compound.slice %h "F" [2, 2] : !H -> !P
    %minus = compound.map neg %two : !P -> !P
    %turned = compound.concat "F" %minus, %one : !P, !P -> !H
    %e = compound.map exp %turned : !H -> !H
    %y = compound.rename %e merge "H" : !H -> !Q
    func.return %y, %k : !Q, !Q
  }"""
"""Every kind of view between mappings, and two results that are views."""

MIXED = """
  !X = tensor<8x16xf32, #compound.dims<M, D>>
  !K = tensor<8x16xf32, #compound.dims<N, D>>
  !S = tensor<8x8xf32, #compound.dims<M, N>>
  func.func @mixed(%x: !X) -> !X {
    %q = compound.map exp %x : !X -> !X
    %keys = compound.rename %q : !X -> !K
    %s = compound.contract %q, %keys : !X, !K -> !S
    %e = compound.map exp %s : !S -> !S
    %z = compound.contract %e, %keys : !S, !K -> !X
    func.return %z : !X
  }"""
"""Two products after a view."""

TYPES = """
  !X = tensor<8x16xbf16, #compound.dims<M, D>>
  !Xf = tensor<8x16xf32, #compound.dims<M, D>>
  !K = tensor<8x16xf32, #compound.dims<N, D>>
  !Kb = tensor<8x16xbf16, #compound.dims<N, D>>
  !S = tensor<8x8xf32, #compound.dims<M, N>>
  func.func @types(%x: !X) -> !X {
    %wide = compound.cast %x : !X -> !Xf
    %q = compound.map exp %wide : !Xf -> !Xf
    %keys = compound.rename %q : !Xf -> !K
    %narrow = compound.cast %keys : !K -> !Kb
    %s = compound.contract %x, %narrow : !X, !Kb -> !S
    %r = compound.reduce max %s : !S -> tensor<8xf32, #compound.dims<M>>
    %y = compound.map sub %wide, %r : !Xf, tensor<8xf32, #compound.dims<M>> -> !Xf
    %z = compound.cast %y : !Xf -> !X
    func.return %z : !X
  }"""
"""Values that several mappings read in another element type."""


def self_attention() -> str:
    """Return the exact GELU, and attention of its rows to themselves."""
    p = Program({"M": 5, "N": 5, "D": 8, "E": 4})
    queries = gelu_erf(p, p.argument("x", "MD"), "queries")
    keys = p.rename("keys", queries, "ND")
    weights = softmax(p, p.contract("scores", queries, keys, "MN"), "weights")
    values = p.contract("values", keys, p.argument("w", "DE"), "NE")
    mixed = p.contract("mixed", weights, values, "ME")
    return p.returning(mixed, function="attention")


GRAPHS = {
    **{"mixed": MIXED, "types": TYPES, "two": TWO, "heads": HEADS},
    "attention": self_attention(),
    **({"vit": tiny_texts()["vit"]} if EVERY_CASE else {}),
}
OPTIONS = {
    "mixed": FAST,
    "merged": "pad=none stream=false mappings=merged",
    "types": FAST,
    "two": FAST,
    "heads": "pad=none",
    "attention": f"{FAST} dim=M",
    "vit": f"{FAST} dim=H,M",
}
TEXTS = {**GRAPHS, "merged": MIXED}
CHOICES: dict[tuple[str, str, str], list[Choice]] = {}
"""What was chosen from, for what is compiled."""


def attach(machine: str) -> str:
    return f'attach-hardware{{path="{ROOT / "samples/hardware" / machine}.yaml"}}'


@cache
def compiled(name: str, machine: str, options: str = "") -> tuple[str, ModuleOp]:
    """Return the passes that ran, as text, and the chain."""
    module, context = parse_module(TEXTS[name]), comet_context().clone()
    said = " ".join(filter(None, (OPTIONS[name], options)))
    text = f"{attach(machine)},comet-accelerator{{{said}}}"
    pipeline = PassPipeline.parse_spec(installed().all_passes, text)
    with session() as searched:
        done = run_settled(pipeline.passes, context, module)
    CHOICES[name, machine, options] = searched.choices
    module.verify()
    return spelled(done), module


def emitted(module: ModuleOp) -> dict[str, str]:
    """Return the files of a module by name, as its one stream has them."""
    stream = StringIO()
    CometTarget().emit(comet_context(), module, stream)
    return split_files(stream.getvalue())


def mapped(name: str) -> list[ModuleOp]:
    return mapped_of(compiled(name, "edge")[1])


def mapped_of(module: ModuleOp) -> list[ModuleOp]:
    """Return the modules of the mappings of a chain."""
    chain = chain_of(module)
    assert chain is not None
    return list(chain.folders.values())


@one_of(4)
@pytest.mark.parametrize(
    ("name", "machine"),
    [
        *((name, "edge") for name in GRAPHS),
        *((name, "cloud") for name in GRAPHS if EVERY_CASE),
    ],
)
def test_each_mapping_is_a_set_of_files_that_keeps_the_rules(name: str, machine: str):
    _, module = compiled(name, machine)
    files = emitted(module)
    folders = {Path(file).parent.name for file in files} - {""}
    assert folders == {str(number) for number in range(1, len(folders) + 1)}
    assert len(folders) > 1
    for folder in folders:
        own = {file: files[f"{folder}/{file}"] for file in FILES}
        assert check(own) == []


@one_of(2)
@pytest.mark.parametrize("name", GRAPHS)
def test_a_chain_costs_the_sum_of_its_mappings(name: str):
    _, module = compiled(name, "edge")
    (func,) = compute_functions(module)
    whole = estimate_of(func)
    parts = [estimate_module(each) for each in mapped(name)]
    assert whole is not None
    assert whole.energy is not None
    assert whole.latency == pytest.approx(sum(each.latency for each in parts))
    assert whole.energy == pytest.approx(sum(each.energy for each in parts))
    price = comet.cost(module)
    assert price.latency == pytest.approx(whole.latency)
    assert price.energy_pj == pytest.approx(whole.energy)
    assert sum(price.time.values()) == pytest.approx(whole.latency)
    assert all(0 <= used <= 1 for used in price.utilization.values())


def executed(plan: dict[str, Any], chain: ModuleOp, tensors: dict[str, Array]) -> None:
    """Run a plan on arrays: mappings by the functions of `chain`, views by numpy."""
    for step in plan["steps"]:
        if "mapping" in step:
            module = next(
                op
                for op in chain.ops
                if isinstance(op, ModuleOp) and op.sym_name
                if op.sym_name.data == step["mapping"]
            )
            given = [tensors[name] for name in step["reads"].values()]
            made = run(module, step["mapping"], given)
            tensors |= dict(zip(step["writes"].values(), made, strict=True))
            continue
        shown, sources = plan["tensors"][step["view"]], [tensors[n] for n in step["of"]]
        match step["by"]:
            case "rename":
                tensors[step["view"]] = sources[0].reshape(shown["shape"])
            case "slice":
                first = [step["first"].get(dim, 0) for dim in shown["dimensions"]]
                pairs = zip(first, shown["shape"], strict=True)
                taken = tuple(slice(n, n + size) for n, size in pairs)
                tensors[step["view"]] = sources[0][taken]
            case _:
                axis = shown["dimensions"].index(step["along"])
                tensors[step["view"]] = np.concatenate(sources, axis)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_plan_says_all_that_is_needed_to_run_the_mappings(name: str):
    passes, module = compiled(name, "edge")
    plan = plain_yaml.load(emitted(module)["plan.yaml"])
    before = parse_module(GRAPHS[name])
    until = passes[: passes.index(",nested{")]
    chain = run_passes(before, until)
    inputs = random_inputs(before, name)
    (func,) = compute_functions(before)
    names = [value.name_hint or "" for value in func.body.block.args]
    tensors = dict(zip(names, inputs, strict=True))
    for tensor, array in tensors.items():
        assert plan["tensors"][tensor]["shape"] == list(array.shape)
    executed(plan, chain, tensors)
    expanded = run_passes(before, "expand-maps") if "expand-maps" in passes else before
    wanted = run(expanded, name, inputs)
    assert_close([tensors[result] for result in plan["results"]], wanted)
    assert plan["chain"]["resident"] == []


def test_the_plan_names_the_tensors_of_the_files():
    _, module = compiled("heads", "edge")
    files = emitted(module)
    plan = plain_yaml.load(files["plan.yaml"])
    steps = [step for step in plan["steps"] if "mapping" in step]
    for step in steps:
        problem = plain_yaml.load(files[f"{step['folder']}/problem.yaml"])["problem"]
        ins, outs = (problem["io"][key].split(",") for key in ("ins", "outs"))
        assert list(map(str.strip, ins)) == list(step["reads"])
        assert list(map(str.strip, outs)) == list(step["writes"])
    total = sum(step["cycles"] for step in steps)
    assert total == pytest.approx(plan["chain"]["cycles"])


@one_of(2)
@pytest.mark.parametrize("name", ["two", "heads"])
def test_the_list_of_passes_makes_the_same_chain(name: str):
    passes, module = compiled(name, "edge")
    again = run_passes(parse_module(GRAPHS[name]), passes)
    assert again.is_structurally_equivalent(module)


def test_mappings_are_compared_and_the_cheapest_cut_is_taken():
    _, module = compiled("attention", "edge")
    choice = next(
        each for each in CHOICES["attention", "edge", ""] if each.name == "chain"
    )
    assert [row.label for row in choice.rows] == [
        "products: 4 mappings",
        "fewest: 2 mappings",
    ]
    costs = [row.cost.latency for row in choice.rows if row.cost is not None]
    (func,) = compute_functions(module)
    figures = estimate_of(func)
    assert figures is not None
    assert figures.latency == pytest.approx(min(costs))


@exhaustive
def test_neighbours_are_merged_where_that_is_cheaper():
    passes, module = compiled("merged", "edge")
    (choice,) = (each for each in CHOICES["merged", "edge", ""] if each.name == "chain")
    costs = {row.label: row.cost for row in choice.rows if row.cost is not None}
    merged = costs["merged"].latency
    assert merged < costs["products: 3 mappings"].latency
    assert merged == min(cost.latency for cost in costs.values())
    assert 'outline-mappings{mappings="q; z"}' in passes
    for each in mapped_of(module):
        assert check(write_files(each)) == []


@pytest.mark.parametrize(
    ("text", "joins"), [(MIXED, [False, True]), (TWO, [False]), (HEADS, [False, False])]
)
def test_what_a_view_or_two_extents_separate_is_not_merged(
    text: str, joins: list[bool]
):
    (func,) = compute_functions(parse_module(text))
    graph = Graph(func)
    _, chain = next(cuts(graph))
    pairs = pairwise(chain)
    assert [joined(graph, *pair) is not None for pair in pairs] == joins


def test_mappings_by_hand_and_options_of_their_dimensions():
    passes, module = compiled("two", "edge", 'mappings="p; z" dim=N')
    assert 'outline-mappings{mappings="p; z"}' in passes
    assert passes.count("distribute{dim=N") == 2
    assert len(mapped("two")) == 2
    module.verify()


@exhaustive
def test_under_the_model_of_the_tool():
    _, module = compiled("heads", "edge", "pad=none stream=false model=tool")
    (func,) = compute_functions(module)
    figures = estimate_of(func)
    assert figures is not None
    assert str(figures.model) == "tool"


def test_one_mapping_may_be_cut_by_hand():
    text = (ROOT / "samples/gemm_softmax.mlir").read_text()
    after = run_passes(
        parse_module(text),
        f'{attach("edge")},comet-accelerator{{mappings="c; p" {FAST} dim=M}}',
    )
    chain = chain_of(after)
    assert chain is not None
    assert len(chain.mappings) == 2
    for module in chain.folders.values():
        assert check(write_files(module)) == []


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("two", 'factors="p: M=2"', "factors name the nodes of one mapping, and @two"),
        ("two", 'mappings="p"', "no mapping computes %z; name it"),
    ],
)
def test_what_a_chain_does_not_take(name: str, options: str, sentence: str):
    with pytest.raises(PassFailedException, match=sentence):
        compiled(name, "edge", options)


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        ("gpt2", "'compound.index', and accelerators do not compute the position"),
        ("llama", "'compound.index', and accelerators do not compute the position"),
    ],
)
def test_what_files_cannot_say_is_one_sentence(block: str, sentence: str):
    with pytest.raises(PassFailedException, match=sentence):
        run_passes(
            parse_module(tiny_texts()[block]), f"{attach('edge')},comet-accelerator"
        )


def test_logarithms_are_found_before_any_search():
    text = TWO.replace("compound.map exp %s2", "compound.map log %s2")
    with session() as searched, pytest.raises(PassFailedException, match="'log'"):
        run_passes(parse_module(text), f"{attach('edge')},comet-accelerator")
    assert searched.choices == []


def test_mappings_that_are_not_lowered_have_no_files():
    module = run_passes(parse_module(TWO), f"{attach('edge')},outline-mappings")
    with pytest.raises(DiagnosticException, match="mapping @two_1 has no files yet"):
        emitted(module)


def test_ops_between_mappings_are_no_plan():
    _, module = compiled("two", "edge")
    of = "tensor<32x16xf16, #compound.dims<M, N>>"
    line = f"%y = compound.map exp %z : {of} -> {of}"
    text = str(module).replace("func.return %z", f"{line}\n    func.return %y", 1)
    with pytest.raises(DiagnosticException, match=r"'compound\.map' is between"):
        emitted(parse_module(text))


def test_a_folder_has_the_plan_and_a_folder_for_each_mapping(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    _, module = compiled("two", "edge")
    CometTarget(str(tmp_path / "out")).emit(comet_context(), module, StringIO())
    files = {str(f.relative_to(tmp_path / "out")) for f in tmp_path.rglob("*.yaml")}
    numbered = {f"{number}/{file}" for number in (1, 2) for file in FILES}
    assert files == {"plan.yaml"} | numbered
    said = capsys.readouterr().err
    assert "wrote plan.yaml and the folders 1 to 2 into" in said
    assert "cycles, a b -> p\n" in said
    assert "cycles, t w -> z\n" in said
    assert "model paper: latency" in said


def test_schedules_of_a_chain_mean_the_same():
    passes, _ = compiled("two", "edge")
    before = parse_module(TWO)
    until = passes.replace(",annotate-cost{model=paper},lower-to-comet", "")
    chain = run_passes(before, until.removesuffix(",annotate-cost{model=paper}"))
    inputs = random_inputs(before, "two")
    assert_close(run(chain, "two", inputs), run(before, "two", inputs))


def test_a_stream_of_a_chain_is_not_read_as_one_mapping():
    _, module = compiled("two", "edge")
    stream = StringIO()
    CometTarget().emit(comet_context(), module, stream)
    with pytest.raises(FileFormatError, match="is a chain of mappings, and a module"):
        read_stream(BytesIO(stream.getvalue().encode()))


def test_two_chains_have_no_plan():
    _, module = compiled("two", "edge")
    both = module.clone()
    (func,) = compute_functions(both)
    again = func.clone()
    again.properties["sym_name"] = StringAttr("again")
    both.body.block.add_op(again)
    with pytest.raises(DiagnosticException, match="has 2 chains of mappings"):
        emitted(both)


@exhaustive
def test_an_exact_search_is_one_of_each_mapping():
    passes, module = compiled("heads", "edge", "search=exact time_limit=2")
    assert passes.count("nested{") == len(mapped("heads"))
    choices = CHOICES["heads", "edge", "search=exact time_limit=2"]
    assert any(choice.name == "exact search" for choice in choices)
    (func,) = compute_functions(module)
    (quick,) = compute_functions(compiled("heads", "edge")[1])
    best, known = estimate_of(func), estimate_of(quick)
    assert best is not None
    assert known is not None
    assert best.latency <= known.latency


def test_a_chain_is_not_explored_as_one_mapping():
    with pytest.raises(comet.CometError, match="@two is no single mapping, as it sees"):
        comet.explore(TWO, ROOT / "samples/hardware/edge.yaml")


def test_mappings_that_are_not_lowered_have_no_price():
    with pytest.raises(PassFailedException, match="mapping @two_1 has no COMET files"):
        run_passes(
            parse_module(TWO), f"{attach('edge')},outline-mappings,annotate-cost"
        )


def test_the_folder_of_a_chain_is_not_read_as_one_mapping(tmp_path: Path):
    _, module = compiled("two", "edge")
    CometTarget(str(tmp_path)).emit(comet_context(), module, StringIO())
    with pytest.raises(comet.CometError, match="a chain of mappings; name the folder"):
        comet.parse(tmp_path)
    assert comet.cost(tmp_path / "1").latency < comet.cost(module).latency
    assert comet.cost(tmp_path) == comet.cost(module)


def test_what_was_too_expensive_is_searched_again_where_more_is_left():
    attach = f'attach-hardware{{path="{ROOT}/samples/hardware/edge.yaml"}}'
    module = run_passes(parse_module(TWO), attach)
    (func,) = compute_functions(module)
    graph = Graph(func)
    _, (first, *_) = next(cuts(graph))
    pipeline = CometAcceleratorPass(pad="none", stream=False, strategy="full")
    search = ChainSearch(comet_context(), graph, pipeline)
    with session() as current:
        for _ in range(2):
            with current.trying("a chain", Cost(1.0, 1.0)):
                with pytest.raises(PassFailedException):
                    search.mapped(first, "first")
        assert search.mapped(first, "first").cost.latency > 1
        with current.trying("a chain", Cost(1.0, 1.0)):
            assert search.mapped(first, "first").cost.latency > 1
