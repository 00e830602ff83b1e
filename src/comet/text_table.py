"""Tables of text."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence


def aligned(
    rows: Sequence[Sequence[str]], left: Container[int] = (0,)
) -> Iterator[str]:
    """Yield lines of aligned columns: those in `left` to the left, others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        texts = (t.ljust(n) if i in left else t.rjust(n) for i, (t, n) in cells)
        yield "  ".join(texts).rstrip()
