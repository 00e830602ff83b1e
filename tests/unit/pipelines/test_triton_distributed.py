"""The pipeline of one GPU: what it emits computes what was written, at any size."""

import re
from collections.abc import Iterable
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from choice_notes import without_notes
from covering import EVERY_CASE, exhaustive, fraction, one_of
from gpu_graphs import GRAPHS, H200, LAYERNORM, SOFTMAX
from gpu_ranks import H200X8, SHARED_TEXTS, TEXTS, on_ranks, sharded
from paths import ROOT
from rank_runs import outcomes
from semantics import parse_module, run_passes
from transformer_blocks import SIZES as BLOCK
from transformer_blocks import llama_block
from triton_modules import LOWER, check_all, emitted
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.cost import estimate_of
from comet.dialects.dataflow import ProgramOp
from comet.dialects.errors import OpError
from comet.passes.analysis.functions import compute_functions
from comet.passes.dataflow.bsp_to_dataflow.choose_pattern import choose_pattern
from comet.passes.dataflow.bsp_to_dataflow.connect import ConnectPass
from comet.passes.graph.decompose import keep_reference
from comet.passes.pipeline import run_settled
from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.passes.sharding.dim_axes import dims_in

SIZES = {
    "one": {"M": 1, "N": 1, "K": 1},
    "prime": {"M": 37, "N": 101, "K": 53},
}
OPTIONS = {
    "full": "strategy=full",
    "twice": "strategy=partial between=recompute",
    "kept": "strategy=partial between=spill narrow=none",
}
TWO_LOOPS = {
    "recompute": "{y}: M=3; {m}_n: N=3; c_k: K=2; {y}_n: N=3; c_k_2: K=2",
    "spill": "{y}: M=3; {m}_n: N=3; c_k: K=2; {y}_n: N=3",
}
"""Plans of kernels with two loops over N: the first makes %{m}, the second %{y}."""


def compiled(text: str, options: str = "") -> str:
    return emitted(text, f"{H200},triton-distributed{{ranks=1 {options}}}")


def expect_all_ok(sources: dict[str, str], folder: Path) -> None:
    reports = check_all(sources, folder)
    assert {name: report["ok"] for name, report in reports.items()} == dict.fromkeys(
        sources, True
    )


@one_of(2)
@pytest.mark.parametrize("text", [SOFTMAX, LAYERNORM], ids=["softmax", "layernorm"])
def test_any_size_and_strategy(text: str, tmp_path: Path) -> None:
    sources = {
        f"{size}_{option}": compiled(text.format(**extents), options)
        for (size, extents), (option, options) in fraction(
            SIZES.items(), [*OPTIONS.items()]
        )
    }
    names = {"m": "m", "y": "p"} if text is SOFTMAX else {"m": "n", "y": "y"}
    for between, plan in TWO_LOOPS.items():
        options = (
            f"strategy=partial between={between} narrow=none "
            f'factors="{plan.format(**names)}"'
        )
        swept = compiled(text.format(**SIZES["prime"]), options)
        sources[f"swept_{between}"] = swept
    expect_all_ok(sources, tmp_path)


@exhaustive
def test_any_graph_after_decomposition(tmp_path: Path) -> None:
    sources: dict[str, str] = {}
    turns = cycle([("full",), ("none",), ("partial",)])
    for name, text in GRAPHS.items():
        module = parse_module(text)
        (function,) = compute_functions(module)
        keep_reference(module, function)
        for strategy in ("full", "partial", "none") if EVERY_CASE else next(turns):
            pipeline = f"{H200},fuse{{strategy={strategy}}},tile,{LOWER}"
            sources[f"{name}_{strategy}"] = emitted(str(module), pipeline)
    expect_all_ok(sources, tmp_path)


def spelled(passes: Iterable[ModulePass]) -> str:
    """Return the passes of a pipeline with their options, as a user writes them."""
    return ",".join(str(each.pipeline_pass_spec()) for each in passes)


def passes_of(pipeline: TritonDistributedPass, module: ModuleOp) -> list[ModulePass]:
    """Return the passes that the pipeline runs on `module`, which stays as it is."""
    return list(run_settled([pipeline], Context(), module.clone()))


def names(text: str, ranks: int = 1, dim: str | None = None) -> list[str]:
    module = run_passes(parse_module(text), H200X8)
    dims = None if dim is None else (dim,)
    pipeline = TritonDistributedPass(ranks, dims, to="dataflow")
    return [each.name for each in passes_of(pipeline, module)]


