"""Mutations of parsed IR: each leaves text that parses, and mostly is no valid IR."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from random import Random

from semantics import parse_module
from xdsl.dialects.builtin import ArrayAttr, IntAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.printer import Printer
from xdsl.rewriter import Rewriter

Edit = Callable[[Operation, Random], None]


def edited(text: str, random: Random) -> str:
    """Return the text of a module after one to three edits, in the generic form."""
    module = parse_module(text, verify=False)
    for _ in range(random.choice((1, 1, 2, 3))):
        ops = [op for op in module.walk() if not isinstance(op, ModuleOp)]
        if ops:
            random.choice(EDITS)(random.choice(ops), random)
    return generic_text(module)


def generic_text(module: ModuleOp) -> str:
    """Print a module in the generic form, which says all there is."""
    output = StringIO()
    Printer(output, print_generic_format=True).print_op(module)
    return output.getvalue()


def _top(op: Operation) -> Operation:
    parent = op.parent_op()
    return op if parent is None else _top(parent)


def _values(op: Operation) -> list[SSAValue]:
    """Return the values of the block of an operation, and of those around it."""
    found: list[SSAValue] = []
    around = op
    while (block := around.parent) is not None:
        found += [
            *block.args,
            *(value for other in block.ops for value in other.results),
        ]
        parent = around.parent_op()
        if parent is None:
            break
        around = parent
    return found


def _swap_operands(op: Operation, random: Random) -> None:
    if len(op.operands) > 1:
        first, second = random.sample(range(len(op.operands)), 2)
        one, other = op.operands[first], op.operands[second]
        op.operands[first], op.operands[second] = other, one


def _other_operand(op: Operation, random: Random) -> None:
    """Read another value: mostly one of the same type, sometimes defined later."""
    if not op.operands:
        return
    index = random.randrange(len(op.operands))
    values = _values(op)
    alike = [value for value in values if value.type == op.operands[index].type]
    op.operands[index] = random.choice(alike if random.random() < 0.8 else values)


def _drop_operand(op: Operation, random: Random) -> None:
    if op.operands:
        kept = list(op.operands)
        del kept[random.randrange(len(kept))]
        op.operands = kept


def _other_type(op: Operation, random: Random) -> None:
    """Give a result or a block argument the type of another value."""
    owned = [
        *op.results,
        *(arg for region in op.regions for b in region.blocks for arg in b.args),
    ]
    types = [value.type for other in _top(op).walk() for value in other.results]
    if owned and types:
        Rewriter.replace_value_with_new_type(random.choice(owned), random.choice(types))


def _attribute(op: Operation, random: Random) -> None:
    """Change, exchange or drop an attribute or a property."""
    held = random.choice([op.attributes, op.properties])
    if not held:
        held = op.properties or op.attributes
    if not held:
        return
    name = random.choice(list(held))
    if random.random() < 0.15:
        del held[name]
        return
    others = [
        attribute
        for other in _top(op).walk()
        for key, attribute in (*other.attributes.items(), *other.properties.items())
        if key == name
    ]
    drawn = random.choice(others) if random.random() < 0.3 else None
    held[name] = _changed(held[name], random) if drawn is None else drawn


def _changed(attribute: Attribute, random: Random) -> Attribute:
    match attribute:
        case IntegerAttr():
            value = attribute.value.data
            near = (value - 1, value + 1, 2 * value, 0, -value, 1)
            return IntegerAttr(random.choice(near), attribute.type, truncate_bits=True)
        case StringAttr():
            words = (
                "",
                "M",
                "N",
                "K",
                "GB",
                "HBM",
                "add",
                "max",
                "rank",
                "%",
                attribute.data * 2,
            )
            return StringAttr(random.choice(words))
        case ArrayAttr():
            return _changed_list(attribute, random)
        case _:
            return random.choice(
                (StringAttr("x"), ArrayAttr(()), IntAttr(3), attribute)
            )


def _changed_list(attribute: ArrayAttr[Attribute], random: Random) -> Attribute:
    parts = list(attribute)
    if parts:
        index = random.randrange(len(parts))
        what = random.choice(("drop", "double", "swap", "inside"))
        if what == "drop":
            del parts[index]
        elif what == "double":
            parts.insert(index, parts[index])
        elif what == "swap":
            parts.reverse()
        else:
            parts[index] = _changed(parts[index], random)
    return ArrayAttr(parts)


def _erase(op: Operation, random: Random) -> None:
    """Drop an operation; what used its results uses others of the same types."""
    for result in op.results:
        alike = [v for v in _values(op) if v.type == result.type and v.owner is not op]
        if not alike and result.uses:
            return
        if alike:
            result.replace_all_uses_with(random.choice(alike))
    op.detach()
    op.erase(safe_erase=False)


def _double(op: Operation, random: Random) -> None:
    if (block := op.parent) is not None:
        block.insert_op_after(op.clone(), op)


def _move(op: Operation, random: Random) -> None:
    """Exchange an operation with the next one."""
    block, after = op.parent, op.next_op
    if block is not None and after is not None:
        op.detach()
        block.insert_op_after(op, after)


EDITS: tuple[Edit, ...] = (
    *(_swap_operands, _other_operand, _other_operand, _drop_operand, _other_type),
    *(_attribute, _attribute, _attribute, _erase, _double, _move),
)
