"""Prices of mappings on accelerators, by the models `tool`, `paper` and `ideal`."""