def test_ranks_share_what_is_said_or_chosen() -> None:
    """By the option, by the function, or by neither: then for each op."""
    start = ["select-ranks", "decompose", "lower-views", "sink-renames", "stream"]
    softmax = SOFTMAX.format(**SIZES["prime"])
    shared = SHARED_TEXTS["ag_gemm"].format(**SIZES["prime"])
    expected = {
        "distribute": names(softmax, 4, "N"),
        "choose-shardings": names(softmax, 4),
        "propagate-shardings": names(shared, 4),
    }
    for name, found in expected.items():
        assert found[: len(start) + 1] == [*start, name]
    assert names(shared, 4, "auto")[: len(start) + 1] == [*start, "choose-shardings"]


def test_one_rank_needs_no_collectives() -> None:
    plain = names(SOFTMAX.format(**SIZES["prime"]))
    assert "insert-collectives" not in plain
    shared = SHARED_TEXTS["ag_gemm"].format(**SIZES["prime"])
    first = ["select-ranks", *plain]
    first.insert(first.index("sink-scales") + 1, "propagate-shardings")
    assert names(shared) == first


THREE_RANKS = TritonDistributedPass(ranks=3)


@cache
def softmax_on_three_ranks() -> tuple[ModuleOp, list[ModulePass], ModuleOp]:
    """Return a module, the passes of its pipeline, and what they make of it."""
    module = run_passes(parse_module(SOFTMAX.format(**SIZES["prime"])), H200X8)
    made = run_passes(module, "triton-distributed{ranks=3}")
    return module, passes_of(THREE_RANKS, module), made


@one_of(2)
@pytest.mark.parametrize("done", [pytest.param(2, marks=exhaustive), 11])
def test_what_is_done_already_is_not_done_again(done: int) -> None:
    module, passes, made = softmax_on_three_ranks()
    before = run_passes(module, spelled(passes[:done]))
    rest = [each.name for each in passes_of(THREE_RANKS, before)]
    wanted = [each.name for each in passes[done:]]
    assert rest[len(rest) - len(wanted) :] == wanted
    assert "insert-collectives" not in rest or done < 6
    after = run_passes(before, "triton-distributed{ranks=3}")
    assert without_notes(after) == without_notes(made)


def test_a_region_for_other_ranks_is_refused() -> None:
    text = SOFTMAX.format(**SIZES["prime"])
    module = run_passes(parse_module(text), sharded(4, "N"))
    message = "@f is written for 4 ranks, not 2; use ranks=4"
    with pytest.raises(PassFailedException, match=message):
        run_passes(module, "triton-distributed{ranks=2}")


def test_a_launch_plan_for_other_ranks_is_refused() -> None:
    text = SOFTMAX.format(**SIZES["prime"])
    module = run_passes(
        parse_module(text), f"{H200X8},triton-distributed{{to=dataflow}}"
    )
    message = "@f is written for 1 rank, not 2; use ranks=1"
    with pytest.raises(PassFailedException, match=message):
        run_passes(module, "triton-distributed{ranks=2}")


def test_what_is_lowered_already_is_refused() -> None:
    module = parse_module(SOFTMAX.format(**SIZES["prime"]))
    module = run_passes(module, f"{H200},triton-distributed")
    message = "triton-distributed: @f is at the level tl already; print it by -t triton"
    with pytest.raises(PassFailedException, match=message):
        run_passes(module, "triton-distributed")


def test_two_functions_are_refused_where_the_second_is() -> None:
    text = SOFTMAX.format(**SIZES["prime"])
    module = parse_module(text + text.replace("@f(", "@g("))
    with pytest.raises(OpError, match="@g is the second function of the module") as it:
        run_passes(module, f"{H200},triton-distributed")
    assert isinstance(it.value.op, FuncOp)
    assert it.value.op.sym_name.data == "g"
    run_passes(module, f"{H200},triton-distributed{{to=dataflow}}")


WRITTEN = """
!S = tensor<8x24xf32, #compound.dims<M, N>>
!L = tensor<8x6xf32, #compound.dims<M, N>>
!R = tensor<8xf32, #compound.dims<M>>
collective.mesh @h200x8 {{rank = {ranks}}} at {{rank = "HBM"}}
func.func @f(%s: !S) -> !S {{
  %r = collective.spmd on @h200x8 ins(%s : !S) sharded [{{N = ["rank"]}}]
      outs(!S) sharded [{{N = ["rank"]}}] {{
  ^bb0(%local: !L):
    %m = compound.reduce max %local : !L -> !R
    %all = collective.all_reduce max %m on @h200x8 ["rank"] : !R -> !R
    %d = compound.map sub %local, %all : !L, !R -> !L
    collective.yield %d : !L
  }}
  func.return %r : !S
}}
func.func private @f__reference(%s: !S) -> !S attributes {{comet.reference}} {{
  %m = compound.reduce max %s : !S -> !R
  %d = compound.map sub %s, %m : !S, !R -> !S
  func.return %d : !S
}}"""
"""A region written for ranks of eight; the shards are those of four."""


