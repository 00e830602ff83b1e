"""The hierarchy of the arch dialect: levels of memory and the units below them."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from enum import auto
from math import prod
from typing import TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    StringAttr,
    SymbolNameConstraint,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Block, Operation, Region, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.traits import HasParent, NoTerminator
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from comet.dialects.arch.fields import (
    Field,
    Fields,
    FieldsDirective,
    dictionary_of,
    field_of,
    fields_of,
)
from comet.dialects.arch.rows import (
    SYSTEM,
    ComputeOp,
    ContainerOp,
    MemoryOp,
    RowOp,
)
from comet.dialects.arch.schema import LINK, MESH_FIELDS, ROOT, mesh_shape, mistakes
from comet.dialects.axis_names import misnamed_axis
from comet.dialects.parents import HasParentNamed
from comet.kinds import ROOT_MEMORY

RowT = TypeVar("RowT", bound=RowOp)


class Path(StrEnum):
    """The direction in which data moves between a node and its parent."""

    CONNECTS = auto()
    DRAINS = auto()
    FILLS = auto()


@irdl_attr_definition
class PathAttr(EnumAttribute[Path], SpacedOpaqueSyntaxAttribute):
    name = "arch.path"


class NodeOp(IRDLOperation, ABC):
    """A node of the hierarchy, with the link that joins it to its parent."""

    label = prop_def(SymbolNameConstraint())
    kind = prop_def(StringAttr)
    range = opt_prop_def(StringAttr)
    """The text after the name in the file, as in `GB[0..3]`; it has no meaning."""
    path = opt_prop_def(PathAttr)
    link = opt_prop_def(DictionaryAttr)
    extra = opt_prop_def(DictionaryAttr)

    @property
    def level_name(self) -> str:
        """The name of the node."""
        return self.label.data

    @property
    def is_filled(self) -> bool:
        """Whether its parent only fills it, as a buffer of operands."""
        return self.path is not None and self.path.data is Path.FILLS

    @property
    def parent_level(self) -> LevelOp | None:
        """The level above; None for the outermost."""
        parent = self.parent_op()
        return parent if isinstance(parent, LevelOp) else None

    def _row(self, table: type[RowT]) -> RowT | None:
        """Return the row of `table` with the node's kind; None if there is none."""
        top = self.parent_op()
        while isinstance(top, NodeOp):
            top = top.parent_op()
        rows = () if top is None else top.regions[0].block.ops
        return next(
            (op for op in rows if isinstance(op, table) and op.kind == self.kind), None
        )

    @property
    def mesh_shape(self) -> tuple[int, int]:
        """The mesh of the instances below one parent: columns, rows."""
        fields = {name: self.link_field(name) for name in MESH_FIELDS}
        return mesh_shape(fields)

    @property
    def instances(self) -> int:
        """The number of instances below one instance of the parent."""
        columns, rows = self.mesh_shape
        return columns * rows

    @property
    def total_instances(self) -> int:
        """The number of instances in the whole system."""
        above = self.parent_level
        return self.instances * (1 if above is None else above.total_instances)

    def link_field(self, name: str) -> Field:
        """Return a field of the link to the parent; None if it is not in the file."""
        found = None if self.link is None else self.link.data.get(name)
        return None if found is None else field_of(found)

    def _required_row(self, table: type[RowT]) -> RowT:
        if (row := self._row(table)) is None:
            raise VerifyException(
                f'{self._title} is of the kind "{self.kind.data}", but the system '
                f"has no {table.name} of that name"
            )
        return row

    def verify_node(self) -> None:
        """
        Check the name, the path and the link, which a node below a parent needs.

        Raises VerifyException for a mistake.
        """
        if not self.level_name:
            raise VerifyException(f"'{self.name}' op has no name; give it one")
        if self.parent_level is None and self.path is not None:
            raise VerifyException(f"{self._title} is outermost and has no path")
        if self.parent_level is not None and (self.path is None or self.link is None):
            raise VerifyException(
                f"{self._title} lies below a level and needs a path and a link"
            )
        if self.link is not None:
            rules = ROOT if self.parent_level is None else LINK
            for _, mistake in mistakes(fields_of(self.link), rules):
                raise VerifyException(f"{self._title} in its link, {mistake}")

    @property
    def _title(self) -> str:
        return f"'{self.name}' op @{self.level_name}"


