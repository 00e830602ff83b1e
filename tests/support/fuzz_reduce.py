"""Makes an input smaller, as long as it is judged the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzz_case import Case
from fuzz_corpus import split_specs
from semantics import parse_module
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

IsSame = Callable[[Case], bool]
OPTIONAL = (
    *("stream", "split", "annotate-cost", "bind", "canonicalize"),
    *("materialize-copies", "hoist-copies", "pad-blocks", "map-grid", "mask-copies"),
)
"""Passes without which a program still is to run right."""


def reduced(case: Case, is_same: IsSame, seconds: float) -> Case:
    """Return the smallest case found in that processor time, judged the same."""
    end = time.process_time() + seconds
    found = True
    while found and time.process_time() < end:
        found = False
        for smaller in _smaller(case):
            if time.process_time() > end:
                break
            if is_same(smaller):
                case, found = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Yield simpler cases, the most promising first."""
    specs = list(split_specs(case.passes)) if case.family != "pipeline" else []
    names = [spec.partition("{")[0] for spec in specs]
    is_run = case.target == "triton"
    if case.target != "mlir":
        yield replace(case, target="mlir")
    for index in reversed(range(len(specs))):
        if is_run and names[index] not in OPTIONAL:
            continue
        yield replace(case, passes=",".join([*specs[:index], *specs[index + 1 :]]))
    for name, text in case.files.items():
        if name == "in.mlir":
            for other in _smaller_modules(text):
                yield replace(case, files={**case.files, name: other})
    for name, text in case.files.items():
        for other in _fewer_lines(text):
            yield replace(case, files={**case.files, name: other})


def _fewer_lines(text: str) -> Iterator[str]:
    """Yield a text without some of its lines."""
    lines = text.splitlines(keepends=True)
    size = len(lines) // 2
    while size:
        for start in range(0, len(lines), size):
            yield "".join([*lines[:start], *lines[start + size :]])
        size //= 2


def _smaller_modules(text: str) -> Iterator[str]:
    """Yield modules with one op, result or argument less."""
    try:
        module = parse_module(text)
    except Exception:
        return
    count = len(list(module.walk()))
    pruned = module.clone()
    _drop_unused(pruned)
    if len(list(pruned.walk())) < count and (printed := _printed(pruned)) is not None:
        yield printed
    for edit in (_as_argument, _without_result, _without_argument):
        for index in reversed(range(1, count)):
            for number in range(3):
                copy = module.clone()
                if edit(list(copy.walk())[index], number):
                    _drop_unused(copy)
                    if (printed := _printed(copy)) is not None:
                        yield printed


def _printed(module: ModuleOp) -> str | None:
    try:
        module.verify()
        return f"{module}\n"
    except Exception:
        return None


def _functions(module: Operation | None) -> list[func.FuncOp]:
    """Return the functions of a module that have a body of one block."""
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    found = () if module is None else module.ops
    return [
        op for op in found if isinstance(op, func.FuncOp) and len(op.body.blocks) == 1
    ]


def _as_argument(op: Operation, number: int) -> bool:
    """Take the results of an op as arguments, in a function and in its reference."""
    function = op.parent_op()
    if number or not isinstance(function, func.FuncOp) or not op.results:
        return False
    position = list(function.body.block.ops).index(op)
    for other in _functions(function):
        ops = list(other.body.block.ops)
        if len(ops) > position and ops[position].name == op.name:
            _lift(ops[position], other.body.block)
            other.update_function_type()
    return True


def _lift(op: Operation, block: Block) -> None:
    for result in op.results:
        result.replace_all_uses_with(block.insert_arg(result.type, len(block.args)))
    op.detach()
    op.erase()


def _without_result(op: Operation, number: int) -> bool:
    """Drop a result of all functions."""
    if not isinstance(op, func.ReturnOp) or not number < len(op.operands) > 1:
        return False
    for function in _functions(op):
        last = function.body.block.last_op
        if last is not None and number < len(last.operands):
            last.operands = [v for i, v in enumerate(last.operands) if i != number]
            function.update_function_type()
    return True


def _without_argument(op: Operation, number: int) -> bool:
    """Drop unused arguments of all functions."""
    if not isinstance(op, func.FuncOp) or op.is_declaration or number:
        return False
    blocks = [function.body.block for function in _functions(op)]
    unused = [
        index
        for index in range(min((len(block.args) for block in blocks), default=0))
        if not any(block.args[index].uses for block in blocks)
    ]
    for function in _functions(op):
        for index in reversed(unused):
            function.body.block.erase_arg(function.body.block.args[index])
        function.update_function_type()
    return bool(unused)


def _drop_unused(module: ModuleOp) -> None:
    """Drop ops of functions that nothing uses."""
    for function in _functions(module):
        for op in reversed(list(function.body.block.ops)):
            used = any(result.uses for result in op.results)
            if op.results and not used and not op.has_trait(IsTerminator):
                op.detach()
                op.erase()