def test_a_region_is_for_as_many_ranks_as_it_is_written_for(tmp_path: Path) -> None:
    module = run_passes(parse_module(WRITTEN.format(ranks=4)), H200X8)
    passes = [each.name for each in passes_of(TritonDistributedPass(ranks=4), module)]
    assert passes[:3] == ["sink-renames", "stream", "merge-collectives"]
    pipeline = f"{H200X8},triton-distributed{{ranks=4}}"
    source = emitted(WRITTEN.format(ranks=4), pipeline)
    assert outcomes({"f": source}, tmp_path, seeds=2) == {"f": "right"}
    many = WRITTEN.replace("@h200x8", "@other").replace("8x6x", "8x2x")
    module = run_passes(parse_module(many.format(ranks=16)), H200X8)
    message = "written for 16 ranks, and the hardware has 8; attach hardware with more"
    with pytest.raises(PassFailedException, match=message):
        run_passes(module, "triton-distributed{ranks=16}")


@pytest.mark.parametrize("options", ["dim=M,Q ranks=2", "dim=Q ctas=auto"])
def test_a_program_has_the_dimension_that_is_asked_for(options: str) -> None:
    module = parse_module(SOFTMAX.format(**SIZES["prime"]))
    message = "no dimension Q to shard; there are M, K, N; name them"
    with pytest.raises(OpError, match=message) as it:
        run_passes(module, f"{H200X8},triton-distributed{{{options}}}")
    assert isinstance(it.value.op, FuncOp)


def test_without_the_option_dim_a_program_needs_no_dimension_n() -> None:
    module = parse_module(
        """
        !S = tensor<8x24xf32, #compound.dims<M, K>>
        !R = tensor<8xf32, #compound.dims<M>>
        func.func @f(%s: !S) -> !R {
          %m = compound.reduce max %s : !S -> !R
          func.return %m : !R
        }"""
    )
    assert "N" not in dims_in(module)
    run_passes(module, f"{H200},triton-distributed")


def test_functions_at_two_levels_are_refused() -> None:
    text = SOFTMAX.format(**SIZES["prime"])
    module = run_passes(parse_module(text), f"{H200},decompose,fuse")
    other = parse_module(text.replace("@f", "@g"))
    for op in list(other.body.block.ops):
        op.detach()
        module.body.block.add_op(op)
    with pytest.raises(PassFailedException, match="schedule and graph levels"):
        run_passes(module, "triton-distributed")


def chosen(options: str) -> str:
    """Return the `comet.pattern` that the pipeline writes on four ranks."""
    text = SHARED_TEXTS["ag_gemm"].format(M=64, N=96, K=256)
    whole = f"{H200X8},triton-distributed{{ranks=4 to=dataflow {options}}}"
    (function,) = compute_functions(run_passes(parse_module(text), whole))
    return str(function.attributes.get("comet.pattern"))


def test_auto_chooses_the_pattern_with_its_tiles() -> None:
    text = SHARED_TEXTS["ag_gemm"].format(M=64, N=96, K=256)
    bsp = run_passes(parse_module(text), f"{on_ranks(4)},fuse,tile,outline-kernels")
    asked = ConnectPass(tiles="auto")
    best = choose_pattern(bsp, fixed=asked).best
    assert chosen("pattern=auto") == str(StringAttr(spelled([best.options(asked)])))


def test_tiles_that_are_given_stay() -> None:
    given = chosen('pattern=auto factors="c: M=4 N=6"')
    assert given.startswith('"bsp-to-dataflow{pattern=')
    assert "tiles" not in given
    assert chosen("pattern=push") == "None"


def test_tiles_may_be_kept_in_the_search_for_a_pattern() -> None:
    kept = chosen("tiles=kept")
    assert kept.startswith('"bsp-to-dataflow{pattern=')
    assert "tiles" not in kept


def test_the_pattern_is_searched_for_by_default() -> None:
    assert chosen("") == chosen("pattern=auto") != chosen("pattern=bsp") == "None"


