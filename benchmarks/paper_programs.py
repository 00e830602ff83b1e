"""The programs of benchmarks/paper.py: shapes, machines, elementary IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.universe import Universe

from comet.dialects.compound import ContractOp
from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.decompose import DecomposePass
from comet.passes.functions import compute_functions

HARDWARE = Path(__file__).parents[1] / "samples" / "hardware"

Machine = Literal["edge", "cloud"]
Shape = tuple[int, int, int]
"""M, N, K."""

SHAPES: Mapping[Machine, Sequence[Shape]] = {
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


def program(op: str, shape: Shape) -> str:
    """Return the text of a module with one compound op on f16 tensors."""
    m, n, k = shape
    types = [f"tensor<{m}x{k}xf16>", f"tensor<{k}x{n}xf16>"]
    names, rest, result = ["%a", "%b"], "", f"tensor<{m}x{n}xf16>"
    if op == "gemm_layernorm":
        names += ["%gamma", "%beta"]
        types += [f"tensor<{n}xf16>"] * 2
        rest = " epsilon 1.0e-5"
    args = ", ".join(f"{name}: {t}" for name, t in zip(names, types, strict=True))
    return (
        f"func.func @{op}({args}) -> {result} {{\n"
        f"  %p = compound.{op} {', '.join(names)}{rest}"
        f" : ({', '.join(types)}) -> {result}\n"
        f"  func.return %p : {result}\n}}\n"
    )


def elementary(op: str, machine: Machine, shape: Shape) -> ModuleOp:
    """Return a program on elementary ops, with the hardware attached."""
    context = new_context()
    module = Parser(context, program(op, shape)).parse_module()
    AttachHardwarePass(path=str(HARDWARE / f"{machine}.yaml")).apply(context, module)
    DecomposePass(accumulator="input").apply(context, module)
    return module


def new_context() -> Context:
    """Return a context that knows every dialect."""
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context


def apart(module: ModuleOp) -> tuple[ModuleOp, ModuleOp]:
    """Return a program as two: the product, and what is done to it afterwards."""
    first, second = module.clone(), module.clone()
    for half, keep in ((first, _keep_product), (second, _keep_rest)):
        func = next(compute_functions(half))
        product = next(op for op in func.body.block.ops if isinstance(op, ContractOp))
        keep(func, product)
        func.update_function_type()
        half.verify()
    return first, second


def _keep_product(func: FuncOp, product: ContractOp) -> None:
    later: list[Operation] = []
    following = product.next_op
    while following is not None:
        later.append(following)
        following = following.next_op
    for op in reversed(later):
        op.detach()
        op.erase()
    func.body.block.add_op(ReturnOp(product.result))


def _keep_rest(func: FuncOp, product: ContractOp) -> None:
    block = func.body.block
    argument = block.insert_arg(product.result.type, len(block.args))
    argument.name_hint = product.result.name_hint
    product.result.replace_all_uses_with(argument)
    product.detach()
    product.erase()
