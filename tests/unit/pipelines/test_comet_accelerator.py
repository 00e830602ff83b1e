"""`comet-accelerator`: the meaning after every part, its axes, its options."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from accelerators import MACHINES, attached
from comet_rules import check
from covering import covering, exhaustive, one_of
from named_ops import HEADS_EVEN, NAMED_OPS
from paths import HARDWARE
from programs import graph_text
from semantics import assert_same_meaning, parse_module, run_passes
from tile_trees import tiled
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.comet import write_files
from comet.cost.estimate import CostError
from comet.dialects.comet import MappingOp
from comet.dialects.cost import Figures, estimate_of
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.comet.lower_to_comet import LowerToCometPass
from comet.passes.explore.quick import STREAM
from comet.passes.pipelines.comet_accelerator import CometAcceleratorPass
from comet.passes.schedule.fuse.strategy import STRATEGY
from comet.passes.search import session

OPS = ("gemm_softmax", "gemm_layernorm")
STRATEGIES = ("none", "isolate_contractions", "partial", "full")
ODD = ((7, 5, 48), (1, 3, 16), (6, 1, 32), (11, 13, 80))
"""(M, K, N): M and K prime or one; N divides by the axes of every machine."""
RAGGED = ((7, 5, 13), (3, 2, 11))
"""(M, K, N) whose N divides by no machine: the last shares are short or empty."""
REST = ("cy", "kx", "ky")
SPMD = ("decompose{accumulator=input}", "distribute{dim=N axes=cx,cy,kx,ky}")
edge, cloud = (
    f'attach-hardware{{path="samples/hardware/{name}.yaml"}}'
    for name in ("edge", "cloud")
)


def run_stage(module: ModuleOp, stage: str, sizes: Sequence[int]) -> ModuleOp:
    """Run one of `stages`; tiles get the finest legal factors."""
    if stage != "tile":
        return run_passes(module, stage)
    m, k, _ = sizes
    return tiled(module, DRAM=f"M={m}", contract=f"K={k}")


def stages(strategy: str, at: str) -> tuple[str, ...]:
    """Return the passes down to a bound tile tree; `run_stage` runs them."""
    return (
        *SPMD,
        "insert-collectives",
        f"place-collectives{{at={at}}}",
        f"fuse{{strategy={strategy}}}",
        "tile",
        "bind",
    )


@one_of(2)
@pytest.mark.parametrize(
    ("op", "strategy", "machine", "at", "sizes"),
    covering(product(OPS, STRATEGIES, MACHINES, ("GB", "OB"), ODD), 1),
)
def test_every_stage_means_the_same(
    op: str, strategy: str, machine: int, at: str, sizes: tuple[int, int, int]
):
    before = parse_module(graph_text(op, sizes))
    module = run_passes(before, attached(machine))
    for stage in stages(strategy, at):
        module = run_stage(module, stage, sizes)
        assert_same_meaning(before, module, "main")


@one_of(2)
@pytest.mark.parametrize(
    ("op", "strategy", "machine"),
    covering(product(OPS, STRATEGIES, MACHINES), 1),
)
def test_short_and_empty_shares_mean_the_same(op: str, strategy: str, machine: int):
    for sizes in RAGGED:
        before = parse_module(graph_text(op, sizes))
        module = run_passes(before, attached(machine))
        for stage in stages(strategy, "GB")[:-2]:
            module = run_passes(module, stage)
        assert_same_meaning(before, module, "main")


KINDS = ("gather", "reduce_scatter_all_gather", "reduce_broadcast")


@one_of(2)
@pytest.mark.parametrize(
    ("op", "strategy", "at", "kind"),
    covering(product(OPS, STRATEGIES, ("GB", "OB"), KINDS), 1),
)
def test_other_collectives_mean_the_same(op: str, strategy: str, at: str, kind: str):
    before = parse_module(graph_text(op, (13, 3, 32)))
    after = run_passes(before, attached(16))
    for stage in stages(strategy, at):
        stage = stage.replace("axes=cx,cy,kx,ky", "axes=cx,kx")
        stage = stage.replace("{at=", f"{{kind={kind} at=")
        after = run_stage(after, stage, (13, 3, 32))
    assert_same_meaning(before, after, "main")


@one_of(2)
@pytest.mark.parametrize(
    ("machine", "op", "strategy"), covering(product((1, 16), OPS, STRATEGIES), 1)
)
def test_searched_factors_mean_the_same(machine: int, op: str, strategy: str):
    sizes = (7, 5, 48)
    before = parse_module(graph_text(op, sizes))
    *passes, _, bind = stages(strategy, "GB")
    after = run_passes(before, ",".join([attached(machine), *passes, "tile", bind]))
    assert_same_meaning(before, after, "main")


def test_the_chosen_strategy_means_the_same():
    before = parse_module(graph_text("gemm_softmax", (13, 7, 64)))
    passes = stages("auto", "GB")[:-2]
    after = run_passes(before, ",".join([edge, *passes, "tile", "bind"]))
    assert_same_meaning(before, after, "main")


@exhaustive
def test_an_iter_arg_that_the_shared_buffer_keeps_breaks_no_rule():
    before = parse_module(graph_text("gemm_softmax", (2, 11, 512)))
    options = "strategy=none stream=true chunks=shared"
    after = run_passes(before, f"{edge},comet-accelerator{{{options}}}")
    assert check(write_files(after)) == []


def decomposed(sizes: Sequence[int], hardware: str = edge) -> ModuleOp:
    module = parse_module(graph_text("gemm_softmax", sizes))
    return run_passes(module, f"{hardware},decompose{{accumulator=input}}")


def test_the_dimension_to_share_is_an_option():
    module = parse_module(graph_text("gemm_softmax", (64, 16, 24)))
    pipeline = f"{edge},comet-accelerator{{dim=M strategy=full stream=false}}"
    files = write_files(run_passes(module, pipeline))
    assert check(files) == []
    assert "CollectiveOperation" not in files["mapping.yaml"]


def test_choice_and_estimate_are_in_the_ir():
    module = parse_module(graph_text("gemm_softmax", (32, 16, 64)))
    tree = run_passes(module, ",".join([edge, *stages("auto", "GB")[:-2], "tile"]))
    (func,) = compute_functions(tree)
    assert str(func.attributes[STRATEGY]).strip('"') in STRATEGIES
    assert estimate_of(func) is not None


def test_explicit_options_are_obeyed():
    module = parse_module(graph_text("gemm_softmax", (8, 4, 64)))
    options = 'strategy=full at=OB factors="y_dram: M=4" model=ideal'
    lowered = run_passes(module, f"{edge},comet-accelerator{{{options}}}")
    (mapping,) = [op for op in lowered.walk() if isinstance(op, MappingOp)]
    assert (estimate := estimate_of(mapping)) is not None
    assert estimate.model == "ideal"
    files = write_files(lowered)
    assert "M=[4" in files["mapping.yaml"]
    assert check(files) == []


@one_of(2)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("at=L2", "no axis of mesh @edge is at level L2; its axes are at GB, OB"),
        (
            "kind=reduce_scatter_all_gather stream=false",
            "no 'collective.reduce_scatter'",
        ),
        ("strategy=full kind=gather stream=false", "stacks along the new dimension"),
        ("strategy=full bind=pipeline stream=false", "bind them sequential"),
        (
            'strategy=full factors="y_dram: M=3"',
            "factor 3 of M does not divide its extent 8",
        ),
        ("strategy=full bind=parallel stream=false", "cannot run in parallel"),
    ],
)
def test_rejects(options: str, message: str):
    module = parse_module(graph_text("gemm_softmax", (8, 4, 64)))
    with pytest.raises(PassFailedException, match=message):
        run_passes(module, f"{edge},comet-accelerator{{{options}}}")
    with session() as opened:
        assert opened.choices == []  # none of the failed pipeline is left open


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("field", "message"),
    [
        (
            "link_write_bw: 64, ",
            "a collective runs at GB, but the hardware file lacks link_write_bw of GB",
        ),
        (
            "parent_write_bw: 2048, ",
            "a tensor moves, but the hardware file lacks parent_write_bw of GB",
        ),
    ],
)
def test_a_rate_that_the_hardware_file_lacks(tmp_path: Path, field: str, message: str):
    text = (HARDWARE / "edge.yaml").read_text()
    assert field in text
    (tmp_path / "edge.yaml").write_text(text.replace(field, ""))
    module = parse_module(graph_text("gemm_softmax", (8, 4, 64)))
    attach = f'attach-hardware{{path="{tmp_path}/edge.yaml"}}'
    with pytest.raises((PassFailedException, CostError), match=message):
        run_passes(module, f"{attach},comet-accelerator{{dim=N strategy=full}}")


def test_an_unknown_dimension_is_rejected():
    module = parse_module(graph_text("gemm_softmax", (8, 4, 64)))
    with pytest.raises(
        PassFailedException, match="no dimension Q to shard; there are M, K, N"
    ):
        run_passes(module, f"{edge},comet-accelerator{{dim=Q}}")


def test_spatial_rows_are_full_or_idle():
    module = parse_module(graph_text("gemm_softmax", (7, 4, 8)))
    passes = ",".join(stages("full", "GB")[1:-2])
    passes = passes.replace("cx,cy,kx,ky", "cx,cy,kx")
    tree = run_passes(module, f"{edge},decompose{{accumulator=input}},{passes}")
    rows = {
        (row.axis, row.factor)
        for op in tree.walk()
        if isinstance(op, SpatialOp)
        for row in op.loops
    }
    assert rows == {("cx", 2), ("cy", 2), ("kx", 2), ("ky", 1)}


ATTENTION, CAUSAL = (
    next(op for op in NAMED_OPS if op.title == title)
    for title in ("attention", "attention_causal")
)


def mapping_of(module: ModuleOp, options: str) -> MappingOp:
    """Return the mapping that the pipeline makes on the edge machine."""
    lowered = run_passes(module, f"{edge},comet-accelerator{{{options}}}")
    assert check(write_files(lowered)) == []
    (mapping,) = [op for op in lowered.walk() if isinstance(op, MappingOp)]
    return mapping


def latency(mapping: MappingOp) -> float:
    estimate = estimate_of(mapping)
    assert estimate is not None
    return estimate.latency


def test_batches_and_heads_are_streamed():
    heads = {"B": 2, "H": 2, "M": 8, "N": 8, "D": 4, "E": 4}
    module = parse_module(ATTENTION.text(heads))
    mapping = mapping_of(module, "stream=true strategy=full")
    assert latency(mapping) > 0


@one_of(2)
@pytest.mark.parametrize(("strategy", "cheaper"), [("full", "false"), ("none", "true")])
def test_what_streams_is_compiled_both_ways(strategy: str, cheaper: str):
    """Where statistics go through DRAM, a fold reads the row once."""
    module = parse_module(graph_text("gemm_softmax", (16, 8, 32)))
    with session() as searched:
        mapping = mapping_of(module, f"strategy={strategy} dim=M")
    assert str(mapping.attributes[STREAM]) == cheaper
    (choice,) = (each for each in searched.choices if each.name == "mapping")
    ways: dict[str, list[float]] = {"stream=true": [], "stream=false": []}
    for row in choice.rows:
        if row.cost is not None:
            ways[row.label.partition(" ")[0]].append(row.cost.latency)
    assert all(ways.values())
    assert latency(mapping) == min(ways[f"stream={cheaper}"])
    assert latency(mapping) == min(map(min, ways.values()))


def test_what_costs_more_than_another_is_priced_but_not_lowered(
    monkeypatch: pytest.MonkeyPatch,
):
    lowered: list[ModuleOp] = []
    apply = LowerToCometPass.apply

    def counted(self: LowerToCometPass, ctx: Context, op: ModuleOp) -> None:
        lowered.append(op)
        apply(self, ctx, op)

    monkeypatch.setattr(LowerToCometPass, "apply", counted)
    module = parse_module(graph_text("gemm_softmax", (16, 8, 32)))
    with session() as searched:
        mapping_of(module, "stream=false")
    (choice,) = (each for each in searched.choices if each.name == "mapping")
    priced = {row.label: row.cost for row in choice.rows if row.cost is not None}
    assert len(lowered) < 1 + len(priced)  # the best one is lowered again at the end
    label, cost = max(priced.items(), key=lambda item: item[1].latency)
    estimate = estimate_of(mapping_of(module, label))
    assert estimate is not None
    assert estimate.latency == cost.latency > min(c.latency for c in priced.values())
    assert estimate.energy == pytest.approx(cost.energy)  # sums round otherwise


@pytest.mark.parametrize(("rows", "columns", "choices"), [(13, 17, 1), (16, 17, 4)])
def test_dimensions_that_no_axes_divide_are_one_choice(
    rows: int, columns: int, choices: int
):
    module = run_passes(parse_module(graph_text("gemm", (rows, 8, columns))), edge)
    elementary = run_passes(module, "decompose{accumulator=input}")
    assert len(CometAcceleratorPass().open_dims(elementary)) == choices


def test_what_does_not_stream_has_one_form():
    module = parse_module(graph_text("gemm", (32, 16, 64)))
    assert STREAM not in mapping_of(module, "strategy=full").attributes


def test_ops_that_use_a_value_are_sharded_alike():
    """The scores have a shard of M for their maximum, and another for the rest."""
    module = parse_module(graph_text("gemm_softmax", (128, 64, 256)))
    with pytest.raises(PassFailedException, match="shard all ops that use it along"):
        run_passes(module, f"{edge},comet-accelerator{{op=reduce dim=M}}")


@pytest.mark.parametrize("stream", ["auto", "true", "false"])
def test_causal_attention_needs_a_gpu(stream: str):
    module = parse_module(CAUSAL.text(CAUSAL.even))
    with pytest.raises(PassFailedException, match="masks and scans need a GPU"):
        mapping_of(module, f"stream={stream}")


@exhaustive
def test_the_streamed_dimension_is_not_shared():
    module = parse_module(ATTENTION.text(HEADS_EVEN))
    with pytest.raises(PassFailedException, match="distribute another dimension"):
        mapping_of(module, "stream=true dim=N")
    mapping = mapping_of(module, "dim=N strategy=full pad=none")
    assert str(mapping.attributes[STREAM]) == "false"


def test_the_buffers_of_two_products_together_do_not_fit():
    heads = {"B": 1, "H": 4, "M": 256, "N": 256, "D": 64, "E": 64}
    module = parse_module(ATTENTION.text(heads))
    with pytest.raises(
        PassFailedException,
        match=r"no valid mapping; the tiles do not fit WB: x1 \(32768 bytes\), x2 "
        r"\(2 bytes\) need 32770 bytes together at \S+, it holds 32768",
    ):
        mapping_of(module, "strategy=partial dim=H,M stream=false")


def test_what_is_below_the_roofline_is_not_preferred():
    """A product of one row: the tool loses the reads of its weights."""
    found: list[Figures] = []
    for allowed in ("", "allow_artifacts=true"):
        module = run_passes(
            parse_module(graph_text("gemm", (1, 128, 1024))),
            f"{edge},comet-accelerator{{model=tool pad=none dim=N {allowed}}}",
        )
        (mapping,) = (op for op in module.ops if isinstance(op, MappingOp))
        figures = estimate_of(mapping)
        assert figures is not None
        found.append(figures)
    preferred, artifact = found
    assert not preferred.is_artifact
    assert artifact.is_artifact
    assert artifact.roofline is not None
    assert artifact.latency < artifact.roofline <= preferred.latency
    assert artifact.limit == "the root memory, which takes 10,496 cycles"
