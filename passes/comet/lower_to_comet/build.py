"""Builds the `comet` ops of a lowering plan, which has all decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.cost.accelerator.compute import MATRIX_UNITS, VECTOR_UNITS
from comet.cost.accelerator.partial_sums import Accumulation
from comet.cost.reals import Truth
from comet.dialects.arch import SystemOp
from comet.dialects.arch.nodes import UnitOp
from comet.dialects.comet import (
    BindingOp,
    CollectiveOp,
    DeclareOp,
    MappingOp,
    OperationOp,
    ProblemOp,
    TileOp,
)
from comet.dialects.comet.attributes import (
    Compute,
    MovedTensor,
    Sizes,
    Step,
)
from comet.dialects.compound import ContractOp
from comet.dialects.compound.copied import ComputeOp, origin_of, stored_as
from comet.dialects.compound.dims import bits_of, extents_of, level_of, names_of
from comet.dialects.errors import OpError
from comet.dialects.schedule.attributes import BindingKind as Bind
from comet.dialects.schedule.attributes import LoopAttr
from comet.kinds import Access, BindingKind, TileKind
from comet.passes.analysis.addresses import check_addresses
from comet.passes.analysis.functions import compute_functions
from comet.passes.comet.lower_to_comet.collectives import exchange_of
from comet.passes.comet.lower_to_comet.factors import (
    Extents,
    Factors,
    Idle,
    accumulation_of,
    loop_order,
    product_of,
    tile_extents,
)
from comet.passes.comet.lower_to_comet.names import Names, kind_of
from comet.passes.comet.lower_to_comet.tree import (
    Item,
    Notes,
    PlacedCollective,
    Spatial,
    TaggedTransfer,
    Temporal,
    notes_of,
)
from comet.passes.comet.lower_to_comet.values import Values


@dataclass(frozen=True)
class MappingPlan:
    """The contents of the files, read from the IR, with their names."""

    tree: Temporal
    values: Values
    names: Names
    extents: Extents
    system: SystemOp
    inputs: tuple[SSAValue, ...]
    outputs: tuple[SSAValue, ...]
    idle: Idle
    true: Factors
    """The extents of padded dimensions in the signature of the function."""
    absorb: bool = True
    """Whether to merge nodes that the COMET tool cannot price separately."""

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions of the problem, by their names in the IR."""
        return tuple(self.extents.sizes)

    def tensor(self, value: SSAValue) -> str:
        """Return the name of a value's tensor in the files."""
        return self.names.tensors[self.values.root(value)]

    def sizes(self, factors: Factors, dims: Sequence[str] | None = None) -> Sizes:
        """Return factors by the letters of the dimensions; an absent one is 1."""
        chosen = self.dims if dims is None else dims
        return tuple((self.names.dims[dim], factors.get(dim, 1)) for dim in chosen)

    def tensors_of(self, op: ComputeOp) -> tuple[SSAValue, ...]:
        """Return the tensors that `op` reads, each once, no scalars, and its result."""
        reads = {
            self.values.root(v): v
            for v in op.operands
            if not self.values.is_constant(v)
        }
        return (*reads.values(), op.results[0])


def build_problem(plan: MappingPlan) -> ProblemOp:
    """Return the problem: every op with the dimensions that it has."""
    declarations: list[Operation] = []
    for op, tag in plan.names.tags.items():
        tensors = plan.tensors_of(op)
        letters = [plan.names.dims[dim] for dim in plan.dims if dim in tile_extents(op)]
        accesses = [
            Access(
                plan.tensor(value),
                tuple((plan.names.dims[dim],) for dim in names_of(value)),
                read_write=value is tensors[-1],
            )
            for value in tensors
        ]
        ins = [access.tensor for access in accesses[:-1]]
        declarations.append(DeclareOp(tag, ins, accesses[-1].tensor, letters, accesses))
    return ProblemOp(
        [plan.tensor(value) for value in plan.inputs],
        [plan.tensor(value) for value in plan.outputs],
        plan.sizes(plan.extents.sizes),
        Region(Block(declarations)),
        plan.sizes(plan.true, [dim for dim in plan.dims if dim in plan.true]),
    )


def build_mapping(plan: MappingPlan) -> MappingOp:
    """Return the mapping: the tree, with what follows from its loops."""
    root = _Nodes(plan, count(1)).temporal(plan.tree, {}, {})
    return MappingOp(Region(Block([root])))


