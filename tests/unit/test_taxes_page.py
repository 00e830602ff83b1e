"""The tables of the page on the model are what the model says."""

from pathlib import Path

from paper_sizes import BATCHES, KEYS, ROWS, decode, gemm

from comet.cost.launch_plan import Machine, Plan
from comet.cost.taxes import price_plan

PAGE = (Path(__file__).parents[2] / "docs/multi-gpu-model.md").read_text()
SHARED_KEYS = 524288
"""Keys of all ranks together, where their number varies."""


def table(first: str) -> list[list[str]]:
    """Return the rows of a table by the first column's name, without bold marks."""
    lines = PAGE.partition(f"\n| {first} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines]


def us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}"


def of(planned: tuple[Plan, Machine]) -> str:
    return us(price_plan(*planned).total)


def test_all_gather_and_gemm():
    assert table("M") == [
        [
            str(rows),
            of(gemm(rows, None)),
            of(gemm(rows, "bsp")),
            of(gemm(rows, "push")),
            of(gemm(rows, "pull", resident=False)),
            of(gemm(rows, "pull")),
            of(gemm(rows, "push", graph=True)),
            of(gemm(rows, "pull", graph=True)),
            of(gemm(rows, "fused")),
        ]
        for rows in ROWS
    ]


def ratio(keys: int, batch: int) -> str:
    library, fused = decode(keys, None, batch), decode(keys, "fused", batch)
    return f"{us(library)} / {us(fused)} = {library / fused:.2f}"


def test_flash_decode():
    assert table("batch") == [
        [str(batch), *(ratio(keys, batch) for keys in KEYS)] for batch in BATCHES
    ]


def test_scaling():
    ranks, *numbers = (1, 2, 4, 8), *table("ranks")
    assert numbers == [
        ["library", *(us(decode(SHARED_KEYS // n, None, 1, n)) for n in ranks)],
        [
            "fused",
            *(
                us(decode(SHARED_KEYS // n, None if n == 1 else "fused", 1, n))
                for n in ranks
            ),
        ],
    ]