def _node_properties(
    label: str,
    kind: str,
    path: Path | None,
    link: Fields | None,
    range: str | None,
    extra: Fields | None,
) -> dict[str, Attribute | None]:
    return {
        "label": StringAttr(label),
        "kind": StringAttr(kind),
        "range": StringAttr(range) if range else None,
        "path": None if path is None else PathAttr(path),
        "link": None if link is None else dictionary_of(link),
        "extra": dictionary_of(extra) if extra else None,
    }


NODE_FORMAT = (
    "$label ($range^)? `:` $kind (`by` $path^)? "
    "(`link` custom<FieldsDirective>($link)^)? "
    "(`extra` custom<FieldsDirective>($extra)^)? "
)


@irdl_op_definition
class UnitOp(NodeOp):
    """
    A compute unit below a level. A unit that several levels feed is below each of them.

    ```mlir
    arch.unit @SE : "VSIMD" by connects link {bw = 64, connection_type = "MeshNetwork"}
    ```
    """

    name = "arch.unit"
    traits = lazy_traits_def(lambda: (HasParent(LevelOp),))
    custom_directives = (FieldsDirective,)
    assembly_format = NODE_FORMAT + "attr-dict"

    def __init__(
        self,
        label: str,
        kind: str,
        path: Path,
        link: Fields,
        *,
        range: str | None = None,
        extra: Fields | None = None,
    ):
        super().__init__(
            properties=_node_properties(label, kind, path, link, range, extra)
        )

    @property
    def compute(self) -> ComputeOp:
        """The row that describes the unit."""
        return self._required_row(ComputeOp)

    def verify_(self) -> None:
        self.verify_node()
        _ = self.compute


@irdl_op_definition
class LevelOp(NodeOp, ContainerOp):
    """
    A level of memory, with the nodes below it.

    `axes` names the mesh axes that its instances span: along meshX, then along meshY.

    ```mlir
    arch.level @GB : "GBuffer" by connects link {bw = 64, meshX = 2, meshY = 2}
        axes ["cx", "cy"] {
      arch.level @OB : "OutputBuffer" by drains link {bw = 64} {
      }
    }
    ```
    """

    name = "arch.level"
    axes = opt_prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    traits = traits_def(HasParentNamed((SYSTEM, name)), NoTerminator())
    custom_directives = (FieldsDirective,)
    assembly_format = NODE_FORMAT + "(`axes` $axes^)? attr-dict-with-keyword $body"

    def __init__(
        self,
        label: str,
        kind: str,
        body: Sequence[Operation] = (),
        path: Path | None = None,
        link: Fields | None = None,
        *,
        axes: Sequence[str] = (),
        range: str | None = None,
        extra: Fields | None = None,
    ):
        properties = _node_properties(label, kind, path, link, range, extra)
        if axes:
            properties["axes"] = ArrayAttr(StringAttr(axis) for axis in axes)
        super().__init__(properties=properties, regions=[Region(Block(body))])

    @property
    def memory(self) -> MemoryOp:
        """The row that describes the memory."""
        return self._required_row(MemoryOp)

    @property
    def capacity(self) -> int | None:
        """Bytes of one instance; None for the root memory, which has no limit."""
        return None if self.level_name == ROOT_MEMORY else self.memory.bytes

    @property
    def axis_extents(self) -> dict[str, int]:
        """The mesh axes that begin at this level, with their extents."""
        names = () if self.axes is None else (axis.data for axis in self.axes)
        return dict(zip(names, self.mesh_shape, strict=False))

    @property
    def children(self) -> tuple[LevelOp, ...]:
        """The levels directly below."""
        return tuple(op for op in self.body.block.ops if isinstance(op, LevelOp))

    @property
    def units(self) -> tuple[UnitOp, ...]:
        """The compute units directly below."""
        return tuple(op for op in self.body.block.ops if isinstance(op, UnitOp))

    def verify_(self) -> None:
        self.verify_node()
        _ = self.memory
        extents = self.axis_extents
        if self.axes is None:
            return
        if len(extents) != len(self.axes):
            raise VerifyException(f"{self._title} has one or two axes, all different")
        if mistake := misnamed_axis(extents):
            raise VerifyException(f"{self._title} {mistake}")
        if prod(extents.values()) != self.instances:
            raise VerifyException(
                f"{self._title} has {self.instances} instances, but its axes span "
                f"{prod(extents.values())}; name an axis for each direction of its mesh"
            )