@dataclass(frozen=True)
class _Nodes:
    plan: MappingPlan
    numbers: Iterator[int]
    """Numbers for the tags of collectives."""

    def temporal(
        self, node: Temporal, sums: Mapping[ComputeOp, Truth], axes: Mapping[str, str]
    ) -> TileOp:
        """
        Return a temporal node.

        `sums` are the ops whose results an outer loop accumulates in place, `axes` the
        dimensions that enclosing mesh axes split.
        """
        entries: list[MovedTensor] = []
        children: list[tuple[Operation, Bind]] = []
        for item in node.items:
            loops = (self.plan.sizes(product_of(item.loops)),)
            if isinstance(item.node, Spatial):
                transfers = item.node.transfers
                entries += [
                    self._entry(t, loops, self._summed(t, item, sums))
                    for t in transfers
                ]
                child = self._spatial(item.node, item, sums, axes)
            elif isinstance(item.node, PlacedCollective):
                child = self._exchange(item.node, axes)
            else:
                entries += self._leaf_entries(item.node, item, sums)
                child = self._operation(item.node)
            children.append((child, item.bind))
        order = loop_order([item.loops for item in node.items], self.plan.dims)
        return self._tile(TileKind.TEMPORAL, order, entries, children, node.notes)

    def _spatial(
        self,
        node: Spatial,
        item: Item,
        sums: Mapping[ComputeOp, Truth],
        axes: Mapping[str, str],
    ) -> TileOp:
        loops = tuple(map(self._sizes, node.loops)) or (self.plan.sizes({}),)
        entries = [
            self._entry(t, self._busy(t, node, loops), self._summed(t, item, sums))
            for t in node.transfers
        ]
        moved = {t.op for t in node.transfers if t.written}
        below = {
            op: self._accumulation(op, item, sums, moves=op in moved).below
            for op in _ops_below(node)
        }
        axis_dims = {
            loop.axis: loop.dim for loop in node.loops if loop.axis is not None
        }
        split = {**axes, **axis_dims}
        children = [
            (
                self.temporal(child.node, below, split)
                if isinstance(child.node, Temporal)
                else self._exchange(child.node, split),
                child.bind,
            )
            for child in node.children
        ]
        order = loop_order([], self.plan.dims)
        return self._tile(TileKind.SPATIAL, order, entries, children, node.notes)

    def _busy(
        self, transfer: TaggedTransfer, node: Spatial, loops: tuple[Sizes, ...]
    ) -> tuple[Sizes, ...]:
        """Return `loops`, with factor 1 for axes along which one instance computes."""
        idle = self.plan.idle.get(transfer.op, frozenset[str]())
        single = self.plan.sizes({})
        axes = [loop.axis for loop in node.loops] or [None]
        return tuple(
            single if axis in idle else loop
            for axis, loop in zip(axes, loops, strict=True)
        )

    def _sizes(self, loop: LoopAttr) -> Sizes:
        return self.plan.sizes({loop.dim: loop.factor})

    def _tile(
        self,
        kind: TileKind,
        order: Sequence[str],
        entries: Sequence[MovedTensor],
        children: Sequence[tuple[Operation, Bind]],
        notes: Notes,
    ) -> TileOp:
        if not entries:
            raise PassFailedException(
                f"lower-to-comet: a {kind} node moves no value between levels, and the "
                "COMET files have no such node; nest what it holds into a neighbour"
            )
        ops: list[Operation] = []
        for op, bind in children[:-1]:
            ops += [BindingOp(BindingKind(str(bind))), op]
        ops.append(children[-1][0])
        letters = "".join(self.plan.names.dims[dim] for dim in order)
        tile = TileOp(kind, letters, entries, Region(Block(ops)))
        tile.attributes.update(notes)
        return tile

    def _summed(
        self, transfer: TaggedTransfer, item: Item, sums: Mapping[ComputeOp, Truth]
    ) -> bool:
        return transfer.written and bool(
            self._accumulation(transfer.op, item, sums).here
        )

    def _accumulation(
        self,
        op: ComputeOp,
        item: Item,
        sums: Mapping[ComputeOp, Truth],
        *,
        moves: bool = True,
    ) -> Accumulation:
        above = sums.get(op, False)
        return accumulation_of(op, item.summed_loops, above, moves=moves)

    def _entry(
        self, transfer: TaggedTransfer, loops: tuple[Sizes, ...], rmw: bool
    ) -> MovedTensor:
        return MovedTensor(
            self.plan.tensor(transfer.value),
            self.plan.names.tags[transfer.op],
            transfer.outer,
            transfer.inner,
            transfer.bits,
            loops,
            rmw=rmw,
            wb_output=transfer.written,
        )

    def _leaf_entries(
        self, op: ComputeOp, item: Item, sums: Mapping[ComputeOp, Truth]
    ) -> Iterator[MovedTensor]:
        unit = unit_for(op, self.plan.system)
        rmw = bool(self._accumulation(op, item, sums).here)
        for value in self.plan.tensors_of(op):
            written = value is op.results[0]
            in_memory = stored_as(value) if written else origin_of(value)
            yield MovedTensor(
                self.plan.tensor(value),
                self.plan.names.tags[op],
                level_of(value) or "",
                unit.level_name,
                bits_of(in_memory),
                (self.plan.sizes(product_of(item.loops)),),
                rmw=rmw and written,
                wb_output=written,
            )

    def _operation(self, op: ComputeOp) -> OperationOp:
        steps = self.plan.extents.steps[op]
        dims = [dim for dim in self.plan.dims if dim in tile_extents(op)]
        compute = None
        if isinstance(op, ContractOp):
            roles = roles_of(op, steps)
            dims = list(roles.primitive)
            streamed = self.plan.sizes(steps, [roles.streamed])
            compute = Compute(streamed, rmw=True, specd=True)
        tiles = [
            Step(self.plan.tensor(value), self.plan.sizes(steps))
            for value in self.plan.tensors_of(op)
        ]
        primitive = self.plan.sizes(steps, dims)
        if not primitive:  # a number; the COMET tool stops where no dimension is named
            primitive = self.plan.sizes({}, self.plan.dims[:1])
        return OperationOp(
            kind_of(op), self.plan.names.tags[op], primitive, tiles, compute
        )

    def _exchange(
        self, node: PlacedCollective, axes: Mapping[str, str]
    ) -> CollectiveOp:
        op, system = node.op, self.plan.system
        dims = [axes[axis] for axis in op.axis_names if axis in axes]
        letter = self.plan.names.dims.get(dims[0]) if dims else None
        tag = f"c{next(self.numbers)}"
        built = exchange_of(op, system, tag, self.plan.tensor(op.input), letter)
        built.attributes.update(notes_of(op))
        return built


