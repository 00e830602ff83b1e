"""
The COMET model with its defects mended; every mend is listed in docs/cost-model.md.

All formulas take one mapping or arrays of mappings of one template (`cost.flow`).
"""