def splits(text: str, ranks: int = 1, split: str = "auto") -> list[str]:
    """Return the passes that split a dimension of one kernel, before `fuse`."""
    module = run_passes(parse_module(text), H200X8)
    pipeline = TritonDistributedPass(ranks, strategy="full", split=split, to="dataflow")
    found: list[str] = []
    for each in pipeline.passes(Context(), module):
        if each.name == "fuse":
            break
        each.apply(Context(), module)
        found += [spelled([each])] if each.name == "split" else []
    return found


DECODING = """
func.func @f(%q: tensor<1x2x4x32xf16>,
             %k: tensor<1x2x{S}x32xf16> {{collective.shard = {{S = ["rank"]}}}},
             %v: tensor<1x2x{S}x16xf16> {{collective.shard = {{S = ["rank"]}}}},
             %lens: tensor<1xi32>) -> tensor<1x2x4x16xf16> {{
  %o = compound.flash_decode %q, %k, %v, %lens {{collective.shard = {{S = ["rank"]}}}} :
      (tensor<1x2x4x32xf16>, tensor<1x2x{S}x32xf16>, tensor<1x2x{S}x16xf16>,
      tensor<1xi32>) -> tensor<1x2x4x16xf16>
  func.return %o : tensor<1x2x4x16xf16>
}}
"""


@exhaustive
def test_long_folds_of_few_results_are_split() -> None:
    ranks = 4
    (found,) = splits(DECODING.format(S=32768), ranks)
    parts = int(found.partition("parts=")[2].strip("}"))
    assert found.startswith('split{dim="S" ')
    assert parts % ranks == 0
    assert parts > 8 * ranks


def test_short_folds_and_folds_of_many_results_are_not_split() -> None:
    assert splits(DECODING.format(S=512), 4) == []
    assert splits(SOFTMAX.format(M=64, N=8192, K=64)) == []
    attention = TEXTS["attention"].format(M=8192, N=4096, K=64)
    assert splits(attention) == []


GEMM = """
func.func @f(%a: tensor<{M}x{K}xf16>, %b: tensor<{K}x{N}xf16>) -> tensor<{M}x{N}xf16> {{
  %c = compound.gemm %a, %b : (tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>)
      -> tensor<{M}x{N}xf16>
  func.return %c : tensor<{M}x{N}xf16>
}}
"""


@pytest.mark.parametrize("rows", [1, pytest.param(64, marks=exhaustive)])
def test_long_products_of_few_results_are_split(rows: int) -> None:
    text = GEMM.format(M=rows, N=512, K=8192)
    (found,) = splits(text)
    assert found.startswith('split{dim="K" ')

    assert latency(text, "") < 0.9 * latency(text, "split=none ")


def latency(text: str, options: str) -> float:
    """Return the price of a launch plan on one GPU."""
    passes = f"{H200},triton-distributed{{{options}to=dataflow}}"
    module = run_passes(parse_module(text), passes)
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    found = estimate_of(program)
    assert found is not None
    return found.latency


@exhaustive
def test_splits_are_compared_with_their_parts_merged_in_one_launch() -> None:
    """Two parts are faster in one launch, and slower in two."""
    text = GEMM.format(M=64, N=4096, K=8192)
    assert splits(text) == ['split{dim="K" parts=2}']
    unsplit = latency(text, "split=none ")
    assert latency(text, "") < unsplit
    assert unsplit < latency(text, 'split="K=2" merge=launch ')


def test_other_products_are_not_split() -> None:
    assert splits(GEMM.format(M=4096, N=4096, K=8192)) == []
    assert splits(GEMM.format(M=16, N=512, K=64)) == []


def test_products_of_long_functions_are_tried_alone() -> None:
    graph = llama_block({**BLOCK, "M": 16, "N": 16, "D": 64, "F": 8192}, "bf16")
    (found,) = splits(graph)
    assert found.startswith('split{dim="F" ')


def without_op_sharding(name: str) -> str:
    """Return a sample whose op does not say how it is sharded."""
    text = (ROOT / f"samples/{name}.mlir").read_text()
    line = next(line for line in text.splitlines() if "= compound." in line)
    return text.replace(line, re.sub(r" \{collective.shard = .*?\}\}", "", line))


def test_an_op_has_the_sharding_that_its_result_needs() -> None:
    said = (ROOT / "samples/gemm_reduce_scatter.mlir").read_text()
    passes = f"{H200X8},triton-distributed{{ranks=4}}"
    found = emitted(without_op_sharding("gemm_reduce_scatter"), passes)
    assert found == emitted(said, passes)


