"""Links between the documents lead to files and headings that exist."""

import re
from functools import cache
from pathlib import Path

import pytest
from paths import ROOT

PAGES = sorted(
    path.relative_to(ROOT)
    for pattern in ("*.md", "docs/*.md", "benchmarks/**/*.md", "samples/**/*.md")
    for path in ROOT.glob(pattern)
)


@cache
def text_of(page: Path) -> str:
    """Return the text of a page without its code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)


def anchor(heading: str) -> str:
    """Return the name that a heading has in addresses, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    """Return the names of the headings of a page."""
    return {anchor(title) for title in re.findall(r"^#+ (.*)$", text_of(page), re.M)}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path):
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(ROOT / page)):
        path, _, heading = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        if path.startswith(("http:", "https:")):
            continue
        assert target.exists(), link
        if heading:
            assert heading in anchors(target), link
