"""The blocks of `samples/blocks`: what they mean, after every pass and in Triton."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
import pytest
from block_formulas import FORMULAS, FURTHER
from covering import EVERY_CASE, exhaustive
from graph_text import Program
from rank_runs import outcomes
from sample_blocks import BLOCKS, FOLDER, tiny_texts
from semantics import (
    assert_close,
    comet_context,
    parse_module,
    random_inputs,
    run_passes,
)
from triton_modules import hardware, printed, wrong
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline

from comet.dialects import tl
from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import extents_of, names_of
from comet.dialects.schedule.attributes import BlocksAttr
from comet.dialects.tl.math import MIN_DOT_EXTENT
from comet.interpreter import run
from comet.interpreter.tensor import Array
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.grid import grid_nodes
from comet.passes.pipeline import run_passes as run_each
from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.passes.triton.lower_to_triton.ops import dot_form
from comet.universe import get_all_passes

TEXTS = tiny_texts()
GRADIENTS = [name for name, block in BLOCKS.items() if block.saved]
STEP = 1e-4
RANKS = {"parallel_mlp": 4}
FEW = ("experts",)
COMPILED = [*TEXTS] if EVERY_CASE else [*FEW, *RANKS]
"""`make exhaustive` compiles all blocks, and the gradients."""


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
    further = FURTHER[name](given) if name in FURTHER else []
    assert_close(made, [FORMULAS[name](given), *further])


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
        if not any(isinstance(op, tl.KernelOp) for op in module.ops):
            assert_close(run(module, name, arrays), expected)

    context = comet_context().clone()
    attach = hardware("h200x8.yaml" if ranks > 1 else "h200x1.yaml")
    PassPipeline.parse_spec(get_all_passes(), attach).apply(context, module)
    run_each([TritonDistributedPass(ranks=ranks)], context, module, checking)
    return printed(module)


def test_blocks_run_on_one_gpu(tmp_path: Path):
    sources = {name: compiled(name) for name in COMPILED if name not in RANKS}
    assert not wrong(sources, tmp_path)


@exhaustive
def test_blocks_run_on_several_gpus(tmp_path: Path):
    sources = {name: compiled(name) for name in RANKS}
    assert outcomes(sources, tmp_path, seeds=1) == dict.fromkeys(sources, "right")


def queries_and_keys() -> str:
    """Return two products of a value; one has R as further columns."""
    p = Program({"M": 32, "D": 128, "K": 2, "R": 2, "E": 16}, "bf16", "f32")
    h = p.argument("h", "MD")
    q = p.contract("q", h, p.argument("wq", "DKRE"), "KRME")
    return p.returning(q, p.contract("k", h, p.argument("wk", "DKE"), "KME"))


def test_products_of_many_dimensions_are_dots():
    assert check_dots(queries_and_keys(), 1) == 2


@exhaustive
@pytest.mark.parametrize("name", BLOCKS)
def test_products_of_wide_blocks_are_dots(name: str):
    block = BLOCKS[name]
    text = block.text(name, block.wide, "bf16")
    written = text.count("compound.contract")
    assert check_dots(text, RANKS.get(name, 1)) >= written


def check_dots(text: str, ranks: int) -> int:
    """
    Compile a graph, and check that all products that are large enough are dots.

    Dimensions of rows, columns and terms count together. Returns how many products
    the kernels have.
    """
    attach = hardware("h200x8.yaml" if ranks > 1 else "h200x1.yaml")
    options = f"ranks={ranks} to=dataflow"
    module = run_passes(
        parse_module(text), f"{attach},triton-distributed{{{options}}},pad-blocks"
    )
    products = [
        (op, node.blocks)
        for func in compute_functions(module)
        for node in grid_nodes(func)
        for op in node.walk()
        if isinstance(op, ContractOp)
    ]
    for op, blocks in products:
        assert blocks is not None
        assert dot_form(op, blocks) or not is_large(op, blocks)
    return len(products)


def is_large(op: ContractOp, blocks: BlocksAttr) -> bool:
    """Return whether rows, columns and terms are each as many as a dot takes."""
    size = {
        dim: blocks.size(dim, tile)
        for value in op.operands
        for dim, tile in extents_of(value).items()
    }
    lhs, rhs, out = (set(names_of(value)) for value in (*op.operands, op.result))
    groups = lhs - rhs, rhs - lhs, (lhs & rhs) - out
    return all(prod(size[dim] for dim in dims) >= MIN_DOT_EXTENT for dims in groups)
