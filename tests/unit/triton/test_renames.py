"""Views under other names and in parts, along every axis: meaning, and kernels."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from covering import exhaustive, one_of
from semantics import assert_close, parse_module, random_inputs
from triton_modules import check_all, emitted, hardware, wrong
from xdsl.dialects.func import FuncOp

from comet.codegen.numpy_reference import ReferencePrinter
from comet.interpreter import run

ONE_GPU = f"{hardware('h200x1.yaml')},triton-distributed{{strategy=full}}"
EXTENTS = {"A": 6, "B": 4, "C": 10}


def tensor(extents: dict[str, int]) -> str:
    """Return the type of a tensor of f32."""
    shape = "x".join(map(str, extents.values()))
    return f"tensor<{shape}xf32, #compound.dims<{', '.join(extents)}>>"


def program(rank: int, axis: int, parts: int) -> str:
    """Return @main, which maps a view of what it has computed; 1 part only renames."""
    before = dict(list(EXTENTS.items())[:rank])
    dim = list(before)[axis]
    after: dict[str, int] = {}
    for name, extent in before.items():
        if name != dim:
            after[name] = extent
        elif parts == 1:
            after["Z"] = extent
        else:
            after |= {"P": parts, "Z": extent // parts}
    x, y = tensor(before), tensor(after)
    split = f'split "{dim}" ' if parts > 1 else ""
    return f"""
    func.func @main(%x: {x}) -> {y} {{
      %e = compound.map exp %x : {x} -> {x}
      %r = compound.rename %e {split}: {x} -> {y}
      %y = compound.map tanh %r : {y} -> {y}
      func.return %y : {y}
    }}"""


def programs() -> Iterator[tuple[str, str]]:
    """Yield the programs by name: every axis of every rank, named anew and split."""
    for rank in range(1, len(EXTENTS) + 1):
        for axis in range(rank):
            for parts in (1, 2):
                yield (
                    f"rank_{rank}_axis_{axis}_parts_{parts}",
                    program(rank, axis, parts),
                )


PROGRAMS = dict(programs())


def reference(text: str) -> Callable[..., np.ndarray]:
    """Return what Python makes of the printed reference of @main."""
    (function,) = (op for op in parse_module(text).ops if isinstance(op, FuncOp))
    source = "\n".join(ReferencePrinter(function).lines())
    namespace: dict[str, Callable[..., np.ndarray]] = {}
    exec(source, {"np": np}, namespace)
    return namespace["main"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_printed_reference_means_what_the_interpreter_says(name: str):
    module = parse_module(PROGRAMS[name])
    inputs = random_inputs(module, "main")
    assert_close([reference(PROGRAMS[name])(*inputs)], run(module, "main", inputs))


@exhaustive
def test_kernels_read_views_along_every_axis(tmp_path: Path):
    sources = {name: emitted(text, ONE_GPU) for name, text in PROGRAMS.items()}
    assert not wrong(sources, tmp_path)


MN, RN = (tensor({rows: 4, "N": 32}) for rows in "MR")
RENAMED_RECEIVED = f"""
    func.func @main(%x: {MN}) -> {RN} {{
      %e = compound.map exp %x : {MN} -> {MN}
      %r = compound.rename %e : {MN} -> {RN}
      %y = compound.map tanh %r : {RN} -> {RN}
      func.return %y : {RN}
    }}"""
"""Every rank computes rows M, and reads all of them as R."""


@one_of(2)
@pytest.mark.parametrize("pattern", ["push", "pull"])
def test_blocks_are_awaited_under_their_name_in_the_consumer(
    pattern: str, tmp_path: Path
):
    passes = (
        "select-ranks{ranks=2},decompose,distribute{dim=M axes=rank},"
        "insert-collectives,fuse{between=auto},tile,outline-kernels,"
        f'bsp-to-dataflow{{pattern={pattern} blocks="M=2"}},lower-channels,verify-sync,'
        "lower-to-triton"
    )
    source = emitted(RENAMED_RECEIVED, f"{hardware('h200x8.yaml')},{passes}")
    assert check_all({pattern: source}, tmp_path)[pattern]["ok"]
