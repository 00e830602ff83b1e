"""The formulas of a descent, each recorded once: it prices the same orders often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from comet.cost.accelerator.legality import check_structure
from comet.cost.accelerator.model import (
    AT_ONCE,
    Prices,
    figures_of,
    is_legal,
    keep_memory,
)
from comet.cost.estimate import ModelName
from comet.cost.replay import Array, Figure, Formula
from comet.passes.schedule.tile.candidates import Candidates
from comet.passes.schedule.tile.moves import orders_of
from comet.passes.schedule.tile.template import Factor, Plan, Template, Values

Orders: TypeAlias = tuple[tuple[str, ...], ...]
"""The order of the loops of each key."""

Evaluate: TypeAlias = Callable[[Candidates], Sequence[Figure]]


@dataclass(frozen=True)
class Formulas:
    """Prices and legality of many choices of factors for a template, as arrays."""

    template: Template
    model: ModelName
    """`paper` or `ideal`."""
    _tiles: dict[Orders, Formula[Factor]] = field(
        default_factory=dict[Orders, Formula[Factor]]
    )
    _figures: dict[Orders, Formula[Factor]] = field(
        default_factory=dict[Orders, Formula[Factor]]
    )
    _sizes: dict[Orders, Formula[Factor]] = field(
        default_factory=dict[Orders, Formula[Factor]]
    )

    def are_tiles(self, values: Values) -> NDArray[np.bool_]:
        """Return where factors divide, and the operands of products are matrices."""

        def evaluate(candidates: Candidates) -> Sequence[Figure]:
            return (candidates.factors_divide() & candidates.tiles_are_matrices(),)

        (truth,) = self._of(self._tiles, (), evaluate)(_reals(values))
        return truth.astype(np.bool_)

    def prices(self, plan: Plan, values: Values) -> Prices:
        """
        Return the costs of factors with the loop orders of `plan`.

        Raises CostError for a structure that cannot be priced.
        """
        keep_memory()
        hardware, model = self.template.hardware, self.model

        def evaluate(candidates: Candidates) -> Sequence[Figure]:
            check_structure(self.template.problem, hardware)
            return figures_of(candidates.mappings(plan), hardware, model)

        formula = self._of(self._figures, orders_of(plan), evaluate)
        blocks = [formula(block) for block in _blocks(_reals(values))]
        return Prices(*map(np.concatenate, zip(*blocks, strict=True)))

    def are_legal(self, plan: Plan, values: Values, *, live: bool) -> NDArray[np.bool_]:
        """Return which factors fit, by `is_legal` and by the liveness of values."""
        hardware = self.template.hardware

        def evaluate(candidates: Candidates) -> Sequence[Figure]:
            legal = is_legal(candidates.mappings(plan), hardware, live=live)
            return (legal & candidates.fits_levels(),)

        formula = self._of(self._sizes, orders_of(plan), evaluate)
        truths = [formula(block)[0] for block in _blocks(_reals(values))]
        return np.concatenate(truths).astype(np.bool_)

    def _of(
        self,
        known: dict[Orders, Formula[Factor]],
        orders: Orders,
        evaluate: Evaluate,
    ) -> Formula[Factor]:
        """Return the formula of some orders, which is made once."""
        if orders not in known:

            def of_arrays(arrays: Mapping[Factor, Array]) -> Sequence[Figure]:
                return evaluate(Candidates(self.template, arrays))

            known[orders] = Formula(of_arrays)
        return known[orders]


def _reals(values: Values) -> Mapping[Factor, Array]:
    return {factor: array.astype(np.float64) for factor, array in values.items()}


def _blocks(arrays: Mapping[Factor, Array]) -> Sequence[Mapping[Factor, Array]]:
    """Return arrays in blocks of at most AT_ONCE mappings."""
    count = next(iter(arrays.values())).size
    starts = range(0, max(count, 1), AT_ONCE)
    return [
        {factor: array[start : start + AT_ONCE] for factor, array in arrays.items()}
        for start in starts
    ]
