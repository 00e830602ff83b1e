"""
Runs the cases of a folder that `benchmarks/gpu.py emit` wrote.

The package is copied whole to machines that have no compiler and no network.
"""
