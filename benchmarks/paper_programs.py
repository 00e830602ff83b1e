"""The programs of benchmarks/paper.py: shapes, machines, elementary IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from comet.api.program import installed_context
from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.graph.decompose import DecomposePass

HARDWARE = Path(__file__).parents[1] / "samples" / "hardware"

Machine = Literal["edge", "cloud"]
Shape = tuple[int, ...]
"""M, N, K of a GEMM; heads, queries, keys and the size of a head of attention."""

GEMMS: Mapping[Machine, Sequence[Shape]] = {
    "edge": (
        (256, 256, 128),
        (1024, 1024, 256),
        (1, 1024, 128),
        (1, 512, 256),
        (1, 2048, 256),
        (512, 256, 128),
    ),
    "cloud": (
        (256, 256, 512),
        (2048, 2048, 256),
        (1, 4096, 512),
        (1, 8192, 128),
        (1, 16384, 128),
        (1024, 1024, 512),
    ),
}
"""The shapes of the paper."""

HEADS: Mapping[Machine, Sequence[Shape]] = {
    "edge": (
        (4, 128, 128, 64),
        (4, 256, 256, 64),
        (2, 512, 512, 64),
        (2, 64, 2048, 64),
    ),
    "cloud": ((8, 256, 256, 64), (8, 512, 512, 64)),
}
"""Our own choice."""

SHAPES: Mapping[str, Mapping[Machine, Sequence[Shape]]] = {
    "gemm_softmax": GEMMS,
    "gemm_layernorm": GEMMS,
    "attention": HEADS,
}


def program(op: str, shape: Shape, element: str = "f16") -> str:
    """Return the text of a module with one compound op on tensors of `element`."""
    inputs, result = tensors(op, shape)
    names = [f"%x{i}" for i in range(len(inputs))]
    types = ["x".join(map(str, extents)) for extents in inputs]
    types = [f"tensor<{text}x{element}>" for text in types]
    out = f"tensor<{'x'.join(map(str, result))}x{element}>"
    args = ", ".join(f"{name}: {t}" for name, t in zip(names, types, strict=True))
    epsilon = " epsilon 1.0e-5" if op == "gemm_layernorm" else ""
    return (
        f"func.func @{op}({args}) -> {out} {{\n"
        f"  %p = compound.{op} {', '.join(names)}{epsilon}"
        f" : ({', '.join(types)}) -> {out}\n"
        f"  func.return %p : {out}\n}}\n"
    )


def tensors(op: str, shape: Shape) -> tuple[list[Shape], Shape]:
    """Return the extents of an op's inputs and of its result."""
    if op == "attention":
        heads, queries, keys, size = shape
        q, kv = (1, heads, queries, size), (1, heads, keys, size)
        return [q, kv, kv], q
    m, n, k = shape
    statistics = [(n,), (n,)] if op == "gemm_layernorm" else []
    return [(m, k), (k, n), *statistics], (m, n)


def elementary(op: str, machine: Machine, shape: Shape) -> ModuleOp:
    """Return a program on elementary ops, with the hardware attached."""
    context = installed_context()
    module = Parser(context, program(op, shape)).parse_module()
    AttachHardwarePass(path=str(HARDWARE / f"{machine}.yaml")).apply(context, module)
    DecomposePass(accumulator="input").apply(context, module)
    return module