def _ops_below(node: Spatial) -> Iterator[ComputeOp]:
    for child in node.children:
        for item in child.node.items if isinstance(child.node, Temporal) else ():
            if isinstance(item.node, ComputeOp):
                yield item.node
            elif isinstance(item.node, Spatial):
                yield from _ops_below(item.node)


@dataclass(frozen=True)
class Roles:
    """The roles of a contraction's dimensions in a weight-stationary array."""

    streamed: str
    columns: str
    rows: str
    extra: tuple[str, ...]
    """Other dimensions; the tool can price them only with extent 1."""

    @property
    def primitive(self) -> tuple[str, ...]:
        """The order in which the tool's array looks for the streamed one, then rows."""
        return (*self.extra, self.streamed, self.columns, self.rows)


def unit_for(op: ComputeOp, system: SystemOp) -> UnitOp:
    """
    Return the unit below all levels at which `op` has its operands and its result.

    Raises PassFailedException if there is none of the right kind.
    """
    wanted = MATRIX_UNITS if isinstance(op, ContractOp) else VECTOR_UNITS
    levels = dict.fromkeys(level_of(v) or "" for v in (*op.operands, *op.results))
    common: dict[str, UnitOp] | None = None
    for name in levels:
        units = {unit.level_name: unit for unit in system.level(name).units}
        shared = (
            units if common is None else {n: common[n] for n in common if n in units}
        )
        common = {n: unit for n, unit in shared.items() if unit.kind.data in wanted}
    kinds = {node.kind.data for node in system.nodes if isinstance(node, UnitOp)}
    if kinds.isdisjoint(wanted):
        raise OpError(
            op,
            f"lower-to-comet: hardware @{system.system_name} has no compute tile "
            f"called {' or '.join(wanted)}, as '{op.name}' needs; call one so in its "
            "file",
        )
    if not common:
        raise OpError(
            op,
            f"lower-to-comet: no unit of kind {' or '.join(wanted)} is joined to "
            f"{', '.join(levels)}, where '{op.name}' has its values; move them with a "
            "spatial node",
        )
    return next(iter(common.values()))


def roles_of(op: ContractOp, sizes: Mapping[str, int]) -> Roles:
    """
    Assign roles to the dimensions of a contraction, given the sizes of its tile.

    Raises PassFailedException if there is no dimension for one of the three roles.
    """
    batch, streamed, columns, rows = op.roles
    m, n, k = (_largest(op, dims, sizes) for dims in (streamed, columns, rows))
    all_dims = (*batch, *streamed, *columns, *rows)
    return Roles(m, n, k, tuple(dim for dim in all_dims if dim not in (m, n, k)))


def only_function(module: ModuleOp) -> FuncOp:
    """
    Return the function of a module.

    Raises OpError, about the second one, unless it has one.
    """
    functions = tuple(compute_functions(module))
    if len(functions) != 1:
        raise OpError(
            functions[1] if functions else None,
            f"lower-to-comet: the module has {len(functions)} functions, and a set of "
            "COMET files holds one problem; keep one function per module",
        )
    return functions[0]


def check_expressible(func: FuncOp) -> None:
    """Raise PassFailedException for an op that no COMET file has, in any tiles."""
    check_addresses(func)
    for op in func.walk():
        if isinstance(op, ComputeOp):
            _ = kind_of(op)
        if isinstance(op, ContractOp):
            _ = roles_of(op, extents_of(op.lhs) | extents_of(op.rhs))


def _largest(op: ContractOp, dims: Sequence[str], sizes: Mapping[str, int]) -> str:
    if not dims:
        raise OpError(
            op,
            f"lower-to-comet: {op.lhs.type} times {op.rhs.type} is no product of two "
            "matrices, which is all that the COMET tool can price; give vectors a "
            "second dimension of extent 1, or write it with reduce and map",
        )
    return max(dims, key=lambda dim: sizes[dim])
