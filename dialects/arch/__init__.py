"""
The arch dialect: a hardware file as IR, one to one.

The hierarchy of memories is a tree of `arch.level` ops with `arch.unit` ops as leaves.
As in the file, a node has the fields of the link to its parent. The ops `arch.memory`
and `arch.compute` describe the kinds of nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Block, Dialect, Operation, Region
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from comet.dialects.arch.fields import Fields, FieldsDirective, dictionary_of
from comet.dialects.arch.gpu import GpuOp
from comet.dialects.arch.nodes import LevelOp, NodeOp, Path, PathAttr, UnitOp
from comet.dialects.arch.rows import SYSTEM, ComputeOp, ContainerOp, MemoryOp

__all__ = [
    "Arch",
    "ArchError",
    "ComputeOp",
    "GpuOp",
    "LevelOp",
    "MemoryOp",
    "NodeOp",
    "Path",
    "PathAttr",
    "SystemOp",
    "UnitOp",
    "attached_system",
    "find_system",
]


class ArchError(DiagnosticException):
    """Hardware that is missing or invalid, or that lacks a level."""


LEFT_OUT = "arch.left_out"
"""The attribute of a system with a sentence on instances that are not used."""


@irdl_op_definition
class SystemOp(ContainerOp):
    """
    A machine: kinds of memories and units, the hierarchy, and the figures of its GPUs.

    Its name is no symbol, as the mesh of the machine has the same name.

    ```mlir
    arch.system @edge {
      arch.memory "DRAM" {bw = 25, width = 8}
      arch.level @DRAM : "DRAM" {
      }
    }
    ```
    """

    name = SYSTEM
    label = prop_def(SymbolNameConstraint())
    extra = opt_prop_def(DictionaryAttr)
    """Fields at the top of the file that comet does not read."""
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    custom_directives = (FieldsDirective,)
    assembly_format = (
        "$label (`extra` custom<FieldsDirective>($extra)^)? "
        "attr-dict-with-keyword $body"
    )

    def __init__(
        self, label: str, body: Sequence[Operation] = (), extra: Fields | None = None
    ):
        super().__init__(
            properties={
                "label": StringAttr(label),
                "extra": dictionary_of(extra) if extra else None,
            },
            regions=[Region(Block(body))],
        )

    @property
    def system_name(self) -> str:
        """The name of the system, which is also that of its mesh."""
        return self.label.data

    @property
    def nodes(self) -> tuple[LevelOp | UnitOp, ...]:
        """All levels and units, a parent before its children, in the file's order."""
        return tuple(_nodes_in(self.body.block))

    @property
    def levels(self) -> tuple[LevelOp, ...]:
        """All levels, outermost first."""
        return tuple(node for node in self.nodes if isinstance(node, LevelOp))

    @property
    def gpu(self) -> GpuOp | None:
        """The op with the figures of a GPU; None on an accelerator."""
        ops = self.body.block.ops
        return next((op for op in ops if isinstance(op, GpuOp)), None)

    @property
    def axes(self) -> dict[str, int]:
        """The mesh axes and their extents, outermost level first."""
        return {a: n for lv in self.levels for a, n in lv.axis_extents.items()}

    @property
    def axis_levels(self) -> dict[str, str]:
        """The level at which each mesh axis begins."""
        return {a: lv.level_name for lv in self.levels for a in lv.axis_extents}

    def level(self, name: str) -> LevelOp:
        """Return the level of that name; raises ArchError with the names that exist."""
        levels = {level.level_name: level for level in self.levels}
        if (found := levels.get(name)) is None:
            raise ArchError(
                f"@{self.system_name} has no level {name}; it has {', '.join(levels)}"
            )
        return found

    def route(self, source: str, target: str) -> tuple[str, ...]:
        """Return the levels on the path from one level to another, both included."""
        up, down = (
            _with_ancestors(self.level(source)),
            _with_ancestors(self.level(target)),
        )
        meeting = next(name for name in up if name in down)
        upward = up[: up.index(meeting) + 1]
        return (*upward, *reversed(down[: down.index(meeting)]))

    def axes_of(self, name: str) -> tuple[str, ...]:
        """
        Return the mesh axes that the instances of a level span, below one parent.

        A level that names no axes has those of a sibling with the same mesh, such as
        the input, weight and output buffers of one core.
        """
        level = self.level(name)
        above = level.parent_level
        siblings = (level,) if above is None else (level, *above.children)
        for sibling in siblings:
            if sibling.axes is not None and sibling.mesh_shape == level.mesh_shape:
                return tuple(sibling.axis_extents)
        return ()

    def verify_(self) -> None:
        names = [level.level_name for level in self.levels]
        self._verify_distinct("level", names)
        for unit in (op for op in self.body.walk() if isinstance(op, UnitOp)):
            if unit.level_name in names:
                raise VerifyException(
                    f"'{self.name}' op has a level and a unit that are called "
                    f"{unit.level_name}; rename one"
                )
        self._verify_distinct(
            "mesh axis", [a.data for lv in self.levels for a in lv.axes or ()]
        )
        roots = [
            level.level_name for level in self.levels if level.parent_level is None
        ]
        if len(roots) > 1:
            raise VerifyException(
                f"'{self.name}' op has {len(roots)} outermost levels, "
                f"{', '.join(roots)}; write one, which the others are below"
            )
        for row in (MemoryOp, ComputeOp):
            rows = [op.kind.data for op in self.body.block.ops if isinstance(op, row)]
            self._verify_distinct(row.name, rows)

    def _verify_distinct(self, what: str, names: Sequence[str]) -> None:
        for name, count in Counter(names).items():
            if count > 1:
                raise VerifyException(f"'{self.name}' op has {what} {name} twice")


def _nodes_in(block: Block) -> Iterator[LevelOp | UnitOp]:
    """Yield the levels and units of a block; only levels have nodes inside."""
    for op in block.ops:
        if isinstance(op, LevelOp):
            yield op
            yield from _nodes_in(op.body.block)
        elif isinstance(op, UnitOp):
            yield op


def _with_ancestors(level: LevelOp) -> tuple[str, ...]:
    names = [level.level_name]
    while (above := level.parent_level) is not None:
        level = above
        names.append(level.level_name)
    return tuple(names)


def find_system(op: Operation) -> SystemOp | None:
    """Return the hardware attached to the module around `op`; None if there is none."""
    top = op
    while (above := top.parent_op()) is not None:
        top = above
    systems = (found for found in top.walk() if isinstance(found, SystemOp))
    return next(systems, None)


def attached_system(op: Operation) -> SystemOp:
    """Return the hardware attached to the module; raises ArchError if there is none."""
    if (system := find_system(op)) is None:
        raise ArchError(
            'the module has no hardware; run attach-hardware{path="..."} first'
        )
    return system


Arch = Dialect(
    "arch",
    [SystemOp, MemoryOp, ComputeOp, LevelOp, UnitOp, GpuOp],
    [PathAttr],
)
