"""The tables of the page on the model are what the model says."""

from model_tables import tables
from paths import ROOT

PAGE = ROOT / "docs/multi-gpu-model.md"


def test_the_page_shows_what_model_tables_prints():
    text = PAGE.read_text()
    found = list(tables())
    assert len(found) == 3
    for table in found:
        assert f"\n\n{table}\n\n" in text, table
