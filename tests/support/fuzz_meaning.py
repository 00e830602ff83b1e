"""Whether passes keep what functions compute, and how well that is known."""

from __future__ import annotations

import math
import signal
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType

import numpy as np
import torch
from semantics import comet_context, installed, random_inputs
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerType, ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass, PassPipeline
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import InterpretationError

from comet.dialects.compound import ContractOp, FoldOp, ReduceKind, ReduceOp
from comet.dialects.compound.dims import element_type_of
from comet.interpreter.chunking import FoldTree, Merge, Steps, whole
from comet.interpreter.machine import Interpreter, dims_of, evaluate, run
from comet.interpreter.tensor import Array, Tensor
from comet.passes.analysis.functions import compute_functions
from comet.passes.graph.expand_maps import ExpandMapsPass
from comet.passes.graph.expand_vectors import ExpandVectorsPass
from comet.passes.pipeline import Pipeline, run_passes
from comet.runtime.check import relative_error

LARGEST = 200_000
"""Elements of one value that is still interpreted."""
TOLERANCE = 1e-9
"""The largest difference of a result in float64, see `relative_error`."""

APPROXIMATE = 1e-3
"""The same after a pass that approximates: later ops may make its error larger."""

ROUNDINGS = 40
"""How many times the error of roundings is no wrong result."""


@dataclass(frozen=True)
class Meaning:
    """What functions of a module compute on random inputs, by name."""

    module: ModuleOp
    inputs: Mapping[str, list[Array]]
    results: Mapping[str, list[Array]]


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


def compiled(module: ModuleOp, pipeline: str, expected: Meaning) -> ModuleOp:
    """
    Return what passes make of a copy of `module`.

    Raises `OtherMeaning` after the first pass, also inside a pipeline, with which
    functions do not compute what is expected of them.
    """

    @contextmanager
    def watched(each: ModulePass, module: ModuleOp) -> Generator[None]:
        nonlocal expected
        yield
        if isinstance(each, ExpandVectorsPass):
            expected = with_rows(expected, module)
        close = APPROXIMATE if isinstance(each, ExpandMapsPass) else TOLERANCE
        if isinstance(each, Pipeline):
            return
        if what := difference(expected, module, close):
            raise OtherMeaning(f"after {each.name}: {what}")
        if isinstance(each, ExpandMapsPass):
            expected = renewed(expected, module)

    known, copy = installed().all_passes, module.clone()
    passes = PassPipeline.parse_spec(known, pipeline).passes
    run_passes(passes, comet_context().clone(), copy, watched)
    copy.verify()
    return copy


def meaning_of(module: ModuleOp) -> Meaning:
    """
    Return what functions compute on random inputs; nothing if a value is large.

    A function computes nothing definite if it depends on how its folds are cut.
    """
    names = () if _largest(module) > LARGEST else _functions(module)
    inputs = {name: random_inputs(module, name) for name in names}
    found = {name: _results(module, name, inputs[name]) for name in names}
    meaning = Meaning(module, inputs, found)
    if any(isinstance(op, FoldOp) for op in module.walk()):
        found = {name: r for name, r in found.items() if _is_lawful(meaning, name)}
    return replace(meaning, results=found)


def _steps(size: int) -> FoldTree:
    return Steps((size,) if size else ())


