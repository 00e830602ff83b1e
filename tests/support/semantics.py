"""What tests of meaning share: parse IR, run passes, compare what functions compute."""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.parser import Parser
from xdsl.passes import PassPipeline
from xdsl.traits import SymbolTable

from comet.api.program import installed_context
from comet.dialects.compound.dims import BOOLEAN_TENSOR, INTEGER_TENSOR
from comet.dialects.compound.gather import id_limits
from comet.interpreter import FoldTree, run
from comet.interpreter.chunking import whole
from comet.interpreter.tensor import Array
from comet.tools.checks import verify_definitions
from comet.universe import installed

TOLERANCE = 1e-10
"""Largest difference, relative to the largest magnitude of a result, in float64."""


@cache
def comet_context() -> Context:
    """Return a context that knows every dialect that is installed."""
    return installed_context()


def parse_module(text: str, verify: bool = True) -> ModuleOp:
    """Parse IR, and verify it if `verify`; the same text is parsed once."""
    return (_verified if verify else _parsed)(text).clone()


@lru_cache(maxsize=1 << 8)
def _parsed(text: str) -> ModuleOp:
    return Parser(comet_context(), text).parse_module()


@lru_cache(maxsize=1 << 8)
def _verified(text: str) -> ModuleOp:
    module = _parsed(text)
    verify_definitions(module)
    module.verify()
    return module


def run_passes(module: ModuleOp, pipeline: str) -> ModuleOp:
    """Return a verified clone of `module` after the passes of `pipeline`."""
    after = module.clone()
    passes = PassPipeline.parse_spec(installed().all_passes, pipeline)
    passes.apply(comet_context().clone(), after)
    verify_definitions(after)
    after.verify()
    return after


def random_inputs(module: ModuleOp, name: str, seed: int = 0) -> list[Array]:
    """
    Return an array for every argument of a function: floats are standard normal.

    Counts go up to the largest extent of any argument, sometimes beyond their own; ids
    of a gather are positions of its table; booleans are 0 or 1.
    """
    function = SymbolTable.lookup_symbol(module, name)
    assert isinstance(function, func.FuncOp)
    generator = np.random.default_rng(seed)
    shapes: list[tuple[int, ...]] = []
    for type_ in function.function_type.inputs:
        assert isinstance(type_, TensorType)
        shapes.append(type_.get_shape())
    most = max((extent for shape in shapes for extent in shape), default=1)
    drawn: list[Array] = []
    arguments = function.body.block.args
    for shape, type_, value in zip(
        shapes, function.function_type.inputs, arguments, strict=True
    ):
        if INTEGER_TENSOR.verifies(type_) or BOOLEAN_TENSOR.verifies(type_):
            rows = list(id_limits(value))
            counts = (0, min(rows) - 1) if rows else (1, most)
            bounds = counts if INTEGER_TENSOR.verifies(type_) else (0, 1)
            numbers = generator.integers(*bounds, shape, endpoint=True)
            drawn.append(numbers.astype(np.float64))
        else:
            drawn.append(generator.standard_normal(shape))
    return drawn


def assert_close(actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """Check results against each other to `TOLERANCE`; NaN is never right."""
    assert len(actual) == len(expected)
    for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
        assert one.shape == other.shape
        assert np.all(np.isfinite(other)), f"expected result {index} is not finite"
        scale = np.max(np.abs(other), initial=0.0)
        error = np.max(np.abs(one - other), initial=0.0)
        assert error <= TOLERANCE * scale, (
            f"result {index} differs by {error:.3g}, its magnitude is {scale:.3g}"
        )


def assert_same_meaning(
    before: ModuleOp,
    after: ModuleOp,
    name: str,
    *,
    after_name: str | None = None,
    seed: int = 0,
    chunks: Callable[[int], FoldTree] = whole,
) -> None:
    """
    Check that a function computes the same before and after a pass.

    `after_name` is its name in `after`, if that is another; `chunks` cuts the folds
    of `after`.
    """
    inputs = random_inputs(before, name, seed)
    expected = run(before, name, inputs)
    assert_close(run(after, after_name or name, inputs, chunks), expected)
