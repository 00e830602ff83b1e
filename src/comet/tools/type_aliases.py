"""
Prints long types by aliases that say what they are (`--print-type-aliases`).

`tensor<64x128xf16, #compound.dims<M, K @HBM>>` is `!M64_K128_f16_HBM`, and a channel by
which ranks push and gather shards along K, until all have this, is
`!push_K_M64_K128_f16_HBM`. The aliases come first; the parser reads what is printed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from io import StringIO

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute
from xdsl.printer import Printer
from xdsl.utils.hints import isa

from comet.dialects.compound.dims import DimsAttr
from comet.dialects.dataflow.channel import ChannelType

_ALIAS = re.compile("[A-Za-z][A-Za-z0-9_]*")


def with_type_aliases(module: ModuleOp, generic: bool = False) -> str:
    """Return the text of a module, in the generic form or not, with type aliases."""
    text = StringIO()
    printer = AliasPrinter(text, print_generic_format=generic)
    printer.print_op(module)
    definitions = [f"!{name} = {body}\n" for name, body in printer.definitions.items()]
    return "".join(definitions) + text.getvalue()


@dataclass(eq=False, repr=False)
class AliasPrinter(Printer):
    """Prints types with named dimensions, and of channels, by aliases."""

    names: dict[Attribute, str] = field(default_factory=dict[Attribute, str])
    """The alias of each type that was printed."""
    definitions: dict[str, str] = field(default_factory=dict[str, str])
    """What each alias is; one that another one uses comes before it."""

    def print_attribute(self, attribute: Attribute) -> None:
        """Print an alias in place of a type that has one."""
        name = self._alias(attribute)
        if name is None:
            super().print_attribute(attribute)
        else:
            self.print_string(f"!{name}")

    def _alias(self, type_: Attribute) -> str | None:
        """Return the alias of a type, None if it is printed as it is."""
        if type_ in self.names:
            return self.names[type_]
        base = _spelled(type_)
        if base is None or not _ALIAS.fullmatch(base):
            return None
        body = self._body(type_)
        name = base
        while name in self.definitions:
            name += "_"
        self.names[type_] = name
        self.definitions[name] = body
        return name

    def _body(self, type_: Attribute) -> str:
        """Return the text of a type, with the aliases of the types in it."""
        text = StringIO()
        inner = AliasPrinter(text, names=self.names, definitions=self.definitions)
        Printer.print_attribute(inner, type_)
        return text.getvalue()


def _spelled(type_: Attribute) -> str | None:
    """Return what a type says as one word, None for types that get no alias."""
    if isinstance(type_, ChannelType):
        received = _spelled(type_.received)
        split = f"_{type_.split}" if type_.split else ""
        return received and f"{type_.mode}_{type_.gather}{split}_{received}"
    if not isa(type_, TensorType[Attribute]):
        return None
    if not isinstance(dims := type_.encoding, DimsAttr):
        return None
    axes = zip(dims.axes, type_.get_shape(), strict=True)
    words = [f"{name}{extent}" for name, extent in axes] or ["number"]
    level = [dims.level] if dims.level else []
    return "_".join([*words, str(type_.element_type), *level])
