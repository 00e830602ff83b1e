"""The figures of a GPU, for which COMET's architecture schema has no fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from comet.dialects.arch.fields import (
    Field,
    Fields,
    FieldsDirective,
    dictionary_of,
    fields_of,
)
from comet.dialects.arch.schema import GPU, GPU_DEFAULTS, mistakes


@irdl_op_definition
class GpuOp(IRDLOperation):
    """
    The figures of each GPU of a system, as the hardware file gives them.

    ```mlir
    arch.gpu {clock_ghz = 1.98, multiprocessors = 132, tensor_tflops = {f16 = 989.4}}
    ```
    """

    name = "arch.gpu"
    fields = prop_def(DictionaryAttr)
    custom_directives = (FieldsDirective,)
    assembly_format = "custom<FieldsDirective>($fields) attr-dict"

    def __init__(self, fields: Fields):
        super().__init__(properties={"fields": dictionary_of(fields)})

    def use_measured(self) -> None:
        """Replace figures of the data sheet by measured ones, where there are any."""
        fields = fields_of(self.fields)
        measured = cast(Fields, fields.pop("measured", {}))
        for name, figure in measured.items():
            if isinstance(figure, Mapping):  # rates by element type
                figure = {**cast(Fields, fields[name]), **cast(Fields, figure)}
            fields[name] = figure
        self.properties["fields"] = dictionary_of(fields)

    def set_figure(self, name: str, figure: Field) -> None:
        """Give a field another value."""
        fields = {**fields_of(self.fields), name: figure}
        self.properties["fields"] = dictionary_of(fields)

    @property
    def figures(self) -> Fields:
        """The fields in the file's units, defaults included."""
        return with_defaults(self.fields)

    def verify_(self) -> None:
        if (mistake := _mistake(self.fields)) is not None:
            raise VerifyException(f"'{self.name}' op {mistake}")


@lru_cache(maxsize=64)
def _mistake(fields: DictionaryAttr) -> str | None:
    """Return what is wrong with the fields, which are verified after each pass."""
    return next((mistake for _, mistake in mistakes(fields_of(fields), GPU)), None)


def with_defaults(fields: DictionaryAttr) -> Fields:
    """Return the fields of a GPU in the file's units, defaults included."""
    return {**GPU_DEFAULTS, **fields_of(fields)}


def rate_name(element: Attribute) -> str:
    """
    Return the name under which hardware files give the rates of an element type.

    All floats of 8 bits, such as f8E4M3FN, are f8; other types have their own names.
    """
    name = str(element)
    return "f8" if name.startswith("f8") else name
