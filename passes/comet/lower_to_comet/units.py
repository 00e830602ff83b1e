"""Which compute unit runs an op, and the roles of dimensions in a matrix unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from comet.cost.accelerator.compute import MATRIX_UNITS, VECTOR_UNITS
from comet.dialects.arch import SystemOp
from comet.dialects.arch.nodes import UnitOp
from comet.dialects.compound import ContractOp
from comet.dialects.compound.copied import ComputeOp
from comet.dialects.compound.dims import level_of
from comet.dialects.errors import OpError


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
        kept = units if common is None else {n: common[n] for n in common if n in units}
        common = {n: unit for n, unit in kept.items() if unit.kind.data in wanted}
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
    others = (*batch, *streamed, *columns, *rows)
    return Roles(m, n, k, tuple(dim for dim in others if dim not in (m, n, k)))


def _largest(op: ContractOp, dims: Sequence[str], sizes: Mapping[str, int]) -> str:
    if not dims:
        raise OpError(
            op,
            f"lower-to-comet: {op.lhs.type} times {op.rhs.type} is no product of two "
            "matrices, which is all that the COMET tool can price; write it with "
            "reduce and map",
        )
    return max(dims, key=lambda dim: sizes[dim])
