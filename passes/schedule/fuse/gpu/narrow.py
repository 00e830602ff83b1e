"""
Products that kernels store in the type of their operands.

A product of f16 or bf16 operands is summed in f32. If one kernel or reduction loop
stores it for another one, the option `narrow` stores it in the type of the operands:
half the bytes, and one more rounding, as there is between two ops of a program. Values
that stay in registers are not rounded.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import AnyFloat, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound import CastOp, ContractOp, Elementwise, ScatterAddOp
from comet.dialects.compound.dims import element_type_of, names_of, with_element_type
from comet.digraph import reachable
from comet.passes.analysis.stored_values import value_names
from comet.passes.schedule.fuse.gpu.groups import Border
from comet.passes.schedule.tile_tree import Spatial, Temporal, Tree

UNROUNDED = "fuse.unrounded"
"""The attribute of a cast that is removed if no kernel stores its result."""

LEAST_BITS = 16
"""The narrowest type to store: sums overflow f8E4M3FN, whose largest number is 448."""


def stored_products(kernels: Iterable[Spatial]) -> Iterator[SSAValue]:
    """
    Yield the products that kernels store to device memory and could store narrower.

    A value is left out if elementwise ops compute it from another one of them: readers
    recompute it from the one that is stored. So is one that is only cast to this type.
    """
    found: set[SSAValue] = set()
    for kernel in kernels:
        for value in _values_in_memory(kernel):
            type_ = narrow_type(value)
            if type_ is None or value in found or _is_only_cast(value, type_):
                continue
            if found.isdisjoint(_elementwise_slice(value)):
                found.add(value)
                yield value


def _is_only_cast(value: SSAValue, type_: AnyFloat) -> bool:
    """Return whether all readers of a value cast it to one type."""
    readers = (use.operation for use in value.uses)
    return all(
        isinstance(op, CastOp) and element_type_of(op.result) == type_ for op in readers
    )


def _values_in_memory(kernel: Spatial) -> Iterator[SSAValue]:
    """Yield the values that a kernel stores: tiles of loops, then its results."""
    yield from _written_by_loops(kernel.children)
    yield from kernel.outs


def _written_by_loops(trees: Iterable[Tree]) -> Iterator[SSAValue]:
    for tree in trees:
        if isinstance(tree, Temporal):
            yield from (value for value in tree.outs if tree.loop in names_of(value))
            yield from _written_by_loops(tree.children)


def narrow_type(value: SSAValue) -> AnyFloat | None:
    """
    Return the type of the operands of the product `value`, None for other values.

    A product is the result of a contraction, or of elementwise ops on such results.
    None, too, if the operands' type is not narrower, if the value is no float, and if
    it is returned, sent or viewed: partial sums that ranks or parts exchange keep their
    precision.
    """
    if not isinstance(element_type_of(value), AnyFloat):
        return None
    users = [use.operation for use in value.uses]
    kept = Border | ScatterAddOp
    if any(isinstance(user, kept) or not user.results for user in users):
        return None
    products = [
        made.owner
        for made in _elementwise_slice(value)
        if isinstance(made.owner, ContractOp)
    ]
    types = {element_type_of(v) for product in products for v in product.operands}
    if len(types) != 1:
        return None
    (type_,) = types
    if not LEAST_BITS <= type_.bitwidth < element_type_of(value).bitwidth:
        return None
    return type_ if isinstance(type_, AnyFloat) else None


def _elementwise_slice(value: SSAValue) -> Iterator[SSAValue]:
    """Return the slice of `value` through maps and casts of the same dimensions."""
    dims = set(names_of(value))

    def sources(of: SSAValue) -> Iterator[SSAValue]:
        operands = of.owner.operands if isinstance(of.owner, Elementwise) else ()
        return (operand for operand in operands if set(names_of(operand)) == dims)

    return reachable((value,), sources)


def named_products(ops: Sequence[Operation], names: str) -> tuple[SSAValue, ...]:
    """
    Return the products with the given `names`, which spaces separate.

    Raises PassFailedException if no value has a name, or if it has no narrower type
    than those that read it take.
    """
    values = {name: value for value, name in value_names(ops).items()}
    words = dict.fromkeys(name.removeprefix("%") for name in names.split())
    return tuple(_named(values, name) for name in words)


def _named(values: Mapping[str, SSAValue], name: str) -> SSAValue:
    if (value := values.get(name)) is None:
        raise PassFailedException(
            f"fuse: narrow names %{name}, which no op computes; values are called "
            f"{', '.join(values)}"
        )
    if (type_ := narrow_type(value)) is None:
        raise PassFailedException(
            f"fuse: narrow names %{name}, which has no narrower type to be stored in; "
            "name a product of f16 or bf16 operands that is neither returned nor sent"
        )
    if _is_only_cast(value, type_):
        raise PassFailedException(
            f"fuse: narrow names %{name}, which all readers cast to {type_} anyway; "
            "leave it out"
        )
    return value


@dataclass(frozen=True)
class NarrowedProduct:
    """A product (now `%c_wide`), its cast `%c` to a narrow type, and the cast back."""

    product: SSAValue
    narrow: CastOp
    wide: CastOp
    same: CastOp | None
    """An equal cast that the program had; detached, its readers read `narrow`."""

    @property
    def name(self) -> str | None:
        """The original name of the product, which the narrow value has now."""
        return self.narrow.result.name_hint

    def is_stored(self, kernels: Iterable[Spatial]) -> bool:
        """Return whether one of the kernels stores the narrow value."""
        stored = (value for kernel in kernels for value in _values_in_memory(kernel))
        return self.narrow.result in stored

    def cast(self, ops: Iterable[Operation]) -> Iterator[Operation]:
        """Yield the ops of a kernel with the casts, if it computes the product."""
        for op in ops:
            if op is not self.same:
                yield op
            if op is self.product.owner:
                yield from (self.narrow, self.wide)

    def undone(self, ops: Iterable[Operation]) -> Iterator[Operation]:
        """Yield the ops of a kernel without the casts, as `undo` leaves them."""
        for op in ops:
            if op is not self.narrow and op is not self.wide:
                yield op
            elif op is self.narrow and self.same is not None:
                yield self.same

    def undo(self) -> None:
        """Remove the casts."""
        self.product.name_hint = self.name
        self.wide.result.replace_all_uses_with(self.product)
        Rewriter.erase_op(self.wide)
        if self.same is not None:
            Rewriter.insert_op(self.same, InsertPoint.after(self.narrow))
            self.narrow.result.replace_all_uses_with(self.same.result)
        Rewriter.erase_op(self.narrow)


def store_narrow(product: SSAValue) -> NarrowedProduct:
    """Cast `product` to a narrower type and back, and let all uses read the result."""
    owner, type_ = product.owner, narrow_type(product)
    assert isinstance(owner, Operation)
    assert type_ is not None
    narrow = CastOp(product, with_element_type(product.type, type_))
    wide = CastOp(narrow.result, product.type)
    Rewriter.insert_op([narrow, wide], InsertPoint.after(owner))
    name = product.name_hint or "product"
    narrow.result.name_hint = name
    product.name_hint = wide.result.name_hint = f"{name}_wide"
    product.replace_uses_with_if(wide.result, lambda use: use.operation is not narrow)
    same = _same_cast(narrow, wide)
    if same is not None:
        same.result.replace_all_uses_with(narrow.result)
        same.detach()
    return NarrowedProduct(product, narrow, wide, same)


@contextmanager
def unrounded(casts: Sequence[NarrowedProduct]) -> Generator[None]:
    """Mark casts while the body prices kernels, so that `unround` may remove them."""
    for cast in casts:
        cast.narrow.attributes[UNROUNDED] = UnitAttr()
    try:
        yield
    finally:
        for cast in casts:
            del cast.narrow.attributes[UNROUNDED]


def unround(func: FuncOp) -> None:
    """Remove the marked casts of a kernel that it only casts back."""
    for op in tuple(func.walk()):
        if isinstance(op, CastOp) and UNROUNDED in op.attributes:
            readers = [use.operation for use in op.result.uses]
            if all(
                isinstance(reader, CastOp)
                and reader.parent is op.parent
                and reader.result.type == op.input.type
                for reader in readers
            ):
                for reader in readers:
                    reader.results[0].replace_all_uses_with(op.input)
                    Rewriter.erase_op(reader)
                Rewriter.erase_op(op)


def _same_cast(narrow: CastOp, wide: CastOp) -> CastOp | None:
    """
    Return an equal cast of the wide value in the program, which is superfluous now.
    """
    readers = (use.operation for use in wide.result.uses)
    casts = (op for op in readers if isinstance(op, CastOp))
    return next((op for op in casts if op.result.type == narrow.result.type), None)
