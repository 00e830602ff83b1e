"""
What measures on a GPU: needs Python, numpy, torch, Triton and `comet.runtime` alone.

The folder is copied whole to machines that have no compiler and no network.
"""
