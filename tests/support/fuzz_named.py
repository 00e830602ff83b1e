"""Named ops among elementary ones, on named dimensions."""

from __future__ import annotations

from math import prod

from fuzz_elementary import EXTENTS
from fuzz_graphs import is_legal
from fuzz_program import LARGEST, Program, Value
from named_ops import NAMED_OPS, NamedOp


def named_op(p: Program) -> None:
    """A named op of a value, and of others of its dimensions or new arguments."""
    value = p.any()
    fitting = [
        (op, operand)
        for op in NAMED_OPS
        for operand, dims in enumerate(op.operands)
        if len(dims) == len(value.dims) and operand not in op.kind.LENGTHS
    ]
    if not fitting:
        return
    op, operand = p.random.choice(fitting)
    names = _names(p, op, op.operands[operand], value)
    extents = {dim: value.extents.get(name, p.extents[name]) for dim, name in names}
    shapes = [[extents[dim] for dim in dims] for dims in (*op.operands, op.result)]
    if not is_legal(op, extents) or max(map(prod, shapes)) > LARGEST:
        return
    known = dict(names)
    operands: list[Value] = []
    for index, dims in enumerate(op.operands):
        needed = {known[dim]: extents[dim] for dim in dims}
        element = "i32" if index in op.kind.LENGTHS else value.element
        operands.append(value if index == operand else _operand(p, needed, element))
    result = {known[dim]: extents[dim] for dim in op.result}
    arrow = ", ".join(each.type for each in operands)
    made = Value(f"%v{len(p.lines)}", result, value.element)
    p.lines.append(
        f"  {made.name} = compound.{op.name} "
        f"{', '.join(each.name for each in operands)} {op.attributes}"
        f" : ({arrow}) -> {made.type}"
    )
    p.values.append(made)


def _names(
    p: Program, op: NamedOp, dims: tuple[str, ...], value: Value
) -> list[tuple[str, str]]:
    """Return a name of the program for each dimension of an op."""
    names = dict(zip(dims, value.dims, strict=True))
    for dim in dict.fromkeys(d for each in (*op.operands, op.result) for d in each):
        if dim not in names:
            free = [name for name in p.extents if name not in names.values()]
            if not free or p.random.random() < 0.3:
                free = [f"X{len(p.extents)}"]
                p.extents[free[0]] = p.random.choice(EXTENTS[:9])
            names[dim] = p.random.choice(free)
    return list(names.items())


def _operand(p: Program, extents: dict[str, int], element: str) -> Value:
    """Return a value with these extents in this order, or a new argument."""
    alike = [
        value
        for value in p.values
        if value.element == element
        and list(value.extents.items()) == [*extents.items()]
    ]
    if alike and p.random.random() < 0.8:
        return p.random.choice(alike)
    new = Value(f"%x{len(p.arguments)}", extents, element)
    p.arguments.append(new)
    if element != "i32":
        p.values.append(new)
    return new