CUTS: tuple[Callable[[int], FoldTree], ...] = (
    lambda extent: Steps((1,) * extent),
    lambda extent: Merge(_steps(extent // 2), _steps(extent - extent // 2)),
    lambda extent: Merge(_steps(extent), _steps(0)),
    lambda extent: Merge(_steps(0), _steps(extent)),
)
"""Other ways to cut a fold: chunks of one element, halves, and all with nothing."""


def _is_lawful(meaning: Meaning, name: str) -> bool:
    """Whether a function computes the same however its folds are cut."""
    inputs, expected = meaning.inputs[name], meaning.results[name]
    try:
        cuts = [_results(meaning.module, name, inputs, cut) for cut in CUTS]
    except (InterpretationError, ValueError):
        return False  # A step that computes on the whole extent takes no chunk.
    return all(_largest_error(results, expected) <= TOLERANCE for results in cuts)


def _functions(module: ModuleOp) -> list[str]:
    """Return the names of the functions that take and compute tensors."""
    return [
        function.sym_name.data
        for function in compute_functions(module)
        if all(isinstance(type_, TensorType) for type_ in function.function_type.inputs)
    ]


def _results(
    module: ModuleOp,
    name: str,
    inputs: Sequence[Array],
    chunks: Callable[[int], FoldTree] = whole,
) -> list[Array]:
    with np.errstate(all="ignore"):
        return run(module, name, inputs, chunks)


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


def renewed(before: Meaning, after: ModuleOp) -> Meaning:
    """Return the meaning that a pass which approximates leaves."""
    found = {
        name: _results(after, name, before.inputs[name]) for name in before.results
    }
    return replace(before, results=found)


def with_rows(before: Meaning, after: ModuleOp) -> Meaning:
    """Return the same meaning on the shapes of `after`, with dimensions of one."""

    def shaped(arrays: Sequence[Array], types: Iterable[Attribute]) -> list[Array]:
        pairs = zip(arrays, types, strict=True)
        return [array.reshape(shape_of(type_)) for array, type_ in pairs]

    inputs, results = dict(before.inputs), dict(before.results)
    for function in compute_functions(after):
        name, types = function.sym_name.data, function.function_type
        if name in inputs:
            inputs[name] = shaped(inputs[name], types.inputs)
        if name in results:
            results[name] = shaped(results[name], types.outputs)
    return Meaning(after.clone(), inputs, results)


def difference(before: Meaning, after: ModuleOp, close: float = TOLERANCE) -> str:
    """Say how the functions of `after` differ from those before; empty if not."""
    for name, expected in before.results.items():
        if name not in _functions(after) or not all(map(_is_finite, expected)):
            continue
        try:
            actual = _results(after, name, before.inputs[name])
        except InterpretationError as error:
            if "has no meaning" in str(error):
                return ""
            return f"the interpreter fails: {error}"
        except Exception as error:
            return f"the interpreter fails with {type(error).__name__}: {error}"
        if [a.shape for a in actual] != [e.shape for e in expected]:
            return "another number of results, or other shapes"
        error = _largest_error(actual, expected)
        if not (error <= close or _is_cancelled(before, name, error)):
            return "another value"
    return ""


def _is_cancelled(before: Meaning, name: str, error: float) -> bool:
    """Return whether terms cancel each other, so that little but roundings is left."""
    inputs = [before.inputs[name]]
    return error <= ROUNDINGS * sensitivity(before.module, name, inputs, DOUBLE)


def _is_finite(array: Array) -> bool:
    return bool(np.isfinite(array).all())


@dataclass(frozen=True)
class Precision:
    """How exact an element type is."""

    epsilon: float
    """The relative error of a rounding; that of f32 is a short sum's."""
    most: float
    """The largest value: what is beyond is infinite."""


PRECISIONS = {
    "f16": Precision(2.0**-10, 65504.0),
    "bf16": Precision(2.0**-7, 3.38e38),
    "f32": Precision(2.0**-22, 3.4e38),
}
DOUBLE = Precision(2.0**-52, math.inf)
"""That of the interpreter, whatever the type."""


@dataclass(frozen=True)
class Rounding(Interpreter):
    """
    An interpreter whose every value is off by a random rounding error.

    Whole numbers are exact, such as positions, and what a mask makes of them.
    """

    precision: Precision | None = None
    """None: that of the result's type."""
    generator: np.random.Generator = field(default_factory=np.random.default_rng)

    def kept(self, result: SSAValue, value: Tensor) -> Tensor:
        """
        Return the value with a rounding error of its type.

        A sum whose terms are together beyond the largest value may overflow in some
        order, to either side, so it is no number unless it is infinite in every order.
        """
        element = element_type_of(result)
        if isinstance(element, IntegerType):
            return value
        precision = self.precision or PRECISIONS[str(element)]
        rounded = self.rounded(value, precision)
        if (terms := self._magnitudes(result)) is None:
            return rounded
        lost = (terms.data > precision.most) & np.isfinite(rounded.data)
        return replace(rounded, data=np.where(lost, np.nan, rounded.data))

    def _magnitudes(self, result: SSAValue) -> Tensor | None:
        """Return the sum of the magnitudes of the terms of a sum; None of no sum."""
        op = result.owner
        match op:
            case ContractOp():
                pass
            case ReduceOp() if op.kind.data is ReduceKind.ADD:
                pass
            case _:
                return None
        operands = [self.values[operand] for operand in op.operands]
        sizes = tuple(replace(value, data=abs(value.data)) for value in operands)
        (magnitudes,) = evaluate(op, self, sizes)
        return magnitudes

    def rounded(self, value: Tensor, precision: Precision) -> Tensor:
        """Return the value with an error of a precision, infinite where it is large."""
        size, noise = abs(value.data), self.generator.uniform(-1, 1, value.data.shape)
        exact = (value.data == value.data.round()) & (size * precision.epsilon < 1)
        data = value.data * np.where(exact, 1, 1 + precision.epsilon * noise)
        infinite = np.copysign(np.inf, data)
        return replace(value, data=np.where(size > precision.most, infinite, data))


def sensitivity(
    module: ModuleOp,
    name: str,
    inputs: Sequence[Sequence[Array]],
    precision: Precision | None = None,
) -> float:
    """
    Return the relative error that roundings alone may cause on any of some inputs.

    Monte Carlo arithmetic (D. S. Parker, Monte Carlo Arithmetic, UCLA CSD-970002,
    1997): the largest error of some runs in which every result of an op is off by up to
    one rounding. So is every argument, in f32, as sums of it are.
    """
    with np.errstate(all="ignore"):
        return max(
            _error_of_rounding(module, name, arrays, precision, seed)
            for arrays in inputs
            for seed in range(4)
        )


def _error_of_rounding(
    module: ModuleOp,
    name: str,
    inputs: Sequence[Array],
    precision: Precision | None,
    seed: int,
) -> float:
    function = SymbolTable.lookup_symbol(module, name)
    assert isinstance(function, func.FuncOp)
    arguments = [
        Tensor((), dims_of(type_), array)
        for type_, array in zip(function.function_type.inputs, inputs, strict=True)
    ]
    generator = np.random.default_rng(seed)
    machine = Rounding(module, precision=precision, generator=generator)
    inexact = [machine.rounded(a, precision or PRECISIONS["f32"]) for a in arguments]
    rounded = [value.data for value in machine.call(name, inexact)]
    error = _largest_error(rounded, run(module, name, inputs))
    return error if math.isfinite(error) else math.inf


def _largest_error(results: Sequence[Array], references: Sequence[Array]) -> float:
    """Return the largest relative error of any result; nan where one is not finite."""
    errors = [
        relative_error(torch.tensor(result), torch.tensor(reference))
        for result, reference in zip(results, references, strict=True)
        if result.size
    ]
    return float(np.max(errors)) if errors else 0.0
