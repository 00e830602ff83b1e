"""The blocks of `samples/blocks`: what they mean, after every pass and in Triton."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from block_formulas import FORMULAS
from covering import EVERY_CASE
from rank_runs import outcomes
from sample_blocks import BLOCKS, FOLDER, tiny_texts
from semantics import assert_close, comet_context, parse_module, random_inputs
from triton_modules import check_all, hardware, printed
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline

from comet.interpreter import run
from comet.interpreter.tensor import Array
from comet.passes.analysis.functions import compute_functions
from comet.passes.pipeline import run_passes
from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.universe import get_all_passes

TEXTS = tiny_texts()
GRADIENTS = [name for name, block in BLOCKS.items() if block.saved]
STEP = 1e-4
RANKS = {"parallel_mlp": 4}
COMPILED = [name for name in TEXTS if EVERY_CASE or not name.endswith("_backward")]


def names(module: ModuleOp) -> list[str]:
    """Return the names of the arguments of the only function."""
    (func,) = compute_functions(module)
    return [value.name_hint or "" for value in func.body.block.args]


def inputs(name: str) -> Mapping[str, Array]:
    """Return random arguments of a block."""
    module = parse_module(TEXTS[name])
    return dict(zip(names(module), random_inputs(module, name), strict=True))


def test_the_files_are_those_of_the_script():
    files = {path.stem: path.read_text() for path in FOLDER.glob("*.mlir")}
    assert files == TEXTS


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_its_formula(name: str):
    given = inputs(name)
    made = run(parse_module(TEXTS[name]), name, list(given.values()))
    assert_close(made, [FORMULAS[name](given)])


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_differences(name: str):
    """Along a random direction of each argument, by the formula on both sides."""
    block, given = BLOCKS[name], inputs(name)
    formula, random = FORMULAS[name], np.random.default_rng(1)
    seed = random.standard_normal(formula(given).shape)
    module = parse_module(TEXTS[f"{name}_backward"])
    saved = run(parse_module(block.saving_text(name)), name, list(given.values()))
    known = {**given, **dict(zip(block.saved, saved, strict=True)), "d_z": seed}
    found = run(module, f"{name}_backward", [known[value] for value in names(module)])
    wrt = [value for value in given if value not in block.constant]
    for value, gradient in zip(wrt, found, strict=True):
        way = random.standard_normal(gradient.shape)
        ends = (
            formula({**given, value: given[value] + sign * STEP * way})
            for sign in (1, -1)
        )
        more, less = (np.sum(seed * end) for end in ends)
        expected = (more - less) / (2 * STEP)
        assert np.sum(gradient * way) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", GRADIENTS)
def test_no_gradient_takes_scores(name: str):
    """Nothing that is given or returned has as many numbers as pairs of tokens."""
    (func,) = compute_functions(parse_module(TEXTS[f"{name}_backward"]))
    text = str(func.function_type)
    assert "M, N" not in text


@cache
def compiled(name: str) -> str:
    """Compile a block; check what it means after every pass down to kernels."""
    given, ranks = inputs(name), RANKS.get(name, 1)
    module = parse_module(TEXTS[name])
    arrays = list(given.values())
    expected = run(module, name, arrays)

    @contextmanager
    def checking(each: ModulePass, module: ModuleOp) -> Generator[None]:
        yield
        if each.name not in ("lower-to-triton", "triton-distributed"):
            assert_close(run(module, name, arrays), expected)

    context = comet_context().clone()
    attach = hardware("h200x8.yaml" if ranks > 1 else "h200x1.yaml")
    PassPipeline.parse_spec(get_all_passes(), attach).apply(context, module)
    run_passes([TritonDistributedPass(ranks=ranks)], context, module, checking)
    return printed(module)


def test_blocks_run_on_one_gpu(tmp_path: Path):
    sources = {name: compiled(name) for name in COMPILED if name not in RANKS}
    reports = check_all(sources, tmp_path)
    assert [report for report in reports.values() if not report["ok"]] == []


def test_blocks_run_on_several_gpus(tmp_path: Path):
    sources = {name: compiled(name) for name in RANKS}
    assert outcomes(sources, tmp_path, seeds=1) == dict.fromkeys(sources, "right")
