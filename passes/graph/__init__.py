"""Passes at the graph and elementary levels, such as `decompose`, `stream`, `split`."""
