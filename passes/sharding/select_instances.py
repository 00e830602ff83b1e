"""
`select-instances`: any level before sharding -> the same, on a part of the mesh.

Makes mesh axes of the attached accelerator shorter; the machine says which instances
are left out. Rejects a program that is already sharded, and more instances than an
axis has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from comet.dialects.arch import LEFT_OUT, SystemOp
from comet.dialects.arch.fields import dictionary_of, fields_of
from comet.dialects.arch.nodes import NodeOp
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.comet import MappingOp
from comet.dialects.errors import OpError
from comet.dialects.schedule import node as schedule
from comet.passes.analysis.hardware_kind import attached_accelerator
from comet.passes.analysis.hardware_mesh import hardware_mesh
from comet.passes.sharding.dim_axes import Parts, check_parts, parse_parts

Shape = tuple[int, int]
"""A mesh: columns, rows."""


@dataclass(frozen=True)
class SelectInstancesPass(ModulePass):
    """Use only the first instances along some mesh axes."""

    name = "select-instances"

    axes: str
    """The number of instances along each of some axes, as in "cx=2,cy=4"."""

    def __post_init__(self) -> None:
        """Check the option; raise PassFailedException for text of another form."""
        _ = self.parts

    @property
    def parts(self) -> Parts:
        """The number of instances along each of the axes."""
        return parse_parts(self.name, self.axes)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = attached_accelerator(self.name, op)
        check_parts(self.name, hardware_mesh(system), self.parts)
        if shapes := narrowed(system, self.parts):
            check_unsharded(self.name, op)
            reshape(op, system, shapes, left_out(shapes))


def narrowed(system: SystemOp, parts: Parts) -> dict[NodeOp, Shape]:
    """Return the new meshes of the levels that span an axis of `parts`."""
    shapes: dict[NodeOp, Shape] = {}
    for level in system.levels:
        spanned = zip_longest(system.axes_of(level.level_name), level.mesh_shape)
        columns, rows = (parts.get(axis or "", extent) for axis, extent in spanned)
        if (columns, rows) != level.mesh_shape:
            shapes[level] = (columns, rows)
    return shapes


def left_out(shapes: Mapping[NodeOp, Shape]) -> str:
    """Say how many instances are used of the levels whose meshes become `shapes`."""
    groups: dict[tuple[Shape, Shape], list[str]] = {}
    for node, shape in shapes.items():
        groups.setdefault((shape, node.mesh_shape), []).append(node.level_name)
    return "; ".join(
        f"{x * y} of the {columns * rows} instances of {', '.join(names)} "
        f"{'is' if x * y == 1 else 'are'} used"
        for ((x, y), (columns, rows)), names in groups.items()
    )


def check_unsharded(name: str, module: ModuleOp) -> None:
    """
    Check that no op of `module` depends on the mesh, for the pass `name`.

    Raises PassFailedException if one does.
    """
    for op in module.walk():
        if isinstance(op, CollectiveOp | schedule.NodeOp | MappingOp):
            raise OpError(
                op,
                f"{name}: '{op.name}' is written for the whole mesh; run {name} before "
                "the program is sharded",
            )


def reshape(
    module: ModuleOp, system: SystemOp, shapes: Mapping[NodeOp, Shape], sentence: str
) -> None:
    """Set the meshes of nodes; write on the machine which instances are left out."""
    before = system.attributes.get(LEFT_OUT)
    sentences = [before.data] if isinstance(before, StringAttr) else []
    system.attributes[LEFT_OUT] = StringAttr("; ".join([*sentences, sentence]))
    for node, shape in shapes.items():
        set_mesh(node, shape)
    mesh = hardware_mesh(system)
    for op in module.ops:
        if isinstance(op, MeshOp) and op.sym_name == mesh.sym_name:
            Rewriter.replace_op(op, mesh)
            return


def set_mesh(node: NodeOp, shape: Shape) -> None:
    """Give a node of the machine a mesh."""
    columns, rows = shape
    link = {} if node.link is None else fields_of(node.link)
    fields = {name: field for name, field in link.items() if name != "mesh"}
    node.properties["link"] = dictionary_of(fields | {"meshX": columns, "meshY": rows})
    if node.range is not None:
        node.properties["range"] = StringAttr(f"[0..{columns * rows - 1}]")
