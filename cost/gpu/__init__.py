"""Prices of kernels and launch plans on GPUs."""
