"""
Compares calls of Triton's language that are replayed with those that are not.

`python replay_cases.py` prints a JSON object: the cases that differ, and how many did
not raise.
"""

# Triton has no type stubs, and its interpreter no types.
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

from comet.runtime.interpreted import observed
from comet.runtime.memory import Access

MEMORY = torch.arange(64, dtype=torch.int32)
TYPES = ("int32", "int64", "uint32", "float16", "float32", "int1")
SEEDS = (0, 1)
SHAPES = ((), (4,), (2, 4))
TWO = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "floor": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "less": lambda x, y: x < y,
    "equal": lambda x, y: x == y,
    "and": lambda x, y: x & y,
    "where": lambda x, y: tl.where(x > y, x, y),
    "maximum": tl.maximum,
}
ONE = {
    "twice": lambda x: x + x,
    "square of another": lambda x: (x + 1) * (x + 1),
    "int": lambda x: x + 3,
    "zero": lambda x: x * 0.0,
    "minus zero": lambda x: x * -0.0,
    "true": lambda x: x + True,
    "one": lambda x: x + 1,
    "to": lambda x: x.to(tl.float16),
    "negative": lambda x: -x,
    "exp": lambda x: tl.exp(x.to(tl.float32)),
    "sum": lambda x: tl.sum(x, axis=0),
    "front": lambda x: x[None, :],
    "back": lambda x: x[:, None],
    "full": lambda x: tl.full((4,), 7, x.dtype),
    "arange": lambda x: tl.arange(0, 4) + x,
    "program": lambda x: tl.program_id(0) + x,
    "trans": tl.trans,
    "dot": lambda x: tl.dot(x, tl.trans(x)),
    "load": lambda x: tl.load(POINTER() + x % 8),
    "masked": lambda x: tl.load(POINTER() + x % 8, mask=x % 2 == 0, other=-1),
    "atomic": lambda x: tl.atomic_add(POINTER() + x % 8, 0, sem="acquire", scope="sys"),
}


class Unseen:
    """Observes nothing."""

    def before(self, access: Access) -> None:
        """Ignore it."""

    def after(self, access: Access) -> None:
        """Ignore it."""

    def fence(self) -> None:
        """Ignore it."""

    def poll(self, address: int, width: int, value: int) -> None:
        """Do not wait."""


def POINTER() -> Any:
    """Return a pointer to the memory, as a kernel gets it."""
    return interpreter._implicit_cvt(MEMORY)


def values(of: tuple[str, tuple[int, ...]], seed: int) -> Any:
    """Return a tensor of random numbers, none of them zero."""
    dtype, shape = of
    kind = getattr(tl, dtype)
    numbers = np.random.default_rng(seed).integers(1, 9, shape or (1,))
    data = numbers.astype(interpreter._get_np_dtype(kind))
    made = interpreter.TensorHandle(data, kind)
    return tl.tensor(made, tl.block_type(kind, list(shape)) if shape else kind)


def cases() -> Iterator[tuple[str, Callable[[int], Any]]]:
    """Yield calls by name; each takes the seed of its data."""
    kinds = list(itertools.product(TYPES, SHAPES))
    for name, act in ONE.items():
        for kind in kinds:
            yield f"{name} of {kind}", lambda seed, a=act, k=kind: a(values(k, seed))
    for name, act in TWO.items():
        pairs = list(itertools.product(kinds, kinds))
        for one, two in [*pairs[::7], *zip(kinds, kinds, strict=True)]:

            def call(seed: int, act: Any = act, one: Any = one, two: Any = two) -> Any:
                return act(values(one, seed), values(two, seed + 100))

            yield f"{name} of {one} and {two}", call


def outcome(call: Callable[[int], Any], seed: int) -> tuple[str, ...]:
    """Return all there is to know of a result, or of the error."""
    try:
        made = call(seed)
    except Exception as error:
        return (type(error).__name__,)
    data = made.handle.data
    kinds = (made.type, made.dtype, made.shape, made.handle.dtype, data.dtype)
    return *map(str, kinds), str(data.shape), data.tobytes().hex()


def outcomes(seeds: tuple[int, ...]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Return the outcome of each case with each seed."""
    interpreter.interpreter_builder.set_grid_dim(4, 1, 1)
    interpreter.interpreter_builder.set_grid_idx(2, 0, 0)
    with np.errstate(all="ignore"):
        return [(name, [outcome(call, s) for s in seeds]) for name, call in cases()]


def plain(seeds: tuple[int, ...]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Return the outcomes as Triton itself has them."""
    scope = interpreter._patch_lang(plain)
    try:
        return outcomes(seeds)
    finally:
        scope.restore()


def main() -> None:
    """Print the names of the cases that differ, and how many raised no error."""
    with observed(Unseen()):
        replayed = outcomes(SEEDS)
    expected = plain(SEEDS)
    pairs = zip(replayed, expected, strict=True)
    differ = [name for (name, now), (_, before) in pairs if now != before]
    right = sum(len(entry[0]) > 1 for _, entry in expected)
    print(json.dumps({"differ": differ, "right": right}))


if __name__ == "__main__":
    main()
