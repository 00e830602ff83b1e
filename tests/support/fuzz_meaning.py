"""Whether passes keep what functions compute, and how well that is known."""

from __future__ import annotations

import math
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType

import numpy as np
import torch
from semantics import comet_context, random_inputs
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass, PassPipeline
from xdsl.traits import SymbolTable
from xdsl.universe import Universe
from xdsl.utils.exceptions import InterpretationError

from comet.dialects.compound.dims import element_type_of
from comet.interpreter.machine import Machine, dims_of, run
from comet.interpreter.tensor import Array, Tensor
from comet.passes.analysis.functions import compute_functions
from comet.passes.pipeline import Pipeline, run_passes
from comet.runtime.check import relative_error

LARGEST = 200_000
"""Elements of one value that is still interpreted."""
TOLERANCE = 1e-9
"""The largest difference of a result in float64, see `relative_error`."""

Results = dict[str, list[Array]]
"""What functions compute, by name."""


class Hang(BaseException):
    """A case took too long."""


@contextmanager
def limited(seconds: float) -> Generator[None]:
    """Raise `Hang` in the body once it has used so much processor time."""

    def stop(signum: int, frame: FrameType | None) -> None:
        where = "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
        raise Hang(where)

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class OtherMeaning(Exception):
    """A pass has changed what a function computes; the message says which and how."""


def compiled(module: ModuleOp, pipeline: str, expected: Results) -> ModuleOp:
    """
    Return what passes make of a copy of `module`.

    Raises `OtherMeaning` after the first pass, also inside a pipeline, with which
    functions do not compute what is expected of them.
    """

    @contextmanager
    def watched(each: ModulePass, module: ModuleOp) -> Generator[None]:
        yield
        if not isinstance(each, Pipeline) and (what := difference(expected, module)):
            raise OtherMeaning(f"after {each.name}: {what}")

    known, copy = Universe.get_multiverse().all_passes, module.clone()
    passes = PassPipeline.parse_spec(known, pipeline).passes
    run_passes(passes, comet_context().clone(), copy, watched)
    copy.verify()
    return copy


def results_of(module: ModuleOp) -> Results:
    """Return what each function computes on random inputs; nothing if one is large."""
    found: Results = {}
    if _largest(module) > LARGEST:
        return found
    for name in _functions(module):
        found[name] = _results(module, name)
    return found


def _functions(module: ModuleOp) -> list[str]:
    """Return the names of the functions that take and compute tensors."""
    return [
        function.sym_name.data
        for function in compute_functions(module)
        if all(isinstance(type_, TensorType) for type_ in function.function_type.inputs)
    ]


def _results(module: ModuleOp, name: str) -> list[Array]:
    with np.errstate(all="ignore"):
        return run(module, name, random_inputs(module, name))


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """Return the shape of a tensor; none of what is no tensor."""
    return type_.get_shape() if isinstance(type_, TensorType) else ()


def _largest(module: ModuleOp) -> int:
    """Return the number of elements of the largest value."""
    return max(
        (math.prod(shape_of(value.type)) for value in _values(module)), default=0
    )


def _values(module: ModuleOp) -> Iterator[SSAValue]:
    for op in module.walk():
        yield from op.results
        for block in (block for region in op.regions for block in region.blocks):
            yield from block.args


def difference(before: Results, after: ModuleOp) -> str:
    """Say how the functions of `after` differ from the results before; empty if not."""
    for name, expected in before.items():
        if name not in _functions(after) or not all(map(_is_finite, expected)):
            continue
        try:
            actual = _results(after, name)
        except InterpretationError as error:
            if "has no meaning" in str(error):
                return ""
            return f"the interpreter fails: {error}"
        except Exception as error:
            return f"the interpreter fails with {type(error).__name__}: {error}"
        if [a.shape for a in actual] != [e.shape for e in expected]:
            return "another number of results, or other shapes"
        errors = [
            _error(*pair) for pair in zip(actual, expected, strict=True) if pair[0].size
        ]
        if not all(error <= TOLERANCE for error in errors):
            return "another value"
    return ""


def _is_finite(array: Array) -> bool:
    return bool(np.isfinite(array).all())


EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-22}
"""Errors of a rounding to an element type, relative; that of f32 is a short sum's."""

MOST = {"f16": 65504.0, "bf16": 3.38e38, "f32": 3.4e38}
"""The largest values of element types: what is beyond is infinite."""


@dataclass(frozen=True)
class Rounding(Machine):
    """An interpreter whose every result is off by a random rounding error."""

    generator: np.random.Generator = field(default_factory=np.random.default_rng)

    def kept(self, result: SSAValue, value: Tensor) -> Tensor:
        """Return the value with a rounding error; it overflows as its type does."""
        element = str(element_type_of(result))
        noise = self.generator.uniform(-1, 1, value.data.shape)
        data = value.data * (1 + EPSILON[element] * noise)
        return replace(value, data=np.where(abs(data) > MOST[element], np.inf, data))


def sensitivity(module: ModuleOp, name: str) -> float:
    """
    Return the relative error that roundings alone may cause in results of a function.

    Monte Carlo arithmetic (D. S. Parker, Monte Carlo Arithmetic, UCLA CSD-970002,
    1997): the largest error of some runs in which every result of an op is off by up to
    one rounding.
    """
    with np.errstate(all="ignore"):
        return max(_error_of_rounding(module, name, seed) for seed in range(4))


def _error_of_rounding(module: ModuleOp, name: str, seed: int) -> float:
    function = SymbolTable.lookup_symbol(module, name)
    assert isinstance(function, func.FuncOp)
    inputs = random_inputs(module, name, seed)
    arguments = [
        Tensor((), dims_of(type_), array)
        for type_, array in zip(function.function_type.inputs, inputs, strict=True)
    ]
    machine = Rounding(module, generator=np.random.default_rng(seed))
    rounded = machine.call(name, arguments)
    exact = run(module, name, inputs)
    pairs = zip(rounded, exact, strict=True)
    errors = [_error(value.data, other) for value, other in pairs if other.size]
    finite = all(math.isfinite(error) for error in errors)
    return max(errors, default=0.0) if finite else math.inf


def _error(result: Array, reference: Array) -> float:
    return relative_error(torch.tensor(result), torch.tensor(reference))
