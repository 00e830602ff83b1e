"""
The COMET model without its defects; docs/cost-model.md lists every correction.

All formulas take one mapping, or arrays of mappings of one template
(`cost.accelerator.flow`).
"""
