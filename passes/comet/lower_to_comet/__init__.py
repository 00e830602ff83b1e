"""The `lower-to-comet` pass: a tile tree to the ops that mirror the COMET files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.blocks import values_in
from comet.dialects.collective import AllGatherOp, CollectiveOp, GatherOp
from comet.dialects.collective.roots import Roots, roots_after
from comet.dialects.comet import UNPRICED, ConstantsOp
from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import (
    joined_extents,
    names_of,
    with_names,
)
from comet.dialects.errors import OpError, about
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.analysis.padding import is_border, true_extents
from comet.passes.comet.lower_to_comet.build import (
    MappingPlan,
    build_mapping,
    build_problem,
    only_function,
)
from comet.passes.comet.lower_to_comet.factors import extents_for, factors_on_paths
from comet.passes.comet.lower_to_comet.legality import check_legality
from comet.passes.comet.lower_to_comet.merge import merge_neighbours, unmerged
from comet.passes.comet.lower_to_comet.names import names_for, with_aliases
from comet.passes.comet.lower_to_comet.tree import notes_of, tree_of
from comet.passes.comet.lower_to_comet.values import Values, values_of
from comet.passes.schedule.retile import set_loops

NAMES = "comet.names"
"""The attribute of a mapping with the IR names of its names."""


@dataclass(frozen=True)
class LowerToCometPass(ModulePass):
    """
    Lower the tile tree of a function to the `comet` dialect.

    Before: one function at the schedule level, with factors, and attached hardware.
    After: `comet.problem`, `comet.mapping` and `comet.constants` instead; annotations
    of the function and of its nodes stay on the ops they became. Rejects what the COMET
    files cannot express, what the tool is known to price wrongly, and tiles that do not
    fit.
    """

    name = "lower-to-comet"

    model: Literal["paper", "ideal"] | None = None
    """
    The model that is to price the mapping, node by node; if unset, the COMET tool has
    to be able to, too, so that the files can be written.
    """

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_module(op, absorb=self.model is None)
        if self.model is None:
            check_legality(op)


def lower_module(module: ModuleOp, *, absorb: bool = True) -> None:
    """
    Lower the one function of `module`, even if its tiles do not fit.

    `absorb` is that of `plan_lowering`. Raises PassFailedException for what the files
    cannot express.
    """
    functions_at(module, "lower-to-comet", IRLevel.SCHEDULE)
    func = only_function(module)
    with about(func):
        system = attached_system(module)
        lower_function(func, plan_lowering(func, system, absorb=absorb))


def plan_lowering(func: FuncOp, system: SystemOp, *, absorb: bool) -> MappingPlan:
    """
    Collect from a function all that its files will contain.

    Changes only names that a gather has introduced, which the files do not have.

    Without `absorb` every node of the tree stays a node, even if the COMET tool cannot
    price it separately from its neighbour.

    Raises PassFailedException for what the files cannot express.
    """
    _check_tree(func)
    gathered, idle = gathered_names(func), idle_axes(func)
    restore_names(func, gathered)
    values = values_of(func)
    tree = tree_of(func.body.block, values)
    paths = factors_on_paths(tree, idle)
    extents = extents_for(paths, _outer_extents(func))
    used = [v for op in paths for v in (*op.operands, *op.results)]
    tensors = dict.fromkeys(values.root(v) for v in used if not values.is_constant(v))
    return MappingPlan(
        tree=tree,
        values=values,
        names=with_aliases(names_for(tuple(extents.sizes), tensors, paths), gathered),
        extents=extents,
        system=system,
        inputs=tuple(arg for arg in func.args if arg in tensors),
        outputs=_outputs(func, values),
        idle=idle,
        true=true_extents(func),
        absorb=absorb,
    )


def _check_tree(func: FuncOp) -> None:
    """Raise OpError unless nodes and collectives compute all results of `func`."""
    if not any(isinstance(op, NodeOp) for op in func.body.block.ops):
        raise OpError(
            func,
            f"lower-to-comet: @{func.sym_name.data} computes nothing, and COMET files "
            "say how something is computed; return what an op computes",
        )
    for op in func.body.block.ops:
        if not isinstance(op, NodeOp | CollectiveOp | ReturnOp) and not is_border(op):
            raise OpError(
                op,
                f"lower-to-comet: '{op.name}' is outside of the tile tree; run "
                "fuse and tile first",
            )


def _outputs(func: FuncOp, values: Values) -> tuple[SSAValue, ...]:
    """Return the results of the function, each of which an op must compute."""
    returned = func.get_return_op()
    outputs = () if returned is None else tuple(returned.operands)
    if all(isinstance(values.root(value).owner, Operation) for value in outputs):
        return outputs
    raise OpError(
        func,
        "lower-to-comet: the function returns one of its arguments, and an output of "
        "the COMET files is made by an operation; do not return it",
    )


def _outer_extents(func: FuncOp) -> dict[str, int]:
    """Return the extents of the values outside of the tree: those of the problem."""
    ops = [op for op in func.body.block.ops if not is_border(op)]
    results = (result for op in ops for result in op.results)
    return joined_extents(
        (*func.args, *(v for op in ops for v in op.operands), *results)
    )


def lower_function(func: FuncOp, plan: MappingPlan) -> None:
    """Replace `func` by the ops of `plan`."""
    mapping = build_mapping(plan)
    mapping.attributes[NAMES] = plan.names.table()
    mapping.attributes.update(notes_of(func))
    mapping.location = func.location
    Rewriter.replace_op(func, [ConstantsOp({}), build_problem(plan), mapping], [])
    reason = merge_neighbours(mapping) if plan.absorb else unmerged(mapping)
    if reason is not None:
        mapping.attributes[UNPRICED] = StringAttr(reason)


def gathered_names(func: FuncOp) -> dict[str, str]:
    """
    Return the new names of gathered dimensions, with their old ones.

    In the files a tensor that is gathered to the root keeps its name and dimensions;
    only the factors of later operations show that they run on the root alone.
    """
    names: dict[str, str] = {}
    for op in func.walk():
        if isinstance(op, RenameOp) and isinstance(
            op.input.owner, AllGatherOp | GatherOp
        ):
            names |= {new: old for old, new in op.renaming.items() if new != old}
    return {new: names.get(old, old) for new, old in names.items()}


def restore_names(func: FuncOp, names: Mapping[str, str]) -> None:
    """Give gathered dimensions their old names, `names`, in all values and loops."""
    for value in tuple(values_in(func.body.block)):
        if set(names_of(value)) & names.keys():
            type_ = with_names(value.type, names)
            Rewriter.replace_value_with_new_type(value, type_)
    for op in func.walk():
        if isinstance(op, NodeOp):
            loops = [
                LoopAttr(names.get(loop.dim, loop.dim), loop.factor, loop.axis)
                for loop in op.loops
            ]
            set_loops(op, loops)


def idle_axes(func: FuncOp) -> dict[Operation, frozenset[str]]:
    """Return the mesh axes of which only one instance runs an op, if there are any."""
    found: dict[Operation, frozenset[str]] = {}
    _record_roots(func.body.block, {}, found)
    return found


def _record_roots(
    block: Block,
    roots: dict[SSAValue, Roots],
    found: dict[Operation, frozenset[str]],
) -> None:
    """Record the roots of all values in `block`, in order, and the ops on them."""
    for op in block.ops:
        if not isinstance(op, NodeOp):
            roots |= dict.fromkeys(op.results, op_roots := roots_after(op, roots))
            if axes := frozenset(axis for group in op_roots for axis in group):
                found[op] = axes
            continue
        outer = op.operands
        for value, argument in zip(outer, op.body.block.args, strict=True):
            roots[argument] = roots.get(value, {})
        _record_roots(op.body.block, roots, found)
        node_axes = {loop.axis for loop in op.loops}
        for inner, out in zip(op.yielded, op.outs, strict=True):
            groups = roots.get(inner, {}).items()
            roots[out] = {group: n for group, n in groups if not node_axes & set(group)}
