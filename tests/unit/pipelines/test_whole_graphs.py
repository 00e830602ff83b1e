"""Whole graphs in elementary form, such as blocks of transformers, become kernels."""

from pathlib import Path

import pytest
from covering import exhaustive, one_of
from forgetting import forget_kernels
from gpu_graphs import H200, REDUCED_THEN_KEPT, SOFTMAX
from graph_text import Program
from rank_runs import outcomes
from semantics import assert_same_meaning, parse_module, run_passes
from transformer_blocks import GRAPHS, llama_block, norm_and_mlp
from triton_modules import emitted, hardware, wrong
from xdsl.dialects.builtin import ModuleOp

from comet.dialects.compound.dims import extents_of
from comet.dialects.schedule import SpatialOp
from comet.passes.schedule.fuse.gpu import trial

ONE_GPU = f"{hardware('h200x1.yaml')},triton-distributed{{ranks=1}}"
FULL = ONE_GPU.replace("ranks=1", "ranks=1 strategy=full")
LONG = {"M": 33, "N": 33, "D": 256, "H": 4, "E": 32, "G": 32, "F": 300}
"""Sizes with which a block does not fit one kernel."""


def on_two_gpus(dim: str) -> str:
    """Return the pipeline for two GPUs that share a dimension."""
    return f"{hardware('h200x8.yaml')},triton-distributed{{ranks=2 dim={dim}}}"


def kernels(module: ModuleOp) -> list[SpatialOp]:
    return [op for op in module.walk() if isinstance(op, SpatialOp)]


def test_every_graph_runs_on_one_gpu(tmp_path: Path):
    sources = {name: emitted(text, FULL) for name, text in GRAPHS.items()}
    assert not wrong(sources, tmp_path)


@exhaustive
def test_graphs_run_on_two_gpus(tmp_path: Path):
    shared = {
        "two_layer_norms": "D",
        "llama_block": "H",
        "reduced_then_kept": "N",
    }
    texts = {**GRAPHS, "reduced_then_kept": REDUCED_THEN_KEPT}
    sources = {
        name: emitted(texts[name], on_two_gpus(dim)) for name, dim in shared.items()
    }
    assert outcomes(sources, tmp_path, seeds=1) == dict.fromkeys(shared, "right")


@one_of(2)
@pytest.mark.parametrize(
    "strategy", [pytest.param("partial", marks=exhaustive), "full"]
)
def test_a_block_that_does_not_fit_a_kernel_is_cut(strategy: str):
    before = run_passes(parse_module(llama_block(LONG)), H200)
    after = run_passes(before, f"fuse{{strategy={strategy}}},tile")
    isolate_contractions = run_passes(before, "fuse{strategy=none}")
    assert 2 < len(kernels(after)) < len(kernels(isolate_contractions))
    assert_same_meaning(before, after, "main")


def test_a_kernel_that_is_not_lowered_is_cut(monkeypatch: pytest.MonkeyPatch):
    """As if Triton took no product and no exponential in one kernel."""

    def refused(node: SpatialOp, tiling: object, system: object) -> str:
        text = str(node)
        return "no" if "contract" in text and "map exp" in text else ""

    forget_kernels(monkeypatch)
    monkeypatch.setattr(trial, "refusal", refused)
    before = run_passes(
        parse_module(SOFTMAX.format(M=7, N=13, K=5)), f"{H200},decompose"
    )
    after = run_passes(before, "fuse{strategy=full}")
    assert len(kernels(after)) == 2
    assert_same_meaning(before, after, "f")


def test_a_kernel_is_cut_where_least_goes_through_memory():
    """Behind the root of a row, which is shorter than the row that it scales."""
    text = norm_and_mlp({"M": 128, "D": 4096, "F": 2816}, "bf16")
    module = run_passes(parse_module(text), f"{H200},fuse{{strategy=full}}")
    made = [[value.name_hint for value in node.outs] for node in kernels(module)]
    assert made == [["h_scale"], ["gated"], ["z"]]


def test_a_product_with_two_column_dimensions_is_one_of_matrices():
    p = Program({"M": 64, "D": 128, "H": 4, "E": 32})
    q = p.contract("q", p.argument("h", "MD"), p.argument("w", "DHE"), "HME")
    module = run_passes(parse_module(p.returning(q)), f"{H200},fuse,tile")
    (kernel,) = kernels(module)
    assert all(extents_of(tile).get("H", 1) == 1 for tile in kernel.tiles)
    assert "tl.dot(" in emitted(p.returning(q), ONE_GPU)


def test_a_product_with_two_summed_dimensions_is_one_of_matrices():
    p = Program({"M": 64, "D": 128, "H": 4, "G": 32})
    o = p.contract("o", p.argument("mixed", "HMG"), p.argument("w", "HGD"), "MD")
    source = emitted(p.returning(o), ONE_GPU)
    assert "tl.dot(" in source
    assert "for h in range(" in source