def test_a_split_may_be_said() -> None:
    text = DECODING.format(S=512)
    assert splits(text, 4, "S=8") == ['split{dim="S" parts=8}']
    assert splits(DECODING.format(S=65536), 4, "none") == []
    with pytest.raises(PassFailedException, match="'split' is DIM=PARTS, such as S=64"):
        splits(text, 4, "8")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"ctas": 2, "share": "f_m_kernel"}, "'share' asks for f_m_kernel, and progr"),
        ({"ctas": 2, "merge": "f_m_kernel"}, "in groups; use ctas=1, or leave merge"),
        ({"ctas": 2, "launches": "a b"}, "'launches' asks for a b, and programs are"),
        ({"ctas": 2, "split": "K=4"}, "programs are in groups; use ctas=1, or leave s"),
        (
            {"merge": "launch", "share": "f_m_kernel"},
            "merge=launch merges parts in a l",
        ),
        ({"ranks": 4, "collapse": "all"}, "all, and kernels of several ranks keep t"),
        ({"ctas": 2, "collapse": "all"}, "in groups; use ctas=1, or leave collapse"),
        ({"ctas": 2, "pattern": "wait"}, "'pattern' asks for wait, and programs are"),
        ({"dim": ("H", "M")}, "'dim' asks for H,M, and one rank has all; use more r"),
        ({"pattern": "push"}, "push, and one rank exchanges nothing; use more ranks"),
        ({"pattern": "push", "ctas": "auto"}, "one rank exchanges nothing; use more r"),
        ({"blocks": "M=2"}, "'blocks' asks for M=2, and one rank .* leave blocks out"),
        ({"persistent": True}, "'persistent' asks for true, and one rank"),
        ({"tiles": "f: M=2"}, "'tiles' asks for f: M=2, and one rank"),
        ({"inputs": "symmetric"}, "'inputs' asks for symmetric, and one rank"),
        ({"sources": "all"}, "'sources' asks for all, and one rank"),
        ({"kind": "reduce_scatter_all_gather"}, "'kind' asks for reduce_scatter_all"),
        ({"terms": "narrow"}, "'terms' asks for narrow, and one rank"),
        ({"specialize": True, "copies": "pointers"}, "leave copies=pointers out"),
    ],
)
def test_what_no_pass_would_look_at_is_not_asked_for(
    options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(PassFailedException, match=reason):
        TritonDistributedPass(**options)


def test_parts_are_asked_for_on_ranks_and_forms_by_words() -> None:
    TritonDistributedPass(ranks=2, split="S=4", share="all", merge="last")
    TritonDistributedPass(ctas=2, split="none", merge="launch", launches="none")
    TritonDistributedPass(ctas="auto", split="K=4")
    TritonDistributedPass(ctas="auto", dim=("N",), pattern="auto", tiles="auto")
    TritonDistributedPass(pattern="auto", persistent=False, kind="allreduce")


STEPS = re.compile(
    r"for (?=\w+ in)|source = \(rank \+ i\) % WORLD|wait\(|wait_all\(|tl\.dot"
)
SOURCES = ["for ", "source = (rank + i) % WORLD"]


def attention_steps(pattern: str, keys: int) -> list[str]:
    """Return the loops, waits and products of attention on four ranks, in order."""
    text = SHARED_TEXTS["ring_attention"].format(M=64, N=keys, K=32)
    options = f"ranks=4 pattern={pattern} split=none strategy=full"
    module = emitted(text, f"{H200X8},triton-distributed{{{options}}}")
    (kernel,) = re.findall(r"\ndef f_o_kernel.*?\n\n\n", module, re.S)
    received = re.search("wait_all|# schedule.temporal", kernel)
    assert received is not None
    return STEPS.findall(kernel, received.start())


@pytest.mark.parametrize(
    "pattern", ["pull", "push", "fused"] if EVERY_CASE else ["push"]
)
def test_attention_works_on_a_share_once_that_share_is_there(pattern: str) -> None:
    waits, products = 2 * ["wait("], 2 * ["tl.dot"]
    assert attention_steps(pattern, 1024) == [*SOURCES, *waits, "for ", *products]


@pytest.mark.parametrize(
    "pattern", ["pull", "push", "fused"] if EVERY_CASE else ["pull"]
)
def test_shares_of_one_tile_are_waited_for_together(pattern: str) -> None:
    """A loop that waits cannot load ahead; the one over sources is all there is."""
    waits, products = 2 * ["wait_all("], 2 * ["tl.dot"]
    assert attention_steps(pattern, 256) == [*waits, *SOURCES, *products]
