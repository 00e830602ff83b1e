"""Tilings that a user of Triton would try by hand, in the forms that loops can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpu_programs import FORMS, Extents, Program, of_one_rank


class Tile(NamedTuple):
    """What one program computes at a time."""

    rows: int
    columns: int
    """Of the product; in attention, keys."""
    terms: int
    """Of each sum of the first product."""
    warps: int
    stages: int

    def __str__(self) -> str:
        shape = f"{self.rows}x{self.columns}x{self.terms}"
        return f"{shape} warps={self.warps} stages={self.stages}"


@dataclass(frozen=True)
class ByHand:
    """Tilings of the only kernel of a sample."""

    plan: Callable[[Extents, Tile], str]
    """The plan string of a tile; it is empty where the tile does not apply."""
    tiles: Mapping[Tile, Sequence[str]]
    """The forms of each tile, by the names of `FORMS`; those not in it are defaults."""


def _product(extents: Extents, tile: Tile) -> str:
    m, n, k = (-(-extents[dim] // size) for dim, size in zip("MNK", tile, strict=False))
    launch = f"warps={tile.warps} stages={tile.stages} group=8"
    return f"c: M={m} N={n} {launch}; c_k: K={k}"


def _attention(extents: Extents, tile: Tile) -> str:
    m, n = -(-extents["M"] // tile.rows), -(-extents["N"] // tile.columns)
    grid = f"B={extents['B']} H={extents['H']} M={m} E=1"
    launch = f"warps={tile.warps} stages={tile.stages} group=1"
    return f"o: {grid} {launch}; m_n: N={n}; products_d: D=1"


def _rows(result: str) -> Callable[[Extents, Tile], str]:
    """Return the plans of a product and what follows it, in one kernel."""

    def plan(extents: Extents, tile: Tile) -> str:
        if extents["N"] != tile.columns:
            return ""
        m, k = -(-extents["M"] // tile.rows), -(-extents["K"] // tile.terms)
        launch = f"warps={tile.warps} stages={tile.stages} group=1"
        return f"{result}: M={m} {launch}; c_k: K={k}"

    return plan


BOTH = ("pointers", "descriptors")
ATTENTION = {
    Tile(128, 128, 128, 8, 2): BOTH,
    Tile(128, 64, 128, 8, 3): BOTH,
    Tile(128, 128, 128, 4, 2): ("specialized", "ahead"),
    Tile(64, 64, 128, 4, 3): BOTH,
}
ROWS = {
    Tile(64, 512, 64, 8, 2): BOTH,
    Tile(64, 512, 64, 8, 3): (*BOTH, "looped"),
    Tile(64, 256, 64, 4, 3): BOTH,
    Tile(128, 256, 64, 8, 3): (*BOTH, "looped"),
}
BY_HAND = {
    "gemm": ByHand(
        _product,
        {
            Tile(128, 256, 64, 8, 3): (*BOTH, "looped"),
            Tile(128, 256, 64, 8, 4): (*BOTH, "looped", "staged"),
            Tile(256, 128, 64, 8, 3): BOTH,
            Tile(128, 128, 64, 4, 4): BOTH,
            Tile(128, 128, 64, 4, 3): ("pointers", "looped"),
        },
    ),
    "gemm_softmax": ByHand(_rows("p"), ROWS),
    "gemm_layernorm": ByHand(_rows("y"), ROWS),
    "attention": ByHand(_attention, ATTENTION),
    "attention_causal": ByHand(_attention, ATTENTION),
}
"""By sample: the tiles of Triton's tutorials for Hopper, and some near them."""
FUSED = ("gemm_softmax", "gemm_layernorm")
"""Samples whose plans here are those of one kernel."""


def by_hand(sample: str, extents: Extents) -> dict[str, Program]:
    """Return a sample in all of its tilings and forms, by name."""
    base, own = of_one_rank(sample, extents, "bfloat16"), BY_HAND[sample]
    found: dict[str, Program] = {}
    for tile, forms in own.tiles.items():
        if not (plan := own.plan(extents, tile)):
            continue
        strategy = "full" if sample in FUSED else base.compiler.strategy
        tiled = replace(base.compiler, factors=plan, strategy=strategy)
        for form in forms:
            compiler = replace(tiled, **FORMS.get(form, {}))
            found[f"{tile} {form}"] = replace(base, compiler=compiler)
    return found
