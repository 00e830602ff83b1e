"""
Names in the syntax of COMET files: single letters for dimensions, letters and digits
for tensors, one tag per operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.comet.kinds import operation_kind
from comet.dialects.compound import MapOp
from comet.dialects.compound.copied import ComputeOp
from comet.dialects.compound.dims import unused
from comet.dialects.errors import OpError
from comet.kinds import OperationKind


@dataclass(frozen=True)
class Names:
    """The names of dimensions, tensors and operations in the files."""

    dims: dict[str, str]
    tensors: dict[SSAValue, str]
    tags: dict[ComputeOp, str]

    def table(self) -> DictionaryAttr:
        """Return the table from names of the files to names of the IR."""
        tensors = {name: _ir_name(value) for value, name in self.tensors.items()}
        tags = {tag: op.name for op, tag in self.tags.items()}
        dims = {letter: name for name, letter in self.dims.items()}
        return DictionaryAttr(
            {
                "dimensions": _strings(dims),
                "tensors": _strings(tensors),
                "operations": _strings(tags),
            }
        )


def names_for(
    dims: Sequence[str], tensors: Iterable[SSAValue], ops: Iterable[ComputeOp]
) -> Names:
    """
    Choose a name for every dimension, tensor and operation, similar to that in the IR.

    Raises PassFailedException if there are more dimensions than letters, or an op
    without an operation type in the files.
    """
    letters: dict[str, str] = {}
    for dim in sorted(dims, key=lambda name: not _is_letter(name)):
        letters[dim] = _letter(dim, set(letters.values()))
    names: dict[SSAValue, str] = {}
    for value in tensors:
        hint = re.sub(r"_\d+$", "", value.name_hint or "T")
        plain = re.sub(r"[^A-Za-z0-9]", "", hint) or "T"
        names[value] = unused(plain, set(names.values()), first=2)
    tags: dict[ComputeOp, str] = {}
    for op in ops:
        tags[op] = unused(_tag(op), set(tags.values()), first=2)
    return Names({dim: letters[dim] for dim in dims}, names, tags)


def with_aliases(names: Names, aliases: Mapping[str, str]) -> Names:
    """Return `names` that also have the letters of dimensions' aliases."""
    letters = {new: names.dims[old] for new, old in aliases.items()}
    return replace(names, dims={**letters, **names.dims})


def kind_of(op: ComputeOp) -> OperationKind:
    """Return the operation type of `op`; PassFailedException if there is none."""
    if (kind := operation_kind(op)) is None:
        what = op.kind.data if isinstance(op, MapOp) else op.name
        raise OpError(
            op,
            f"lower-to-comet: the COMET tool has no operation '{what}'; write "
            "it with add, mult, div, max, exp and sqrt",
        )
    return kind


def _tag(op: ComputeOp) -> str:
    """Return GEMM, ROWMAX, SUB, EXP ...: the kind of the op in capitals."""
    kind = op.kind.data if isinstance(op, MapOp) else kind_of(op)
    return str(kind).upper()


def _is_letter(name: str) -> bool:
    return len(name) == 1 and name in ascii_uppercase


def _letter(dim: str, used: set[str]) -> str:
    wanted = [c for c in dim.upper() if c in ascii_uppercase]
    for letter in (*wanted, *ascii_uppercase):
        if letter not in used:
            return letter
    raise PassFailedException(
        f"lower-to-comet: no letter is left for the dimension {dim}; the COMET files "
        f"name dimensions by one letter, {len(ascii_uppercase)} at most"
    )


def _ir_name(value: SSAValue) -> str:
    producer = value.owner
    source = producer.name if isinstance(producer, Operation) else "argument"
    return f"%{value.name_hint or '?'} of {source}"


def _strings(table: dict[str, str]) -> DictionaryAttr:
    return DictionaryAttr({name: StringAttr(text) for name, text in table.items()})
